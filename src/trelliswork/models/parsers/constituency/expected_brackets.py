"""The constituents of one sentence whose expected F1 is largest, from the probability of each of them.

>>> shares = np.zeros((3, 3, 2))
>>> shares[0, 2, 0], shares[0, 1, 1], shares[1, 2, 1] = 1.0, 0.6, 0.4
>>> expected_brackets(shares)
[(0, 3, [0]), (0, 2, [1])]

Goodman (1996), Parsing algorithms and metrics.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from trelliswork.distributions.span_tree import SpanTree
from trelliswork.runtime.bridge import Array

ROUNDS = 6  # at most, until the price of a constituent stays the same
FIRST_PRICE = 0.4


def expected_brackets(shares: Array, known: Sequence[tuple[int, int]] = ()) -> list[tuple[int, int, list[int]]]:
    """The spans (start, end, labels) of a tree with the highest 2 E[right] / (predicted + E[gold]).

    `shares` [n, n, label] has the probability of a constituent over tokens i..j. One pays if its probability is above
    half of the F1 that is reached (Dinkelbach 1967, On nonlinear fractional programming), so that the best tree for
    one price gives the next. A span may have several labels, of which the caller knows the order. The spans of tokens
    i..j in `known`, which nothing else crosses, are there with their best label at least.
    """
    expected, price = float(shares.sum()), FIRST_PRICE
    found: list[tuple[int, int, list[int]]] = []
    for _ in range(ROUNDS):
        pays = shares > price
        gains = np.where(pays, shares - price, 0.0).sum(-1)
        more = gains.sum() + 1.0  # than all others together
        for i, j in known:
            pays[i, j, shares[i, j].argmax()] = True
            gains[i, j] += more
        spans = _best_spans(gains)
        found = [(i, j, np.flatnonzero(pays[i, j - 1]).tolist()) for i, j in spans if pays[i, j - 1].any()]
        right = sum(float(shares[i, j - 1, labels].sum()) for i, j, labels in found)
        again = right / max(sum(len(labels) for *_, labels in found) + expected, 1e-9)
        if abs(again - price) < 1e-9:
            break
        price = again
    return found


def _best_spans(gains: Array) -> list[tuple[int, int]]:
    """The spans of a binary tree with the highest sum of gains, parents before children."""
    scores = torch.from_numpy(np.ascontiguousarray(gains))[None, :, :, None]
    (nodes,) = SpanTree(scores).argmax_nodes.tolist()
    return sorted(((start, end) for start, end, _ in nodes if start >= 0), key=lambda span: (span[0], -span[1]))
