"""The page of `evaluate --html`: how good a model is, where it fails, and whether another is better."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from html import escape
from itertools import islice
from typing import Any

from trelliswork.cli.judging import Compared, Judged, verdict
from trelliswork.cli.report.page import (
    MOST_ROWS,
    by_label,
    confusions,
    heading,
    percentages,
    scrolling,
    section,
    sentences,
    table,
    trust,
    whole_page,
)
from trelliswork.metrics import Score
from trelliswork.models.base import Report, count
from trelliswork.models.examined import Examined, Example, Part
from trelliswork.models.votes import isolated

WORST, DIFFERENT = 20, 10  # sentences that are shown


def evaluation_page(judged: Judged, file: str, sizes: str, both: Sequence[Compared] = (), other: str = "") -> str:
    """Return a whole HTML page that needs nothing but itself; `both` is the comparison with another model."""
    title = f"{judged.name} on {file}"
    report = f"<pre>{escape(_without_labels(judged.report))}</pre>\n"
    sections = [heading(title, sizes), section("Scores", "In per cent.", report)]
    sections += [_difference(each, judged.name, other) for each in both]
    for task, examined in judged.report.examined.items():
        sections += [f"<h2>Task: {escape(task)}</h2>\n"] if task else []
        sections += _sections_of(examined, judged.knows)
    sections += [_where_better(each) for each in both]
    return whole_page(title, sections)


def _without_labels(report: Report) -> str:
    """Return the text of a report without the lines of labels that have a table of their own on the page."""
    labels = {label for each in report.examined.values() for label in _tabled(each)}
    return "\n".join(line for line in report.text.splitlines() if _label_of(line) not in labels)


def _label_of(line: str) -> str | None:
    """Return the label of a row of scores, which is all numbers behind it.

    >>> _label_of("B-PER   93.75  100.00   96.77   15"), _label_of("F1 of spans, strict   73.68")
    ('B-PER', None)
    """
    row = re.fullmatch(r"\s*(\S.*?)((?:\s+[\d.,]+)+)", line)
    return None if row is None else row[1]


def _tabled(examined: Examined) -> dict[str, Score]:
    """Return the scores by label that a page shows; one label alone has those of all."""
    labels = dict(islice(examined.by_label().items(), MOST_ROWS))
    return labels if len(labels) > 1 else {}


def _sections_of(examined: Examined, knows: Callable[[str], bool | None]) -> Iterator[str]:
    calibration = examined.calibration()
    yield by_label(examined.by_label(), examined.parts) if _tabled(examined) else ""
    yield confusions(examined.confusion) if examined.confusion is not None else ""
    yield _by_word(examined, knows) if examined.confusion is not None else ""
    yield trust(calibration, examined.parts) if calibration is not None else ""
    intro = "The sentences with the most mistakes, the shortest of them first."
    yield sentences("Worst sentences", intro, examined.worst(WORST), right=examined.parts == "spans")


def _by_word(examined: Examined, knows: Callable[[str], bool | None]) -> str:
    """Scores of what is made of known words, and of the rest."""
    words = {word for example in examined.examples for word in example.words}
    known = {word for word in words if knows(word)}
    title = "Known and unknown words"
    if not known and all(knows(word) is None for word in words):
        return section(title, "This model does not say which words it knows.")

    def all_known(example: Example, part: Part) -> bool:
        return all(word in known for word in example.words[part[0] : part[1]])

    chosen = {
        "all words known": all_known,
        "with an unknown word": lambda example, part: not all_known(example, part),
    }
    restricted = {name: examined.restricted(wanted) for name, wanted in chosen.items()}
    rows = [[name, *percentages(each), f"{each.gold:,}", f"{each.predicted:,}"] for name, each in restricted.items()]
    n_tokens = sum(len(example.words) for example in examined.examples)
    n_unknown = sum(word not in known for example in examined.examples for word in example.words)
    intro = f"{n_unknown:,} of {n_tokens:,} tokens are words that the model has learned nothing about as such."
    header = [examined.parts, "precision %", "recall %", "F1 %", "gold", "predicted"]
    return section(title, intro, table(header, rows))


def _difference(each: Compared, first: str, second: str) -> str:
    difference = each.difference
    row = [
        each.first.metric, *(f"{100 * value:.2f}" for value in (difference.first, difference.second)),
        f"{100 * difference.difference:+.2f}", f"{100 * difference.low:+.2f} to {100 * difference.high:+.2f}",
        f"{difference.p_value:.4f}",
    ]  # fmt: skip
    intro = (
        f"A is <code>{escape(first)}</code>, B is <code>{escape(second)}</code>. {escape(verdict(each))}: test sets "
        "drawn from the sentences of this one, with replacement, give the interval and p, the probability of such a "
        "difference if there were none."
    )
    title = f"Two models: {each.task}" if each.task else "Two models"
    return section(title, intro, table(["", "A %", "B %", "A - B", "95% interval", "p"], [row]))


def _where_better(each: Compared) -> str:
    """Return sentences in which one model has fewer mistakes, as the other has them."""
    difference, task = each.difference, f" (task {each.task})" if each.task else ""
    pairs = list(zip(each.first.examples, each.second.examples, strict=True))
    turned = [(b, a) for a, b in pairs]
    content = [
        ("A", difference.n_better, "What B makes of them.", _worse(turned)),
        ("B", difference.n_worse, "What A makes of them.", _worse(pairs)),
    ]
    right = each.first.parts == "spans"
    return "".join(
        sentences(f"Where {name} is better{task}: {count(n, 'sentence')}", intro, chosen, right=right)
        for name, n, intro, chosen in content
    )


def _worse(pairs: Sequence[tuple[Example, Example]]) -> list[Example]:
    """Return the sentences in which the first has more mistakes than the second, those with most more of them first."""
    chosen = [(mine, other) for mine, other in pairs if mine.n_errors > other.n_errors]
    chosen.sort(key=lambda pair: (pair[1].n_errors - pair[0].n_errors, len(pair[0].words)))
    return [mine for mine, _ in chosen[:DIFFERENT]]


# The page of `explain --html`: what speaks for the answers of a model, or what else they may be.


def explanation_page(explanations: Sequence[Any], model: str, file: str) -> str:
    """Return an HTML page that needs no other file, with a section for each sentence (see `Model.explain`)."""
    kind = explanations[0]
    title = f"{kind.title} of {model} on {file}"
    sections = [
        section(f"Sentence {i}", isolated(" ".join(each.words)), scrolling(each._repr_html_()))
        for i, each in enumerate(explanations, 1)
    ]
    return whole_page(title, [heading(title, kind.lead), kind.legend, *sections])
