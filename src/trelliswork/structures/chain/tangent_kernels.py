"""CPU kernels that carry a direction along: how posteriors change when scores move.

All in conditional probabilities w_t(i, j) = p(y_{t-1} = i | y_t = j, x_1..t), which lie in 0..1 whatever the scores:
those of scaled exp space, or of log space for wide rows. Directions come from outside and may hold anything, so NaN is
kept.
"""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.compilation import FAST_WITH_NAN, kernel
from trelliswork.runtime.kernel_math import at, exp
from trelliswork.structures.chain.kernels import NEG_INF, SMALLEST, shifted_exp


@kernel(FAST_WITH_NAN)
def _before_scaled(alpha, arcs, totals, before):
    """before[i, j] = w(i, j) = α̂_i A_ij / Σ_i α̂_i A_ij; 0 where nothing leads to j."""
    c = alpha.shape[0]
    totals[:] = 0.0
    for i in range(c):
        for j in range(c):
            before[i, j] = alpha[i] * arcs[i, j]
            totals[j] += before[i, j]
    for j in range(c):  # a tag that can be reached has more than SMALLEST; what is less than normal has no inverse
        totals[j] = 1.0 / totals[j] if totals[j] > SMALLEST else 0.0
    for i in range(c):
        for j in range(c):
            before[i, j] *= totals[j]


@kernel(FAST_WITH_NAN)
def _before_log(log_alpha, arc_scores, arrived, before):
    """The same from log α and the logadd of what arrives at j."""
    c = arrived.shape[0]
    for i in range(c):
        for j in range(c):
            possible = log_alpha[i] > NEG_INF and arc_scores[i, j] > NEG_INF
            before[i, j] = exp(min(log_alpha[i] + arc_scores[i, j] - arrived[j], 0.0)) if possible else 0.0


@kernel(FAST_WITH_NAN)
def _before(b, t, r, transitions, arcs, alphas, log_alphas, arrivals, totals, before):
    """w_t of row b, which is row r of those in log space, or of none (-1)."""
    if r < 0:
        _before_scaled(alphas[b, t - 1], arcs[at(b, arcs.shape[0]), at(t - 1, arcs.shape[1])], totals, before)
    else:
        scores = transitions[at(b, transitions.shape[0]), at(t - 1, transitions.shape[1])]
        _before_log(log_alphas[r, t - 1], scores, arrivals[r, t], before)


@kernel(FAST_WITH_NAN)
def _push(before, x_before, v_arcs, means):
    """means_j = Σ_i w(i, j) (x_{t-1}(i) + v_ij): how log Σ_i of what arrives at j moves."""
    c = means.shape[0]
    means[:] = 0.0
    for i in range(c):
        for j in range(c):
            means[j] += before[i, j] * (x_before[i] + v_arcs[i, j])


@kernel(FAST_WITH_NAN)
def _pull(before, x_before, v_arcs, means, p, d_p, d_arcs, p_before, d_before):
    """From p(y_t), its change and w to those of y_{t-1}; adds the change of each arc's posterior to d_arcs."""
    c = means.shape[0]
    for i in range(c):
        weight, change = 0.0, 0.0
        for j in range(c):
            moved = before[i, j] * (d_p[j] + p[j] * (x_before[i] + v_arcs[i, j] - means[j]))
            d_arcs[i, j] += moved
            change += moved
            weight += before[i, j] * p[j]
        p_before[i], d_before[i] = weight, change
    for i in range(c):
        p[i], d_p[i] = p_before[i], d_before[i]


@kernel(FAST_WITH_NAN)
def _last(alpha, is_log, end, x_last, p, d_p):
    """p(y_L) and its change: p_j (x_j - Σ_i p_i x_i)."""
    c = end.shape[0]
    for j in range(c):
        d_p[j] = alpha[j] + end[j] if is_log else end[j]
    shifted_exp(d_p, p)
    total, mean = 0.0, 0.0
    for j in range(c):
        p[j] = p[j] if is_log else p[j] * alpha[j]
        total += p[j]
    for j in range(c):
        p[j] /= total
        mean += p[j] * x_last[j] if p[j] > 0.0 else 0.0
    for j in range(c):
        d_p[j] = p[j] * (x_last[j] - mean) if p[j] > 0.0 else 0.0


@kernel(FAST_WITH_NAN)
def posterior_changes(first, last, wide_at, scores, arcs, run, v_emissions, v_arcs, d_emissions, d_transitions):
    """d/dε of the posteriors at scores + ε v: forwards x_t = d log α_t / dε, backwards the changes of p(y_t) and arcs.

    `wide_at[b]` is the place of row b in log_alphas and arrivals, -1 for rows in scaled exp space. `v_arcs` is
    [1|batch, 1|n-1, c, c]. Shared arcs are summed over the rows and returned, with the changes of start and end.
    `scores` are transitions, end, and the lengths; `run` alphas, log_alphas, arrivals and log_z.
    """
    transitions, end, lengths = scores
    alphas, log_alphas, arrivals, log_z = run
    n, c = v_emissions.shape[1:]
    shared = np.zeros((1, 1, c, c))
    target = d_transitions if d_transitions.shape[0] > 0 else shared
    d_start, d_end = np.zeros(c), np.zeros(c)
    x, means, before, totals = np.empty((n, c)), np.empty((n, c)), np.empty((c, c)), np.empty(c)
    p, d_p, p_before, d_before = np.empty(c), np.empty(c), np.empty(c), np.empty(c)
    for b in range(first, last):
        if log_z[b] == NEG_INF:
            continue
        r, length = wide_at[b], lengths[b]
        for t in range(length):
            if t > 0:
                _before(b, t, r, transitions, arcs, alphas, log_alphas, arrivals, totals, before)
                _push(before, x[t - 1], v_arcs[at(b, v_arcs.shape[0]), at(t - 1, v_arcs.shape[1])], means[t])
            for j in range(c):
                x[t, j] = v_emissions[b, t, j] + (means[t, j] if t > 0 else 0.0)
        if r < 0:
            _last(alphas[b, length - 1], False, end, x[length - 1], p, d_p)
        else:
            _last(log_alphas[r, length - 1], True, end, x[length - 1], p, d_p)
        for j in range(c):
            d_end[j] += d_p[j]
        for t in range(length - 1, -1, -1):
            for j in range(c):
                d_emissions[b, t, j] = d_p[j]
            if t == 0:
                break
            _before(b, t, r, transitions, arcs, alphas, log_alphas, arrivals, totals, before)
            direction = v_arcs[at(b, v_arcs.shape[0]), at(t - 1, v_arcs.shape[1])]
            moved = target[at(b, target.shape[0]), at(t - 1, target.shape[1])]
            _pull(before, x[t - 1], direction, means[t], p, d_p, moved, p_before, d_before)
        for j in range(c):
            d_start[j] += d_p[j]
    return shared, d_start, d_end
