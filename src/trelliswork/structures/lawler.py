"""The k best trees by searching for best ones (Lawler), for every family of trees and with or without labels.

What remains beside a best tree falls into disjoint sets, by the first word whose head or label differs. A set is given
by a tree, the number of words that are fixed as in it, and the (head, label) pairs that the next word must not have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from trelliswork.runtime.compilation import EXACT, kernel
from trelliswork.runtime.threads import over_rows

NEG_INF = -np.inf
Array = np.ndarray[Any, Any]
Search = Callable[..., None]  # (first, last, arcs, lengths, single_root, heads, possible): the best tree of each row


def top_trees(search: Search, parts: Array, lengths: Array, single_root: bool, k: int) -> tuple[Array, Array, Array]:
    """Heads and labels [k, batch, n] of the k best and their scores [k, batch], -inf where a row has fewer.

    `parts` are scores [batch, n+1, n+1, l] of arcs with labels, -inf at whatever is no arc.
    """
    batch, size = parts.shape[:2]
    heads, labels = np.zeros((2, k, batch, size - 1), np.int64)
    scores = np.full((k, batch), NEG_INF)
    for b in range(batch):
        n = int(lengths[b])
        scored = np.ascontiguousarray(parts[b, : n + 1, : n + 1])
        found = _top_of_row(search, scored, n, single_root, k)
        heads[:, b, :n], labels[:, b, :n], scores[:, b] = found
    return heads, labels, scores


def _top_of_row(search: Search, parts: Array, n: int, single_root: bool, k: int) -> tuple[Array, Array, Array]:
    """One best tree after another; each leaves at most n sets, which are searched together."""
    heads, labels = np.zeros((2, k, n), np.int64)
    scores = np.full(k, NEG_INF)
    pool = Pool(1 + k * n, parts)
    everything = np.zeros((1, n), np.int64), np.zeros((1, n), np.int64), np.zeros(1, np.int64), pool.banned[:1] & False
    pool.add(search, single_root, everything)
    for rank in range(k):
        best = int(pool.scores.argmax())
        if pool.scores[best] == NEG_INF:
            break
        heads[rank], labels[rank], scores[rank] = pool.heads[best], pool.labels[best], pool.scores[best]
        pool.scores[best] = NEG_INF
        if rank < k - 1:
            sets = _split(pool.heads[best], pool.labels[best], pool.fixed[best], pool.banned[best])
            pool.add(search, single_root, sets)
    return heads, labels, scores


class Pool:
    """The best trees of all sets so far; a score of -inf where one has been taken or a set is empty."""

    def __init__(self, room: int, parts: Array):
        n, n_labels = parts.shape[0] - 1, parts.shape[2]
        self.parts, self.free, self.free_labels = parts, parts.max(-1), parts.argmax(-1)
        self.heads, self.labels = np.zeros((2, room, n), np.int64)
        self.scores, self.fixed = np.full(room, NEG_INF), np.zeros(room, np.int64)
        self.banned = np.zeros((room, n + 1, n_labels), np.bool_)
        self.filled = 0

    def add(self, search: Search, single_root: bool, sets: tuple[Array, ...]) -> None:
        """Search each set, given as in `_split`, for its best tree."""
        heads, labels, fixed, banned = sets
        n_sets, n = heads.shape
        arcs, choices = np.empty((n_sets, n + 1, n + 1)), np.empty((n_sets, n + 1, n + 1), np.int64)
        _restrict(self.parts, self.free, self.free_labels, heads, labels, fixed, banned, arcs, choices)
        possible, all_lengths = np.empty(n_sets, np.bool_), np.full(n_sets, n)
        found = np.zeros((n_sets, n), np.int64)
        over_rows(search, n_sets, n_sets * n**2, arcs, all_lengths, single_root, found, possible)
        room = slice(self.filled, self.filled + n_sets)
        self.heads[room], self.fixed[room], self.banned[room] = found, fixed, banned
        _label(self.parts, found, choices, possible, self.labels[room], self.scores[room])
        self.filled += n_sets


def _split(heads: Array, labels: Array, fixed: int, banned: Array) -> tuple[Array, Array, Array, Array]:
    """The sets of trees that agree with this one on s = fixed..n-1 words and differ at the next, s by s."""
    n_sets, words = len(heads) - fixed, np.arange(fixed, len(heads))
    all_banned = np.zeros((n_sets, *banned.shape), np.bool_)
    all_banned[0] = banned
    all_banned[np.arange(n_sets), heads[words], labels[words]] = True
    return np.tile(heads, (n_sets, 1)), np.tile(labels, (n_sets, 1)), words, all_banned


@kernel(EXACT)
def _restrict(parts, free, free_labels, heads, labels, fixed, banned, arcs, choices):
    """The best score of each arc over the labels that a set allows, and which label that is."""
    size, n_labels = parts.shape[0], parts.shape[2]
    for i in range(arcs.shape[0]):
        for h in range(size):
            for m in range(size):
                is_fixed = 0 < m <= fixed[i]
                arcs[i, h, m], choices[i, h, m] = NEG_INF if is_fixed else free[h, m], free_labels[h, m]
        for m in range(1, fixed[i] + 1):
            head, label = heads[i, m - 1], labels[i, m - 1]
            arcs[i, head, m], choices[i, head, m] = parts[head, m, label], label
        split = fixed[i] + 1
        for h in range(size):
            arcs[i, h, split] = NEG_INF
            for label in range(n_labels):
                if parts[h, split, label] > arcs[i, h, split] and not banned[i, h, label]:
                    arcs[i, h, split], choices[i, h, split] = parts[h, split, label], label


@kernel(EXACT)
def _label(parts, heads, choices, possible, labels, scores):
    """The labels of the trees that were found, and their scores, added up in the order of words."""
    for i in range(heads.shape[0]):
        scores[i] = 0.0 if possible[i] else NEG_INF
        if possible[i]:
            for m in range(1, heads.shape[1] + 1):
                head = heads[i, m - 1]
                labels[i, m - 1] = choices[i, head, m]
                scores[i] += parts[head, m, labels[i, m - 1]]
