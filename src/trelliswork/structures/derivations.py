"""The k best derivations of a chart, found lazily: algorithm 3 of Huang and Chiang (2005), Better k-best Parsing.

A chart has planes of nodes (plane, i, j). What a node can be made of is given by the families of its plane:

    left plane, right plane, a, b, g     (left, i, s) and (right, s + g, j) for each split s = i + a .. j - b
    left plane, right plane, 0, 0, PAIR  (left, i, j) and (right, i, j)

A node without a way has one derivation, which scores what is its own. The last planes are lists of labels, which have
no parts. The best score of each node comes first, narrow spans before wide ones; then the k best of the root are asked
for one after another, and of the nodes below only as many as that needs. Ways to make a node are not listed: the next
best one is searched for when it is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from trelliswork.runtime.arrays import NEG_INF, Array
from trelliswork.runtime.threads import over_rows
from trelliswork.structures.derivation_kernels import fill, top_derivations


@dataclass(frozen=True)
class Plan:
    """The ways in which the nodes of each plane can be made, in the order in which the planes of a span are filled."""

    starts: Array  # the families of plane p are starts[p]..starts[p + 1] - 1
    families: Array

    @staticmethod
    def of(*planes: list[tuple[int, int, int, int, int]]) -> Plan:
        starts = np.cumsum([0, *map(len, planes)])
        return Plan(starts, np.array([family for plane in planes for family in plane]))

    def top(
        self, k: int, own: Array, labels: Array, root: tuple[int, int, int], shown: int, weights: Array | None = None
    ) -> tuple[Array, Array]:
        """Return the nodes [k, most nodes, 4] of the k best derivations and their scores [k], or of all if fewer.

        Args:
            k: how many are wanted.
            own: [planes, size, size], what is added to every derivation of a node; the planes of labels included.
            labels: [planes of labels, size, size, c], their scores.
            root: the plane, i = 0, and j of the node whose derivations are wanted.
            shown: a derivation is written as its nodes (plane, i, j, way) of this plane and those behind it, parents
                before children and left before right, -1 behind them; the way of a label is its number.
            weights: [1 or size, 1 or size, families], what is added for a family.
        """
        size, planes = own.shape[1], len(self.starts) - 1
        weights = np.zeros((1, 1, len(self.families))) if weights is None else weights
        best = own.copy()
        best[planes:] = labels.max(-1)
        flat = (own.reshape(-1), best.reshape(-1), labels.reshape(-1, labels.shape[3]))
        chart = (self.starts, self.families, weights, *flat)
        fill(chart, size, root[2])
        start, room = (root[0] * size + root[1]) * size + root[2], 64 * (size + min(k, size))
        while True:
            derivations = np.full((min(k, room), 2 * root[2] + 3, 4), -1)
            scores = np.full(len(derivations), NEG_INF)
            table = np.empty(room), np.empty((room, 7), np.int64)
            if top_derivations(chart, size, start, shown, table, derivations, scores) and (
                len(derivations) == k or scores[-1] == NEG_INF
            ):
                n_found = int((scores > NEG_INF).sum())
                return derivations[:n_found], scores[:n_found]
            room *= 4


def top_of_rows(
    row: Callable[[int], tuple[Array, Array]], batch: int, work: int, event: tuple[int, ...], padding: int
) -> tuple[Array, Array]:
    """Return the best values [k, batch, *event] and their scores [k, batch], for the largest k of a row.

    Each row is searched by itself: row(b) are its values [k, n, ...] and scores [k].

    Args:
        row: a function from a row to its values [k, n, ...] and their scores [k].
        batch: number of rows.
        work: about how many operations all rows take; decides how many threads share them.
        event: shape of a value.
        padding: what stands behind the end of a shorter value.

    Returns:
        Values, and scores that are -inf where a row has fewer.
    """
    rows: list[tuple[Array, Array]] = [(np.empty(0), np.empty(0))] * batch

    def run(first: int, last: int) -> None:
        for b in range(first, last):
            rows[b] = row(b)

    over_rows(run, batch, work)
    k = max([1, *(len(scores) for _, scores in rows)])
    all_values, all_scores = np.full((k, batch, *event), padding), np.full((k, batch), NEG_INF)
    for b, (values, scores) in enumerate(rows):
        if len(scores):
            all_values[: len(scores), b, : values.shape[1]], all_scores[: len(scores), b] = values, scores
    return all_values, all_scores
