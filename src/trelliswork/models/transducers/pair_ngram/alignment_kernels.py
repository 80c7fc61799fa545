"""Expectation maximisation over edit lattices: all ways to cut both sides of a pair into chunks that belong together.

A step leads from (i, j) to (i + a, j + b): `a` source symbols, at least one, become `b` target symbols, or none.
Scores are logarithms, so that nothing can underflow. A chunk pair is found in a table with open addressing.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from trelliswork.runtime.arrays import NEG_INF, Array
from trelliswork.runtime.compilation import EXACT, kernel

EMPTY = -1


class ChunkedPairs(NamedTuple):
    """Pairs as the numbers of their chunks. Chunks that leave their string are never asked for."""

    sources: Array  # int32 [source symbol, a - 1]: the chunk of a symbols that begins there
    source_offsets: Array  # int64 [pair + 1]
    targets: Array  # int32 [target symbol, b]; b = 0 is the empty chunk, whose number is 0
    target_offsets: Array
    longest_source: Array  # int32 [pair]: the longest chunk that is allowed
    longest_target: Array
    n_targets: int  # how many target chunks there are
    both: bool  # whether both sides of a chunk pair may have several symbols


@kernel(EXACT, inline=True)
def _slot(keys, key):
    """Return the slot in which a key is, or would be."""
    mask = keys.shape[0] - 1
    at = ((key * 0x9E3779B97F4A7C1) >> 20) & mask
    while keys[at] != EMPTY and keys[at] != key:
        at = (at + 1) & mask
    return at


@kernel(EXACT, inline=True)
def _key(pairs, p, i, j, a, b):
    """Return the number of the chunk pair of a step from (i, j)."""
    target = 0 if b == 0 else pairs.targets[pairs.target_offsets[p] + j, b]
    return np.int64(pairs.sources[pairs.source_offsets[p] + i, a - 1]) * pairs.n_targets + target


@kernel(EXACT, inline=True)
def _allowed(a, b, both):
    return a == 1 or b == 1 or (both and b > 0)


@kernel(EXACT)
def enter_keys(pairs, keys):
    """Enter the chunk pairs of all alignments into a table.

    Args:
        pairs: The pairs of strings, cut into chunks.
        keys: Numbers of chunk pairs by open addressing, int64 [2^k], EMPTY everywhere; filled in.

    Returns:
        How many chunk pairs there are, or -1 if the table is too small for them.
    """
    used = 0
    for p in range(pairs.longest_source.shape[0]):
        n = pairs.source_offsets[p + 1] - pairs.source_offsets[p]
        m = pairs.target_offsets[p + 1] - pairs.target_offsets[p]
        for i in range(n):
            for j in range(m + 1):
                for a in range(1, min(pairs.longest_source[p], n - i) + 1):
                    for b in range(min(pairs.longest_target[p], m - j) + 1):
                        if not _allowed(a, b, pairs.both):
                            continue
                        key = _key(pairs, p, i, j, a, b)
                        at = _slot(keys, key)
                        if keys[at] == EMPTY:
                            keys[at] = key
                            used += 1
                            if 2 * used > keys.shape[0]:
                                return -1
    return used


@kernel(EXACT)
def _score(pairs, keys, scores, p, i, j, a, b):
    return scores[_slot(keys, _key(pairs, p, i, j, a, b))]


@kernel(EXACT, inline=True)
def _plus(x, y):
    """Return log(exp x + exp y)."""
    if x < y:
        x, y = y, x
    return x if y == NEG_INF else x + math.log1p(math.exp(y - x))


@kernel(EXACT)
def _suffix_sums(pairs, keys, scores, p, beta):
    """Fill in beta[i, j]: all ways to align what follows (i, j)."""
    n = pairs.source_offsets[p + 1] - pairs.source_offsets[p]
    m = pairs.target_offsets[p + 1] - pairs.target_offsets[p]
    for i in range(n, -1, -1):
        for j in range(m, -1, -1):
            total = 0.0 if i == n and j == m else NEG_INF
            for a in range(1, min(pairs.longest_source[p], n - i) + 1):
                for b in range(min(pairs.longest_target[p], m - j) + 1):
                    if _allowed(a, b, pairs.both) and beta[i + a, j + b] > NEG_INF:
                        total = _plus(total, _score(pairs, keys, scores, p, i, j, a, b) + beta[i + a, j + b])
            beta[i, j] = total


@kernel(EXACT)
def expected_counts(pairs, keys, scores, counts):
    """Add the expected number of each chunk pair; return the log-likelihood of all pairs that can be aligned.

    Args:
        pairs: The pairs of strings, cut into chunks.
        keys: The table of chunk pairs, int64 [2^k].
        scores: Log weight of each chunk pair by its slot, float64 [2^k].
        counts: Expected numbers by slot, float64 [2^k], added to.
    """
    likelihood = 0.0
    for p in range(pairs.longest_source.shape[0]):
        n = pairs.source_offsets[p + 1] - pairs.source_offsets[p]
        m = pairs.target_offsets[p + 1] - pairs.target_offsets[p]
        beta, mass = np.empty((n + 1, m + 1)), np.zeros((n + 1, m + 1))
        _suffix_sums(pairs, keys, scores, p, beta)
        if beta[0, 0] == NEG_INF:
            continue
        likelihood += beta[0, 0]
        mass[0, 0] = 1.0
        for i in range(n):
            for j in range(m + 1):
                if mass[i, j] == 0.0:
                    continue
                for a in range(1, min(pairs.longest_source[p], n - i) + 1):
                    for b in range(min(pairs.longest_target[p], m - j) + 1):
                        if _allowed(a, b, pairs.both) and beta[i + a, j + b] > NEG_INF:
                            at = _slot(keys, _key(pairs, p, i, j, a, b))
                            moved = mass[i, j] * math.exp(scores[at] + beta[i + a, j + b] - beta[i, j])
                            counts[at] += moved
                            mass[i + a, j + b] += moved
    return likelihood


@kernel(EXACT)
def best_alignments(pairs, keys, scores, steps, lengths):
    """Fill in the best alignment of each pair: its length, and its slots from steps[source_offsets[pair]] on.

    Args:
        pairs: The pairs of strings, cut into chunks.
        keys: The table of chunk pairs, int64 [2^k].
        scores: Log weight of each chunk pair by its slot, float64 [2^k].
        steps: Slots of the chunk pairs of each alignment, [source symbols], filled in.
        lengths: Number of chunk pairs of each alignment, [pairs], filled in.
    """
    for p in range(pairs.longest_source.shape[0]):
        begin = pairs.source_offsets[p]
        n = pairs.source_offsets[p + 1] - begin
        m = pairs.target_offsets[p + 1] - pairs.target_offsets[p]
        beta, sizes = np.full((n + 1, m + 1), NEG_INF), np.zeros((n + 1, m + 1, 2), np.int32)
        beta[n, m] = 0.0
        for i in range(n - 1, -1, -1):
            for j in range(m, -1, -1):
                for a in range(1, min(pairs.longest_source[p], n - i) + 1):
                    for b in range(min(pairs.longest_target[p], m - j) + 1):
                        if _allowed(a, b, pairs.both) and beta[i + a, j + b] > NEG_INF:
                            value = _score(pairs, keys, scores, p, i, j, a, b) + beta[i + a, j + b]
                            if value > beta[i, j]:
                                beta[i, j], sizes[i, j, 0], sizes[i, j, 1] = value, a, b
        i, j, lengths[p] = 0, 0, 0
        while i < n and beta[0, 0] > NEG_INF:
            a, b = sizes[i, j, 0], sizes[i, j, 1]
            steps[begin + lengths[p]] = _slot(keys, _key(pairs, p, i, j, a, b))
            i, j, lengths[p] = i + a, j + b, lengths[p] + 1
