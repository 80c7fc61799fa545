"""CPU kernels for edit scripts: log Z and posteriors of steps; the best script, the k best, samples.

α is kept in log space: nothing can underflow, whatever the scores. What the way back needs are the shares of the three
steps into a cell, all at most 1. Scores are [batch, n+1, m+1, 3]; steps from outside the lattice score -inf.
"""

from __future__ import annotations

import math

import numpy as np

from trelliswork.runtime.arrays import NEG_INF
from trelliswork.runtime.compilation import EXACT, kernel
from trelliswork.runtime.kernel_math import insert_moved, pick
from trelliswork.runtime.kernel_random import uniform

N_OPERATIONS = 3
SUBSTITUTE, DELETE, INSERT = range(N_OPERATIONS)


@kernel(EXACT)
def _origin(i, j, operation):
    """The cell that a step into (i, j) leaves: substitute, delete, insert."""
    return i - (operation != 2), j - (operation != 1)


@kernel(EXACT)
def forward(first, last, scores, lengths, target_lengths, shares, log_z):
    """Compute log Z of rows first..last-1, and how much of each cell comes by each step.

    Args:
        first: the first row.
        last: the row behind the last.
        scores: scores of the steps into each cell, float64 [batch, n+1, m+1, 3].
        lengths: length of x of each row, int64 [batch].
        target_lengths: length of y of each row, int64 [batch].
        shares: float64 [batch, n+1, m+1, 3], filled in.
        log_z: float64 [batch], filled in.
    """
    alpha = np.empty(scores.shape[1:3])
    arriving = np.empty(N_OPERATIONS)
    for b in range(first, last):
        n, m = lengths[b], target_lengths[b]
        for i in range(n + 1):
            for j in range(m + 1):
                share, top, total = shares[b, i, j], NEG_INF, 0.0
                for k in range(N_OPERATIONS):
                    x, y = _origin(i, j, k)
                    arriving[k] = alpha[x, y] + scores[b, i, j, k] if x >= 0 and y >= 0 else NEG_INF
                    top = max(top, arriving[k])
                for k in range(N_OPERATIONS):
                    share[k] = math.exp(arriving[k] - top) if top > NEG_INF else 0.0
                    total += share[k]
                for k in range(N_OPERATIONS):
                    share[k] /= max(total, 1.0)
                alpha[i, j] = NEG_INF if total == 0.0 else top + math.log(total)
                if i == 0 and j == 0:
                    alpha[i, j] = 0.0
        log_z[b] = alpha[n, m]


@kernel(EXACT)
def backward(first, last, shares, log_z, lengths, target_lengths, grad, marginals):
    """Compute grad[b] times the probability of each step; other cells are left alone.

    Args:
        first: the first row.
        last: the row behind the last.
        shares: how much of each cell comes by each step, float64 [batch, n+1, m+1, 3].
        log_z: log Z of each row, float64 [batch].
        lengths: length of x of each row, int64 [batch].
        target_lengths: length of y of each row, int64 [batch].
        grad: weight of each row, float64 [batch].
        marginals: float64 [batch, n+1, m+1, 3], filled in.
    """
    mass = np.empty(marginals.shape[1:3])
    for b in range(first, last):
        if log_z[b] == NEG_INF:
            continue
        mass[:] = 0.0
        mass[lengths[b], target_lengths[b]] = grad[b]
        for i in range(lengths[b], -1, -1):
            for j in range(target_lengths[b], -1, -1):
                for k in range(N_OPERATIONS):
                    x, y = _origin(i, j, k)
                    if x >= 0 and y >= 0:
                        moved = mass[i, j] * shares[b, i, j, k]
                        marginals[b, i, j, k] = moved
                        mass[x, y] += moved


@kernel(EXACT)
def _reverse(steps, count):
    """The first `count` steps, last to first."""
    for r in range(count // 2):
        steps[r], steps[count - 1 - r] = steps[count - 1 - r], steps[r]


@kernel(EXACT)
def best_scripts(first, last, scores, lengths, target_lengths, steps, possible):
    """Find the script of the highest score; among ties the operation with the lowest number, from the end.

    Args:
        first: the first row.
        last: the row behind the last.
        scores: scores of the steps into each cell, float64 [batch, n+1, m+1, 3].
        lengths: length of x of each row, int64 [batch].
        target_lengths: length of y of each row, int64 [batch].
        steps: operations of the script, int64 [batch, n+m], filled in.
        possible: whether a row has a script, bool [batch], filled in.
    """
    alpha, came_by = np.empty(scores.shape[1:3]), np.zeros(scores.shape[1:3], np.int8)
    for b in range(first, last):
        for i in range(lengths[b] + 1):
            for j in range(target_lengths[b] + 1):
                best = 0.0 if i == 0 and j == 0 else NEG_INF
                for k in range(N_OPERATIONS):
                    x, y = _origin(i, j, k)
                    if x >= 0 and y >= 0 and alpha[x, y] + scores[b, i, j, k] > best:
                        best, came_by[i, j] = alpha[x, y] + scores[b, i, j, k], k
                alpha[i, j] = best
        i, j, count = lengths[b], target_lengths[b], 0
        possible[b] = alpha[i, j] > NEG_INF
        while possible[b] and i + j > 0:
            steps[b, count] = came_by[i, j]
            i, j = _origin(i, j, came_by[i, j])
            count += 1
        _reverse(steps[b], count)


@kernel(EXACT)
def top_scripts(first, last, scores, lengths, target_lengths, steps, found):
    """Find the k best scripts: descending lists in place of numbers; an origin is operation * k + rank.

    Args:
        first: the first row.
        last: the row behind the last.
        scores: scores of the steps into each cell, float64 [batch, n+1, m+1, 3].
        lengths: length of x of each row, int64 [batch].
        target_lengths: length of y of each row, int64 [batch].
        steps: int64 [k, batch, n+m], filled in.
        found: scores of the scripts, float64 [k, batch], filled in.
    """
    k_best = steps.shape[0]
    shape = (scores.shape[1], scores.shape[2], k_best)
    alpha, origins = np.empty(shape), np.empty(shape, np.int64)
    for b in range(first, last):
        for i in range(lengths[b] + 1):
            for j in range(target_lengths[b] + 1):
                alpha[i, j] = NEG_INF
                if i == 0 and j == 0:
                    alpha[i, j, 0] = 0.0
                for k in range(N_OPERATIONS):
                    x, y = _origin(i, j, k)
                    if x >= 0 and y >= 0:
                        insert_moved(alpha[x, y], scores[b, i, j, k], k * k_best, alpha[i, j], origins[i, j])
        for r in range(k_best):
            i, j, count, rank = lengths[b], target_lengths[b], 0, r
            found[r, b] = alpha[i, j, r]
            while found[r, b] > NEG_INF and i + j > 0:
                origin = origins[i, j, rank]
                steps[r, b, count] = origin // k_best
                i, j = _origin(i, j, origin // k_best)
                rank, count = origin % k_best, count + 1
            _reverse(steps[r, b], count)


@kernel(EXACT)
def sample_scripts(first, last, shares, lengths, target_lengths, seeds, steps):
    """Draw exact samples, from the last cell backwards: steps are drawn by their shares.

    Args:
        first: the first row.
        last: the row behind the last.
        shares: how much of each cell comes by each step, float64 [batch, n+1, m+1, 3].
        lengths: length of x of each row, int64 [batch].
        target_lengths: length of y of each row, int64 [batch].
        seeds: a seed for each sample, int64 [samples, batch].
        steps: int64 [samples, batch, n+m], filled in.
    """
    state = np.empty(1, np.uint64)
    for b in range(first, last):
        for s in range(steps.shape[0]):
            i, j, count, state[0] = lengths[b], target_lengths[b], 0, np.uint64(seeds[s, b])
            while i + j > 0:
                drawn = pick(shares[b, i, j], N_OPERATIONS, uniform(state))
                if i == 0 or j == 0:  # one step is possible, even if shares are NaN
                    drawn = INSERT if i == 0 else DELETE
                steps[s, b, count] = drawn
                i, j = _origin(i, j, drawn)
                count += 1
            _reverse(steps[s, b], count)
