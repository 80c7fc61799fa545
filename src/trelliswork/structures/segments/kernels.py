"""CPU kernels that sum over segmentations: log Z and its gradient. `path_kernels.py` has those that pick some.

`parts` are the scores of segments, whole or factored: `part_kernels.py` reads them. `scaled_kernels.py` is the faster
way for whole ones of moderate size; these are for all.

All take C-contiguous float64 arrays and are bare arithmetic: callers have checked shapes, lengths, NaN and +inf.
`transitions` is [c, c], or [0, 0] for the 0th order. Rows `first..last` are done, so that a batch can be split over
threads.

α and γ are kept in log space, each position shifted so that the highest α is 0; `steps[b, j]` is what the shift of j
adds to that of j-1, so that scores are only ever compared over the span of one segment, however long the row. Going
from α to γ is a matrix product in exp space; a position where that could lose a reachable label is done in log space.
"""

from __future__ import annotations

import math

import numpy as np

from trelliswork.runtime.arrays import NEG_INF
from trelliswork.runtime.compilation import FAST, ORDERED, kernel
from trelliswork.runtime.kernel_math import exp, highest, log, log_arrivals, subtract_highest, times_matrix
from trelliswork.structures.chain.kernels import SMALLEST, last_posteriors, some_below, vanished
from trelliswork.structures.segments.part_kernels import collect, n_durations, segment_scores

LOG_SMALLEST = math.log(SMALLEST)
POS_INF = np.inf


@kernel(ORDERED, inline=True)
def _joined(gamma, score, offset):
    """gamma + score - offset in one order, forward and back: posteriors are ratios of the two."""
    return score + (gamma - offset)


@kernel(FAST)
def _enter(log_alpha, transitions, arcs, arc_shift, weights, entered):
    """Compute γ(y) = log Σ_x exp(α(x) + a_xy); without transitions the same sum for every label."""
    c = entered.shape[0]
    if transitions.shape[0] == 0:
        total = 0.0
        for x in range(c):
            total += exp(log_alpha[x])
        gamma = math.log(total) if total > 0.0 else NEG_INF
        for y in range(c):
            entered[y] = gamma
        return
    for y in range(c):
        weights[y] = exp(log_alpha[y])
    times_matrix(weights, arcs, entered)
    if some_below(entered, SMALLEST) and vanished(log_alpha, NEG_INF, transitions, np.zeros(c), entered, SMALLEST):
        log_arrivals(log_alpha, transitions, weights, entered)
        return
    for y in range(c):
        entered[y] = arc_shift + log(entered[y])


@kernel(FAST)
def _arrive(parts, b, gammas, steps, j, m, arrivals, weights, log_alpha):
    """Compute α_j(y) = log Σ_d exp(γ_{j-d}(y) + f(j-d, d, y)), relative to the shift of position j-1; m durations.

    All durations and labels are exponentiated in one run, with one shift; if that loses a label, each gets its own.
    """  # [S0.3]
    c, offset = log_alpha.shape[0], 0.0
    segment_scores(parts, b, j - 1, False, m, arrivals)
    for d in range(m):
        gamma, arrival = gammas[j - 1 - d], arrivals[d * c : d * c + c]
        for y in range(c):
            arrival[y] = _joined(gamma[y], arrival[y], offset)
        offset += steps[j - 1 - d]
    top = highest(arrivals, m * c)
    if top == NEG_INF:
        for y in range(c):
            log_alpha[y] = NEG_INF
        return
    for e in range(m * c):
        weights[e] = exp(arrivals[e] - top)
    for y in range(c):  # the sums are made in place: `log_alpha` holds them until their logarithms are taken
        log_alpha[y] = weights[y]
    for d in range(1, m):
        weight = weights[d * c : d * c + c]
        for y in range(c):
            log_alpha[y] += weight[y]
    if some_below(log_alpha, SMALLEST):
        log_arrivals(np.zeros(m), arrivals[: m * c].reshape((m, c)), weights[:c], log_alpha)
        return
    for y in range(c):
        log_alpha[y] = top + log(log_alpha[y])


@kernel(FAST)
def forward_log(first, last, scores, arcs, arc_shift, run):
    """Compute α and γ and log Z: alphas[b, j] for j = 1..L, gammas[b, i] for i = 0..L-1, steps[b, j].

    `scores` are parts, transitions, start, end, and the lengths; `run` alphas, gammas, steps and log_z.

    Args:
        first: the first row.
        last: the row behind the last.
        scores: parts, transitions, start, end and lengths.
        arcs: exp of the transitions, shifted, float64 [c, c].
        arc_shift: what the transitions were shifted by.
        run: alphas, gammas, steps and log_z, filled in.
    """  # [S0.3; S0.5]
    parts, transitions, start, end, lengths = scores
    alphas, gammas, steps, log_z = run
    k, c = n_durations(parts), start.shape[0]
    arrivals, weights, tops = np.empty(k * c), np.empty(k * c), np.empty(c)
    for b in range(first, last):
        length, total = lengths[b], 0.0
        steps[b, 0] = 0.0
        for y in range(c):
            gammas[b, 0, y] = start[y]
        for j in range(1, length + 1):
            log_alpha = alphas[b, j]
            _arrive(parts, b, gammas[b], steps[b], j, min(k, j), arrivals, weights, log_alpha)
            step = subtract_highest(log_alpha)
            steps[b, j] = step = step if step > NEG_INF else 0.0
            total += step
            if j < length:
                _enter(log_alpha, transitions, arcs, arc_shift, tops, gammas[b, j])
        log_z[b] = total + last_posteriors(alphas[b, length], end, tops)


@kernel(FAST)
def _leave(gamma, alphas, steps, ended, i, m, posteriors, started):
    """Compute p(i, d, y) = p(y ends at i+d) exp(γ_i(y) + f(i, d, y) - α_{i+d}(y)) for d <= m; started sums over d.

    `posteriors` holds f(i, d, y) before and p(i, d, y) after.
    """  # [S0.6, 10]
    c, offset = gamma.shape[0], 0.0
    for y in range(c):
        started[y] = 0.0
    for d in range(m):
        offset += steps[i + 1 + d]
        row, log_alpha, after = posteriors[d * c : d * c + c], alphas[i + 1 + d], ended[i + 1 + d]
        for y in range(c):  # an unreachable label has posterior 0; +inf makes its factor exactly 0
            reached = log_alpha[y] if log_alpha[y] > NEG_INF else POS_INF
            posterior = after[y] * exp(_joined(gamma[y], row[y], offset) - reached)
            row[y] = posterior
            started[y] += posterior


@kernel(FAST)
def _is_exact(gamma, arc_shift):
    """Return True if `_enter` needed log space here."""
    for y in range(gamma.shape[0]):
        if NEG_INF < gamma[y] < arc_shift + LOG_SMALLEST:
            return True
    return False


@kernel(FAST)
def _return(log_alpha, gamma, started, transitions, arcs, arc_shift, works, ended, d_scaled, d_arcs):
    """Compute p(x, y at this boundary) = p(y starts) exp(α(x) + a_xy - γ(y)); ended_x sums over y.

    `d_scaled` collects what is still to be multiplied by exp of the arcs, `d_arcs` the rest.
    """  # [S0.6, 8]
    c, (weights, ratios) = gamma.shape[0], works
    if transitions.shape[0] == 0:
        total = 0.0
        for y in range(c):
            total += started[y]
        for x in range(c):
            ended[x] = total * exp(log_alpha[x] - gamma[0]) if gamma[0] > NEG_INF else 0.0
    elif _is_exact(gamma, arc_shift):
        for y in range(c):
            ratios[y] = gamma[y] if gamma[y] > NEG_INF else POS_INF
        for x in range(c):
            weight = 0.0
            for y in range(c):
                posterior = started[y] * exp(log_alpha[x] + transitions[x, y] - ratios[y])
                d_arcs[x, y] += posterior
                weight += posterior
            ended[x] = weight
    else:
        for y in range(c):
            weights[y] = exp(log_alpha[y])
            ratios[y] = started[y] / exp(gamma[y] - arc_shift) if gamma[y] > NEG_INF else 0.0  # at most log c
        for x in range(c):
            weight, row, d_row, total = weights[x], arcs[x], d_scaled[x], 0.0
            for y in range(c):
                total += row[y] * ratios[y]
                d_row[y] += weight * ratios[y]
            ended[x] = weight * total


@kernel(FAST)
def backward_log(first, last, scores, arcs, arc_shift, run, grad, gradients):
    """Compute posteriors times the incoming gradient: of segments, label pairs, first and last labels.

    `scores` and `run` are as in `forward_log`; `gradients` are those of the parts, d_arcs [batch, c, c] (or
    [batch, 0, 0]), d_start and d_end [batch, c], which start as 0.

    Args:
        first: the first row.
        last: the row behind the last.
        scores: parts, transitions, start, end and lengths.
        arcs: exp of the transitions, shifted, float64 [c, c].
        arc_shift: what the transitions were shifted by.
        run: alphas, gammas, steps and log_z, as `forward_log` fills them in.
        grad: weight of each row, float64 [batch].
        gradients: derivatives by the parts, arcs, start and end; start as 0, filled in.
    """  # [S0.7-8, 10]
    parts, transitions, _, end, lengths = scores
    alphas, gammas, steps, log_z = run
    d_parts, d_arcs, d_start, d_end = gradients
    n, k, c = gammas.shape[1], n_durations(parts), end.shape[0]
    ended, started, weights, ratios = np.empty((n + 1, c)), np.empty(c), np.empty(c), np.empty(c)
    d_scaled, posteriors = np.empty(arcs.shape), np.empty(k * c)
    for b in range(first, last):
        length = lengths[b] if log_z[b] > NEG_INF and grad[b] != 0.0 else 0
        if length == 0:
            continue
        for x in range(arcs.shape[0]):
            for y in range(arcs.shape[0]):
                d_scaled[x, y] = 0.0
        last_posteriors(alphas[b, length], end, weights)
        for y in range(c):
            ended[length, y] = d_end[b, y] = grad[b] * weights[y]
        for i in range(length - 1, -1, -1):
            gamma, m = gammas[b, i], min(k, length - i)
            segment_scores(parts, b, i, True, m, posteriors)
            _leave(gamma, alphas[b], steps[b], ended, i, m, posteriors, started)
            collect(d_parts, b, i, m, posteriors)
            if i > 0:
                _return(
                    alphas[b, i], gamma, started, transitions, arcs, arc_shift, (weights, ratios),
                    ended[i], d_scaled, d_arcs[b],
                )  # fmt: skip
        for y in range(c):
            d_start[b, y] = started[y]
        for x in range(arcs.shape[0]):
            for y in range(arcs.shape[0]):
                d_arcs[b, x, y] += d_scaled[x, y] * arcs[x, y]
