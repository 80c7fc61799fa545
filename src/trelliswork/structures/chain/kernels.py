"""CPU kernels that sum over the paths of a chain: log Z and its gradient. `path_kernels.py` has those that pick paths.

All take C-contiguous float64 arrays and are bare arithmetic: callers have checked shapes, lengths, NaN and +inf.
`transitions` is [1, 1, c, c] (shared) or [batch, n-1, c, c]; the index `b % len, (t-1) % len` serves both.
Rows `first..last` are done, so that a batch can be split over threads.

Two ways to sum over paths. In **scaled exp space** α is kept as a distribution over tags: one multiply-add an arc
and no logarithm, but weights below 1e-308 vanish. A path that vanishes here could win later, so a *reachable* α
that falls under `SMALLEST` marks the row `wide`, and wide rows are computed again in **log space**. Entries that
real -inf scores make unreachable are exact zeros and mark nothing.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from trelliswork.structures.kernel_math import KERNEL, exp

SMALLEST = 1e-140  # its square is still a normal float64: products of two weights never vanish
NEG_INF = -np.inf


@njit(**KERNEL)
def shifted_exp(scores, weights):
    """weights = exp(scores - highest) entry by entry; returns the highest (0 if all are -inf)."""
    highest = NEG_INF
    for i in range(scores.shape[0]):
        highest = max(highest, scores[i])
    if highest == NEG_INF:
        weights[:] = 0.0
        return 0.0
    for i in range(scores.shape[0]):
        weights[i] = exp(scores[i] - highest)
    return highest


@njit(**KERNEL)
def exp_arcs(transitions, weights, shifts):
    """exp of every transition matrix, each shifted by its own highest score."""
    for b in range(transitions.shape[0]):
        for t in range(transitions.shape[1]):
            shifts[b, t] = shifted_exp(transitions[b, t].ravel(), weights[b, t].ravel())


@njit(**KERNEL)
def _times_matrix(row, matrix, out):
    """out = row @ matrix, four rows of the matrix a pass."""
    c = row.shape[0]
    out[:] = 0.0
    i = 0
    while i + 3 < c:
        m0, m1, m2, m3 = matrix[i], matrix[i + 1], matrix[i + 2], matrix[i + 3]
        r0, r1, r2, r3 = row[i], row[i + 1], row[i + 2], row[i + 3]
        for j in range(c):
            out[j] += r0 * m0[j] + r1 * m1[j] + r2 * m2[j] + r3 * m3[j]
        i += 4
    while i < c:
        r0, m0 = row[i], matrix[i]
        for j in range(c):
            out[j] += r0 * m0[j]
        i += 1


@njit(**KERNEL)
def _vanished(alpha, arc_scores, emission, weights):
    """Is a tag reachable although its weight is (almost) gone? Only then a path may have been lost."""
    c = weights.shape[0]
    for j in range(c):
        if weights[j] < SMALLEST and emission[j] > NEG_INF:
            for i in range(c):
                if alpha[i] > 0.0 and arc_scores[i, j] > NEG_INF:
                    return True
    return False


@njit(**KERNEL)
def forward_scaled(
    first,
    last,
    emissions,
    transitions,
    arcs,
    arc_shifts,
    start,
    end,
    lengths,
    alphas,
    emits,
    finals,
    log_z,
    wide,
):
    """α of [S4.92, 109] as distributions over tags, and log Z [S4.108].

    alphas[b, t] = α_t / Σα_t;  emits[b, t] = e^{emissions} over the same scale;  finals[b] = Σ_j α_L(j) e^{end_j}.
    """
    _, _, c = emissions.shape
    start_weights, end_weights = np.empty(c), np.empty(c)
    start_shift, end_shift = shifted_exp(start, start_weights), shifted_exp(end, end_weights)
    alive, start_arcs, end_arcs = np.ones(c), np.empty((c, c)), np.empty((c, c))
    for i in range(c):  # start and end as arcs from and to anywhere, for the one test of reachability
        start_arcs[i] = start
        end_arcs[:, i] = end
    arrived, weights = np.empty(c), np.empty(c)
    for b in range(first, last):
        length = lengths[b]
        total = start_shift + end_shift
        wide[b] = False
        for t in range(length):
            emission, emit, alpha = emissions[b, t], emits[b, t], alphas[b, t]
            if t == 0:
                arrived[:] = start_weights
            else:
                bb, tt = b % arcs.shape[0], (t - 1) % arcs.shape[1]
                _times_matrix(alphas[b, t - 1], arcs[bb, tt], arrived)
                total += arc_shifts[bb, tt]
            total += shifted_exp(emission, emit)
            scale, least = 0.0, 1.0
            for j in range(c):
                weights[j] = arrived[j] * emit[j]
                scale += weights[j]
                least = min(least, weights[j])
            if least < SMALLEST:
                if t == 0:
                    wide[b] |= _vanished(alive, start_arcs, emission, weights)
                else:
                    wide[b] |= _vanished(alphas[b, t - 1], transitions[bb, tt], emission, weights)
            if wide[b] or scale == 0.0:
                break
            for j in range(c):
                alpha[j] = weights[j] / scale
                emit[j] /= scale
            total += math.log(scale)
        finals[b], log_z[b] = 0.0, NEG_INF
        if wide[b] or scale == 0.0:
            continue
        final = 0.0
        for j in range(c):
            final += alphas[b, length - 1, j] * end_weights[j]
        if final < SMALLEST:
            weights[:] = final
            wide[b] = _vanished(alphas[b, length - 1], end_arcs, alive, weights)
        if final > 0.0 and not wide[b]:
            finals[b], log_z[b] = final, total + math.log(final)


@njit(**KERNEL)
def backward_scaled(first, last, alphas, emits, arcs, end, finals, lengths, grad, d_emissions, outgoing):
    """Posteriors times the incoming gradient [S4.107, 115], and what the transition gradient needs.

    β_L = e^{end} / final;  d_emissions = g α β;  outgoing[b, t] = g e^{emission} β;  β_{t-1} = arcs @ outgoing_t.
    p(y_{t-1}=i, y_t=j) g = α_{t-1}(i) arcs_ij outgoing_t(j) [S4.106]. A row with Z = 0 or g = 0 stays 0.
    """
    _, _, c = alphas.shape
    end_weights, beta = np.empty(c), np.empty(c)
    shifted_exp(end, end_weights)
    for b in range(first, last):
        if finals[b] == 0.0 or grad[b] == 0.0:
            continue
        for j in range(c):
            beta[j] = end_weights[j] * (grad[b] / finals[b])
        for t in range(lengths[b] - 1, -1, -1):
            alpha, emit, out = alphas[b, t], emits[b, t], outgoing[b, t]
            for j in range(c):
                d_emissions[b, t, j] = alpha[j] * beta[j]
            if t == 0:
                break
            for j in range(c):
                out[j] = emit[j] * beta[j]
            matrix = arcs[b % arcs.shape[0], (t - 1) % arcs.shape[1]]
            for i in range(c):
                row, weight = matrix[i], 0.0
                for j in range(c):
                    weight += row[j] * out[j]
                # β of an unreachable tag is unbounded and meets only α = 0: keep 0 * inf out.
                beta[i] = weight if alphas[b, t - 1, i] > 0.0 else 0.0


@njit(**KERNEL)
def arc_posteriors(alphas, arcs, outgoing, d_transitions):
    """d_transitions[b, t-1, i, j] = α_{t-1}(i) arcs_ij outgoing_t(j), for arcs that vary by position."""
    batch, n, c = alphas.shape
    for b in range(batch):
        for t in range(1, n):
            matrix = arcs[b % arcs.shape[0], (t - 1) % arcs.shape[1]]
            for i in range(c):
                for j in range(c):
                    d_transitions[b, t - 1, i, j] = alphas[b, t - 1, i] * matrix[i, j] * outgoing[b, t, j]


@njit(**KERNEL)
def _log_arrivals(log_alpha, arc_scores, highest, arrived):
    """arrived_j = log Σ_i exp(log_alpha_i + arc_ij) [S3's logadd]; -inf where nothing arrives."""
    c = arrived.shape[0]
    highest[:] = NEG_INF
    for i in range(c):
        from_i, row = log_alpha[i], arc_scores[i]
        for j in range(c):
            highest[j] = max(highest[j], from_i + row[j])
    for j in range(c):
        highest[j] = highest[j] if highest[j] > NEG_INF else 0.0
    arrived[:] = 0.0
    for i in range(c):
        from_i, row = log_alpha[i], arc_scores[i]
        for j in range(c):
            arrived[j] += exp(from_i + row[j] - highest[j])
    for j in range(c):
        arrived[j] = highest[j] + math.log(arrived[j]) if arrived[j] > 0.0 else NEG_INF


@njit(**KERNEL)
def _subtract_highest(row):
    """row -= max(row); returns the maximum (-inf and no change if all are)."""
    highest = NEG_INF
    for j in range(row.shape[0]):
        highest = max(highest, row[j])
    if highest > NEG_INF:
        for j in range(row.shape[0]):
            row[j] -= highest
    return highest


@njit(**KERNEL)
def forward_log(rows, emissions, transitions, start, end, lengths, log_alphas, arrivals, log_z):
    """δ_t(j) = log Σ_i exp(δ_{t-1}(i) + a_ij) + e_t(j) [S3.9], each δ_t shifted so that its highest is 0.

    log_alphas and arrivals [len(rows), n, c] keep δ_t and its logadd for `backward_log`.
    """
    c = emissions.shape[2]
    highest, last = np.empty(c), np.empty(c)
    for r in range(rows.shape[0]):
        b, total = rows[r], 0.0
        for t in range(lengths[b]):
            log_alpha, arrived = log_alphas[r, t], arrivals[r, t]
            if t == 0:
                arrived[:] = start
            else:
                arc_scores = transitions[b % transitions.shape[0], (t - 1) % transitions.shape[1]]
                _log_arrivals(log_alphas[r, t - 1], arc_scores, highest, arrived)
            log_alpha[:] = emissions[b, t]
            total += _subtract_highest(log_alpha)
            for j in range(c):
                log_alpha[j] += arrived[j]
            total += _subtract_highest(log_alpha)
        for j in range(c):
            last[j] = log_alphas[r, lengths[b] - 1, j] + end[j]
        total += _subtract_highest(last)
        weight = 0.0
        for j in range(c):
            weight += exp(last[j])
        log_z[b] = total + math.log(weight) if total > NEG_INF else NEG_INF


@njit(**KERNEL)
def backward_log(
    rows, transitions, end, lengths, log_alphas, arrivals, log_z, grad, d_emissions, d_transitions
):
    """∂C/∂δ_{t-1}(i) = Σ_j ∂C/∂δ_t(j) exp(δ_{t-1}(i) + a_ij - logadd_j) [S3]: every factor is a probability.

    Each summand is the gradient of one arc; d_transitions may sum over rows or positions: [1|batch, 1|n-1, c, c].
    """
    c = end.shape[0]
    d_delta, d_before, arrived = np.empty(c), np.empty(c), np.empty(c)
    for r in range(rows.shape[0]):
        b = rows[r]
        if log_z[b] == NEG_INF or grad[b] == 0.0:
            continue
        for j in range(c):
            d_before[j] = log_alphas[r, lengths[b] - 1, j] + end[j]
        shifted_exp(d_before, d_delta)
        scale = grad[b] / d_delta.sum()
        for j in range(c):
            d_delta[j] *= scale
        for t in range(lengths[b] - 1, -1, -1):
            d_emissions[b, t] = d_delta
            if t == 0:
                break
            arc_scores = transitions[b % transitions.shape[0], (t - 1) % transitions.shape[1]]
            d_arcs = d_transitions[b % d_transitions.shape[0], (t - 1) % d_transitions.shape[1]]
            for j in range(c):  # an unreachable tag has gradient 0; +inf makes its factors exactly 0
                arrived[j] = arrivals[r, t, j] if arrivals[r, t, j] > NEG_INF else np.inf
            for i in range(c):
                from_i, row, d_row, weight = log_alphas[r, t - 1, i], arc_scores[i], d_arcs[i], 0.0
                for j in range(c):
                    posterior = d_delta[j] * exp(from_i + row[j] - arrived[j])
                    d_row[j] += posterior
                    weight += posterior
                d_before[i] = weight
            d_delta[:] = d_before
