"""How a search went.

>>> rows = [TrialRow(0, "finished", 0.91, {"lr": 0.002}, 5, 10.0), TrialRow(1, "pruned", 0.4, {"lr": 0.3}, 3, 6.0)]
>>> print(SearchResult(rows).table("f1"))
rank  trial  dev f1  epochs  seconds     lr
   1      0   91.00       5     10.0  0.002
   -      1   40.00       3      6.0    0.3  pruned
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class TrialRow:
    """One trial; `state` is finished, pruned, failed or stopped, and `score` the best so far of one not finished."""

    number: int
    state: str
    score: float | None
    settings: Mapping[str, Any]
    steps: int = 0
    seconds: float = 0.0
    problem: str = ""


@dataclass(frozen=True)
class SearchResult:
    """All trials in their order, and whether Ctrl-C ended the search."""

    rows: list[TrialRow] = field(default_factory=list)
    interrupted: bool = False

    def row(self, number: int) -> TrialRow:
        """The trial of that number."""
        return next(row for row in self.rows if row.number == number)

    @property
    def ranked(self) -> list[TrialRow]:
        """Finished trials, the best first."""
        finished = [row for row in self.rows if row.state == "finished"]
        return sorted(finished, key=lambda row: (-(row.score or 0.0), row.number))

    @property
    def best(self) -> TrialRow | None:
        """The finished trial with the highest score, the earliest of several."""
        return next(iter(self.ranked), None)

    def table(self, metric: str, steps: str = "epochs") -> str:
        """For people: the finished trials by rank, then the others."""
        others = [row for row in self.rows if row.state != "finished"]
        names = list(dict.fromkeys(name for row in self.rows for name in row.settings))
        table = [["rank", "trial", f"dev {metric}", steps, "seconds", *names, ""]]
        for rank, row in enumerate([*self.ranked, *others], start=1):
            score = "" if row.score is None else f"{100 * row.score:.2f}"
            place, note = (str(rank), "") if row.state == "finished" else ("-", row.state)
            values = [shown(row.settings.get(name)) for name in names]
            table.append([place, str(row.number), score, str(row.steps), f"{row.seconds:.1f}", *values, note])
        return _aligned(table)


def shown(value: Any) -> str:
    """A setting in a few characters.

    >>> shown(0.00123456), shown("lstm"), shown((2, 3)), shown(True)
    ('0.00123', 'lstm', '2,3', 'yes')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ",".join(map(shown, value)) or "none"
    return f"{value:.3g}" if isinstance(value, float) else "" if value is None else str(value)


def _aligned(table: list[list[str]]) -> str:
    """Columns to the right, the last one, a remark, to the left."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = []
    for *cells, remark in table:
        line = "  ".join(cell.rjust(width) for cell, width in zip(cells, widths[:-1], strict=True))
        lines.append(f"{line}  {remark}".rstrip())
    return "\n".join(lines)
