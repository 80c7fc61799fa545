"""CPU kernels that do both passes over dual numbers: how posteriors of segments change when scores move.

As in `chain/dual_kernels.py`: values are in scaled exp space, or for wide rows the conditional probabilities of log
space, of the label before a segment and of its duration, with ones for α and γ. NaN in a direction is kept.
"""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.compilation import FAST, FAST_WITH_NAN, kernel
from trelliswork.runtime.kernel_math import exp, shifted_exp
from trelliswork.structures.chain.dual_kernels import at_end, pull, push
from trelliswork.structures.chain.kernels import weigh
from trelliswork.structures.segments.scaled_kernels import HIGHEST_LOG

NEG_INF, POS_INF = -np.inf, np.inf


@kernel(FAST, inline=True)
def _weights(b, i, m, is_log, segments, shifts, run, weights):
    """weights(d, y) = e^{f(i, d, y)} relative to the levels of γ_i and α_{i+d}; in log space p(d | ends at i+d, y)."""
    alphas, gammas, levels = run
    offset = 0.0 if is_log else levels[b, i] + (shifts[0] if i > 0 else shifts[1])
    for d in range(m):
        j = i + 1 + d
        if is_log:
            offset -= levels[b, j]
        for y in range(weights.shape[1]):
            score = segments[b, i, d, y]
            if is_log:  # +inf makes the factor of an unreachable label exactly 0
                reached = alphas[b, j, y] if alphas[b, j, y] > NEG_INF else POS_INF
                weights[d, y] = min(score + (gammas[b, i, y] + offset) - reached, 0.0)
            else:
                weights[d, y] = min(score + (offset - levels[b, j]), HIGHEST_LOG)
    flat = weights.ravel()
    for e in range(m * weights.shape[1]):
        flat[e] = exp(flat[e])


@kernel(FAST, inline=True)
def _arcs_at(b, i, is_log, transitions, run, arcs):
    """In log space, arcs(x, y) = p(x ends at i | y begins there); else they stay as they are."""
    if is_log:
        alphas, gammas, _ = run
        for x in range(arcs.shape[0]):
            for y in range(arcs.shape[0]):
                reached = gammas[b, i, y] if gammas[b, i, y] > NEG_INF else POS_INF
                arcs[x, y] = min(alphas[b, i, x] + transitions[x, y] - reached, 0.0)
        flat = arcs.ravel()
        for e in range(flat.shape[0]):
            flat[e] = exp(flat[e])


@kernel(FAST_WITH_NAN, inline=True)
def _leave(m, weights, v_segment, gamma, change, betas, out, d_segment):
    """Add β after a segment times its weight to out, over durations, and set the changes of the posteriors."""
    c = gamma.shape[0]
    for y in range(c):
        out[0, y] = out[1, y] = 0.0
    for d in range(m):
        for y in range(c):
            going = weights[d, y] * betas[d, 0, y]
            moved = weights[d, y] * betas[d, 1, y] + going * v_segment[d, y]
            out[0, y] += going
            out[1, y] += moved
            d_segment[d, y] = change[y] * going + gamma[y] * moved


@kernel(FAST_WITH_NAN)
def marginals_jvp(first, last, is_log, scores, factors, run, left_out, v_segments, v_arcs, d_segments):
    """d/dε of the posteriors at scores + ε v: of segments in place, of label pairs, start and end summed and returned.

    `scores` are segments, transitions, start, end, and the lengths; `factors` exp of the arcs and their shifts; `run`
    alphas, gammas, and levels of `forward_scaled` or steps of `forward_log`; `v_arcs` [batch, c, c]. Rows that are
    `left_out` stay as they are.

    Args:
        first: the first row.
        last: the row behind the last.
        is_log: whether `run` is that of `forward_log`.
        scores: segments, transitions, start, end and lengths.
        factors: exp of the transitions, and their shifts.
        run: arrays of the pass forwards.
        left_out: rows that stay as they are, bool [batch].
        v_segments: how the segments move, float64 [batch, n, k, c].
        v_arcs: how the transitions move, float64 [batch, c, c].
        d_segments: how the posteriors of segments change, float64 [batch, n, k, c], filled in.
    """
    (segments, transitions, _, end, lengths), (arcs, shifts) = scores, factors
    _, n, k, c = segments.shape
    d_arcs, d_start, d_end = np.zeros((c, c)), np.zeros(c), np.zeros(c)
    ones, weights, matrix = np.ones((n + 1, c)), np.empty((k, c)), arcs.copy()
    betas, out, entered, left = np.empty((n + 1, 2, c)), np.empty((2, c)), np.empty((n, c)), np.empty((n + 1, c))
    for b in range(first, last):
        if left_out[b]:
            continue
        length = lengths[b]
        alpha, gamma = (ones, ones) if is_log else (run[0][b], run[1][b])
        entered[0, :] = 0.0
        left[:, :] = 0.0
        for i in range(length):
            if i > 0:
                _arcs_at(b, i, is_log, transitions, run, matrix)
                push(alpha[i], left[i], matrix, v_arcs[b], entered[i])
            m = min(k, length - i)
            _weights(b, i, m, is_log, segments, shifts, run, weights)
            for d in range(m):
                for y in range(c):
                    left[i + 1 + d, y] += (entered[i, y] + gamma[i, y] * v_segments[b, i, d, y]) * weights[d, y]
        if is_log:
            weigh(run[0][b, length], True, end, betas[length, 0])
        else:
            shifted_exp(end, betas[length, 0])
        at_end(alpha[length], left[length], betas[length])
        for i in range(length, -1, -1):
            if i < length:
                m = min(k, length - i)
                _weights(b, i, m, is_log, segments, shifts, run, weights)
                _leave(m, weights, v_segments[b, i], gamma[i], entered[i], betas[i + 1 :], out, d_segments[b, i])
            if 0 < i < length:
                _arcs_at(b, i, is_log, transitions, run, matrix)
                pull(alpha[i], left[i], matrix, v_arcs[b], out, betas[i], d_arcs)
            for y in range(c):  # β of an unreachable label is unbounded and meets only α = 0: keep 0 * inf out
                if alpha[i, y] == 0.0:
                    betas[i, 0, y] = betas[i, 1, y] = 0.0
        for y in range(c):
            d_start[y] += gamma[0, y] * out[1, y]
            d_end[y] += alpha[length, y] * betas[length, 1, y] + left[length, y] * betas[length, 0, y]
    return d_arcs, d_start, d_end
