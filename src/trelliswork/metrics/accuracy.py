"""Token accuracy, and which tag was taken for which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from operator import eq

from trelliswork.draw.notebook import Piece, Rich, Table
from trelliswork.metrics.spans import check_alignment


def token_accuracy(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> float:
    """The share of tokens with the right tag; 0 when there are none.

    >>> token_accuracy([["DT", "NN"]], [["DT", "VB"]])
    0.5
    """
    check_alignment(gold, predicted)
    n_tokens = sum(len(tags) for tags in gold)
    pairs = zip(gold, predicted, strict=True)
    n_right = sum(sum(map(eq, row, other)) for row, other in pairs)
    return n_right / n_tokens if n_tokens else 0.0


@dataclass(frozen=True)
class Confusion(Rich):
    """`counts[i][j]`: how many tokens of gold label `labels[i]` were given `labels[j]`."""

    labels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]

    def _shown(self) -> Sequence[Piece]:
        """For notebooks: gold labels down, predicted labels across."""
        rows = [(gold, *counts) for gold, counts in zip(self.labels, self.counts, strict=True)]
        return [Table(rows, ("gold \\ predicted", *self.labels))]

    def worst(self, k: int = 10) -> list[tuple[str, str, int]]:
        """The `k` most frequent mistakes: gold, predicted, count."""
        wrong = [
            (gold, predicted, n)
            for gold, row in zip(self.labels, self.counts, strict=True)
            for predicted, n in zip(self.labels, row, strict=True)
            if n and gold != predicted
        ]
        return sorted(wrong, key=lambda mistake: (-mistake[2], mistake[0], mistake[1]))[:k]


def confusion(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> Confusion:
    """Count gold against predicted labels, token by token.

    >>> confusion([["A", "B"]], [["A", "A"]])
    Confusion(labels=('A', 'B'), counts=((1, 0), (1, 0)))
    """
    check_alignment(gold, predicted)
    pairs: Counter[tuple[str, str]] = Counter()
    for row, other in zip(gold, predicted, strict=True):
        pairs.update(zip(row, other, strict=True))
    labels = tuple(sorted({label for pair in pairs for label in pair}))
    return Confusion(labels, tuple(tuple(pairs[a, b] for b in labels) for a in labels))
