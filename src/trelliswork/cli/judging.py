"""A model on a file of gold data, alone or beside another: all that `evaluate` tells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from trelliswork.errors import TrellisworkError
from trelliswork.metrics import Difference, paired_bootstrap
from trelliswork.models.base import Report, count
from trelliswork.models.examined import Examined

SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Judged:
    """A model, the report on its answers, and whether it knows a word."""

    name: str
    report: Report
    knows: Callable[[str], bool | None]


@dataclass(frozen=True)
class Compared:
    """Two models on one task."""

    task: str
    first: Examined
    second: Examined
    difference: Difference


def compared(first: Judged, second: Judged) -> list[Compared]:
    """The tasks that both models have; models that cannot be compared are an error."""
    found = []
    for task, ours in first.report.examined.items():
        theirs = second.report.examined.get(task)
        if theirs is None or theirs.metric != ours.metric:
            has = "nothing" if theirs is None else theirs.metric
            problem = f"--against: expected {ours.metric} from both models, got {has} from {second.name}"
            raise TrellisworkError(f"{problem}; compare models that were trained on the same tags")
        same = [a.words == b.words for a, b in zip(ours.examples, theirs.examples, strict=False)]
        if len(ours.examples) != len(theirs.examples) or not all(same):
            raise TrellisworkError(
                f"--against: {second.name} reads other words from the file than {first.name}; name the columns"
            )
        found.append(Compared(task, ours, theirs, paired_bootstrap(ours.scores, theirs.scores)))
    if not found:
        raise TrellisworkError(f"--against: {first.name} is a model whose answers have no parts to compare")
    return found


def comparison_text(both: list[Compared], first: str, second: str) -> str:
    """The difference in words: is it more than luck?"""
    lines = [f"A: {first}\nB: {second}", ""]
    lines.append(f"{'':24}     A       B    A - B   95% interval          p")
    for each in both:
        found = each.difference
        name = f"{each.task}: {each.first.metric}" if each.task else each.first.metric
        ratios = f"{100 * found.first:6.2f}  {100 * found.second:6.2f}  {100 * found.difference:+7.2f}"
        interval = f"{100 * found.low:+6.2f} .. {100 * found.high:+6.2f}"
        lines.append(f"{name:24}{ratios}   {interval}   {found.p_value:.4f}")
    lines.append("")
    return "\n".join([*lines, *(verdict(each) for each in both)])


def verdict(each: Compared) -> str:
    """What the test says."""
    found, task = each.difference, f"{each.task}: " if each.task else ""
    sizes = f"A has fewer mistakes in {count(found.n_better, 'sentence')}, B in {found.n_worse:,}, of {found.n:,}"
    if found.p_value >= SIGNIFICANT:
        return f"{task}{sizes}; the difference may be luck (paired bootstrap)"
    better = "A" if found.difference > 0 else "B"
    return f"{task}{sizes}; {better} is better, and it is hardly luck (paired bootstrap)"


def comparison_record(both: list[Compared], name: str) -> dict[str, Any]:
    """The same for JSON."""
    records = {each.task: {"metric": each.first.metric, **asdict(each.difference)} for each in both}
    return {"model": name, **(records[""] if list(records) == [""] else {"tasks": records})}
