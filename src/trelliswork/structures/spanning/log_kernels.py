"""The matrix-tree theorem in log space, for rows whose scores are too wide for `kernels.py`; same steps, same names.

In a work matrix log A[h, m], nodes low..n are eliminated from n downwards; low is 0 (the root stays) or, for one root
word, 1 (a word stays). Only sums of positive numbers, so logarithms carry them all; `math.md` has the equations.
"""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.arrays import NEG_INF
from trelliswork.runtime.compilation import EXACT, kernel
from trelliswork.runtime.kernel_math import exp, log, log_add, log_arrivals, log_sum


@kernel(EXACT)
def swap(work, n, a, b):
    """Swap two words in a matrix.

    Args:
        work: the matrix, float64 [n+1, n+1], changed in place.
        n: words of the row.
        a: the one word.
        b: the other.
    """
    for m in range(n + 1):
        work[a, m], work[b, m] = work[b, m], work[a, m]
    for h in range(n + 1):
        work[h, a], work[h, b] = work[h, b], work[h, a]


@kernel(EXACT)
def _log_heads(work, low, alive, m, column):
    """Return log Σ_h A[h, m] over the nodes that are alive; log A[m, m] is -inf."""
    for h in range(low, alive + 1):
        column[h] = work[h, m]
    return log_sum(column[low:], alive + 1 - low)


@kernel(EXACT)
def _add_around(row, through, shift, size):
    """Compute row = log(exp(row) + exp(shift + through))."""
    for m in range(1, size):
        way = shift + through[m]
        top = max(row[m], way)
        gap = min(row[m], way) - top if top > NEG_INF else NEG_INF
        row[m] = top + log(1.0 + exp(gap))


@kernel(EXACT)
def eliminate(work, n, low, order, log_d, column):
    """Equation (4) for v = n..low+1; Σ log d_v, -inf if there is no tree.

    Args:
        work: the matrix, float64 [n+1, n+1], changed in place.
        n: words of the row.
        low: the first node of the chart: 0, or 1 without the root.
        order: the words in the order of their elimination, int64 [n+1], changed in place.
        log_d: logarithm of each diagonal entry, float64 [n+1], filled in.
        column: room for n+1 numbers.
    """
    log_det = 0.0
    for v in range(n, low, -1):
        log_d[v] = _log_heads(work, low, v, v, column)
        if log_d[v] == NEG_INF and low == 1:  # v has no head left: it stays, if any, as the root word; take another
            for other in range(v - 1, low - 1, -1):
                if _log_heads(work, low, v, other, column) > NEG_INF:
                    order[v], order[other] = order[other], order[v]
                    swap(work, n, v, other)
                    log_d[v] = _log_heads(work, low, v, v, column)
                    break
        if log_d[v] == NEG_INF:
            return NEG_INF
        for h in range(low, v):
            if work[h, v] > NEG_INF:
                _add_around(work[h], work[v], work[h, v] - log_d[v], v)
                work[h, h] = NEG_INF
        log_det += log_d[v]
    return log_det


@kernel(EXACT)
def _stationary(work, n, log_d, log_pi, terms):
    """Equation (5): log π, and log Σ_r ρ_r π_r."""
    log_pi[1] = 0.0
    for v in range(2, n + 1):
        for m in range(1, v):
            terms[m] = log_pi[m] + work[v, m]
        log_pi[v] = log_sum(terms[1:], v - 1) - log_d[v]
    for v in range(1, n + 1):
        terms[v] = work[0, v] + log_pi[v]
    return log_sum(terms[1:], n)


@kernel(EXACT)
def _root_gradients(work, n, log_d, log_root, log_bar, terms):
    """Compute log g of equation (8): derivatives of log Σ_r ρ_r π_r by π, which the elimination passes on."""
    for r in range(n, 0, -1):
        terms[r] = work[0, r] - log_root
        for v in range(r + 1, n + 1):
            terms[v] = log_bar[v] + work[v, r] - log_d[v]
        log_bar[r] = log_sum(terms[r:], n + 1 - r)


@kernel(EXACT)
def _log_plus(log_sum, rest):
    """Return log(exp(log_sum) + rest) for a rest of any sign, -inf where rounding leaves nothing."""
    if log_sum < 0.0:  # the larger of the two is taken out, so that no exponential overflows
        return np.log(max(np.exp(log_sum) + rest, 0.0))
    return log_sum + np.log1p(max(rest * np.exp(-log_sum), -1.0))


@kernel(EXACT)
def _undo(work, n, low, log_d, log_pi, log_bar, log_gradient, tops, sums):
    """Equations (6) and (7) from the smallest graph to the whole; -inf where A is 0."""
    for v in range(low + 1, n + 1):
        log_arrivals(work[low:v, v], log_gradient[low:v], tops[:v], sums[:v])
        for m in range(1, v):  # log Σ_h G[h, m] A[h, v] / d_v
            sums[m] -= log_d[v]
        rest = 1.0 - np.exp(log_bar[v] + log_pi[v])
        for m in range(1, v):
            rest -= np.exp(sums[m] + work[v, m])
        for h in range(low, v):
            for m in range(1, v):
                tops[m] = log_gradient[h, m] + work[v, m]
            total = _log_plus(log_sum(tops[1:], v - 1), rest)
            log_gradient[h, v] = total - log_d[v] if work[h, v] > NEG_INF else NEG_INF
        for m in range(1, v):
            total = log_add(sums[m], log_bar[v] + log_pi[m] - log_d[v])
            log_gradient[v, m] = total if work[v, m] > NEG_INF else NEG_INF
        log_gradient[v, v] = NEG_INF


@kernel(EXACT)
def log_row(arcs, n, low, posteriors):
    """Return log Z of one row and, unless that array is empty, the arcs' posteriors, whatever the range of scores.

    Args:
        arcs: scores of one row, float64 [n+1, n+1].
        n: words of the row.
        low: the first node of the matrix that is eliminated down to: 0, or 1 without the root.
        posteriors: float64 [n+1, n+1], filled in; empty for none.
    """
    size = n + 1
    work, order = arcs[:size, :size].copy(), np.arange(size)
    log_d, column, sums = np.empty(size), np.empty(size), np.empty(size)
    log_pi, log_bar = np.full(size, NEG_INF), np.full(size, NEG_INF)
    log_root, log_det = 0.0, eliminate(work, n, low, order, log_d, column)
    if low == 1 and log_det > NEG_INF:
        log_root = _stationary(work, n, log_d, log_pi, column)
    if log_det == NEG_INF or log_root == NEG_INF:
        return NEG_INF
    if posteriors.shape[0] == 0:
        return log_det + log_root
    if low == 1:
        _root_gradients(work, n, log_d, log_root, log_bar, column)
    log_gradient = np.full((size, size), NEG_INF)
    _undo(work, n, low, log_d, log_pi, log_bar, log_gradient, column, sums)
    for j in range(1, n + 1):
        if low == 1:
            posteriors[0, order[j]] = min(np.exp(work[0, j] + log_pi[j] - log_root), 1.0)
        for i in range(low, n + 1):
            if i != j:
                h, m = order[i], order[j]
                posteriors[h, m] = min(np.exp(log_gradient[i, j] + arcs[h, m]), 1.0)
    return log_det + log_root
