"""The k best trees by searching for best ones (Lawler): what kernels of every family of trees share.

What remains beside a best tree falls into disjoint sets, by the first word whose head differs. A set is given by a
tree, the number of words whose heads are fixed as in it, and the heads that the next word must not have.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from trelliswork.structures.kernel_math import EXACT

NEG_INF = -np.inf


@njit(**EXACT)
def pool_of(k, size):
    """Room for the best trees of all sets that k best trees can leave: heads, scores, words fixed, heads banned."""
    room = 1 + k * size
    heads, scores = np.empty((room, size - 1), np.int64), np.full(room, NEG_INF)
    return heads, scores, np.zeros(room, np.int64), np.zeros((room, size), np.bool_)


@njit(**EXACT)
def take_best(pool, filled, n, heads):
    """The index of the best tree left, copied to `heads`, and its score; -1 if there is none."""
    pool_heads, scores, _, _ = pool
    best = -1
    for i in range(filled):
        if scores[i] > NEG_INF and (best < 0 or scores[i] > scores[best]):
            best = i
    if best < 0:
        return -1, NEG_INF
    score = scores[best]
    scores[best] = NEG_INF
    heads[:n] = pool_heads[best, :n]
    return best, score


@njit(**EXACT)
def enter(pool, filled, parent, split, arcs, n, kept):
    """The set of trees that agree with tree `parent` on `split` words and differ at the next; its arcs go to `kept`."""
    heads, _, fixed, banned = pool
    banned[filled] = False
    if split == fixed[parent]:
        banned[filled] = banned[parent]
    banned[filled, heads[parent, split]] = True
    fixed[filled] = split
    for h in range(n + 1):
        for m in range(1, n + 1):
            allowed = (m > split or heads[parent, m - 1] == h) and (m != split + 1 or not banned[filled, h])
            kept[h, m] = arcs[h, m] if allowed else NEG_INF


@njit(**EXACT)
def score_of(arcs, n, heads):
    total = 0.0
    for m in range(1, n + 1):
        total += arcs[heads[m - 1], m]
    return total
