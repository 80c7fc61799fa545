"""The probability of every bracket of a sentence, and how it is summed from that of symbols."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from trelliswork.runtime.bridge import Array


class BracketShares(NamedTuple):
    """Of each span of a sentence, at [first, last token]: how probable it is, and each of `labels` above it."""

    labels: Sequence[str]
    of_labels: Array  # [n, n, label]
    of_spans: Array  # [n, n]
    of_tops: Array = np.zeros((0, 0, 0))  # [n, n, label], of being the topmost; of a grammar alone

    def part(self, start: int, end: int, label: str) -> BracketShare:
        share = self.of_labels[start, end - 1, list(self.labels).index(label)] if label in self.labels else 0.0
        return BracketShare(start, end, label, _sure(self.of_spans[start, end - 1]), _sure(share))

    def best(self, start: int, end: int) -> BracketShare:
        """A span with its most probable label."""
        return self.part(start, end, self.labels[int(self.of_labels[start, end - 1].argmax())])


@dataclass(frozen=True)
class BracketShare:
    """A constituent, the probability of one with any label over its words, and that of its own label."""

    start: int
    end: int
    label: str
    span_probability: float
    probability: float


def _sure(share: float) -> float:
    return min(float(share), 1.0)


def diagonal(chart: Array) -> Array:
    """What a chart says of single tokens, [n, ...]."""
    return np.ascontiguousarray(chart[np.arange(len(chart)), np.arange(len(chart))])


def summed(shares: Array, columns: Array) -> Array:
    """[..., column]: the shares of the symbols of each column, at most 1; symbols of column -1 are left out."""
    order = np.argsort(columns, kind="stable")
    order = order[np.searchsorted(columns[order], 0) :]
    starts = np.searchsorted(columns[order], np.arange(int(columns.max()) + 1))
    return np.minimum(np.add.reduceat(shares[..., order], starts, axis=-1), 1.0)
