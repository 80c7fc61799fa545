"""How far strings are from the right ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class StringScores:
    """Counts over some strings, each with one or several right ones."""

    n_strings: int
    n_wrong: int
    n_edits: int
    n_symbols: int

    @property
    def word_error_rate(self) -> float:
        """The share of strings that equal none of the right ones."""
        return self.n_wrong / max(self.n_strings, 1)

    @property
    def symbol_error_rate(self) -> float:
        """Insertions, deletions and substitutions against the nearest right string, to a symbol of it."""
        return self.n_edits / max(self.n_symbols, 1)

    def to_dict(self) -> dict[str, Any]:
        """Fit for JSON."""
        return {"word_error_rate": self.word_error_rate, "symbol_error_rate": self.symbol_error_rate}

    def table(self) -> str:
        """For people."""
        rows = [("word error rate", self.word_error_rate), ("symbol error rate", self.symbol_error_rate)]
        return "\n".join(f"{name:<24}{100 * rate:6.2f}" for name, rate in rows)


def string_scores(found: Sequence[Sequence[str]], right: Sequence[Sequence[Sequence[str]]]) -> StringScores:
    """Scores of strings, each against the right ones of its source.

    >>> string_scores([["K", "AE", "T"]], [[["K", "A", "T"], ["K", "AE", "T", "S"]]]).symbol_error_rate
    0.3333333333333333
    """
    n_wrong = n_edits = n_symbols = 0
    for string, targets in zip(found, right, strict=True):
        distance, length = min((edit_distance(string, each), -len(each)) for each in targets)
        n_wrong, n_edits, n_symbols = n_wrong + (distance > 0), n_edits + distance, n_symbols - length
    return StringScores(len(found), n_wrong, n_edits, n_symbols)


def edit_distance(first: Sequence[str], second: Sequence[str]) -> int:
    """The fewest insertions, deletions and substitutions from one to the other.

    >>> edit_distance("kitten", "sitting")
    3
    """
    row = list(range(len(second) + 1))
    for i, a in enumerate(first, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(second, 1):
            before, row[j] = row[j], min(before + (a != b), row[j] + 1, row[j - 1] + 1)
    return row[-1]
