"""CPU kernels for log Z and its gradient in scaled exp space: three times as fast as `kernels.py`, not for all scores.

Same conventions as there. A score is exponentiated once on the way forward and once on the way back; everything else
is multiply-adds. A label that vanishes here could win later, so a *reachable* weight that falls under `SMALLEST` marks
the row `wide`, and wide rows are left to log space. Labels that real -inf scores make unreachable are exact zeros and
mark nothing.

α at boundary j is `alphas[b, j]` times e^{levels[b, j]}, its highest near 1; γ is `gammas[b, j]` times e^{level + shift
of the arcs}. Levels and shifts are whole numbers: their differences are exact, however long the row.

The segments that start at i end at the boundaries i+1, i+2, ...: with [n, c] tables their scores [k, c] and the α that
they add to lie in memory in the same order, and one flat loop does all durations and labels. Scores are taken in both
shapes, `segments` [batch, n, k, c] and `scores` [batch, n, k c]: a reshape for each position would cost more than it.
"""

from __future__ import annotations

import math

import numpy as np

from trelliswork.runtime.arrays import NEG_INF
from trelliswork.runtime.compilation import FAST, ORDERED, kernel
from trelliswork.runtime.kernel_math import exp, highest, times_matrix
from trelliswork.structures.chain.kernels import SMALLEST, add_arcs, some_below, vanished

DRIFT = 100.0  # how far weights may be from 1 before the common level of what is being added up follows them
MOST_LIFTED = 345.0  # what was lost before a level sank by this much is still below rounding behind it
HIGHEST_LOG = 330.0  # log of the highest weight that a reachable segment can have


@kernel(ORDERED, inline=True)
def _relative(score, level, reached):
    """Return score + (level - reached), in this order: the difference is exact."""
    return score + (level - reached)


@kernel(FAST)
def _whole_shift(scores):
    """Return the highest score rounded up; 0 if all are -inf or there are none."""
    top = highest(scores, scores.shape[0]) if scores.shape[0] > 0 else NEG_INF
    return np.ceil(top) if top > NEG_INF else 0.0


@kernel(FAST)
def exp_arcs(transitions, start, end, arcs, shifts):
    """Compute arcs = exp(transitions - shift); fills in the shifts of transitions, start and end scores.

    Args:
        transitions: [c, c], indexed [from, to]; empty for 0.
        start: [c].
        end: [c].
        arcs: float64 [c, c], filled in.
        shifts: float64 [3], filled in.
    """
    shifts[0], shifts[1], shifts[2] = _whole_shift(transitions.ravel()), _whole_shift(start), _whole_shift(end)
    for x in range(arcs.shape[0]):
        for y in range(arcs.shape[0]):
            arcs[x, y] = exp(transitions[x, y] - shifts[0])


@kernel(FAST)
def _tile(row, m, tiled):
    """tiled [m, c]: m copies of the row; whether any of it is above 0."""
    above = 0
    for y in range(row.shape[0]):
        above += row[y] > 0.0
    for d in range(m):
        for y in range(row.shape[0]):
            tiled[d, y] = row[y]
    return above > 0


@kernel(FAST)
def _alpha_lost(segments, gammas, j, alpha, bound):
    """Return True if there is a label whose weight is (almost) gone although a segment leads to it."""
    _, k, c = segments.shape
    for y in range(c):
        if alpha[y] < bound:
            for d in range(min(k, j)):
                if gammas[j - 1 - d, y] > 0.0 and segments[j - 1 - d, d, y] > NEG_INF:
                    return True
    return False


@kernel(FAST)
def _scale(flat, size, factor):
    for e in range(size):
        flat[e] *= factor


@kernel(FAST)
def _sink(pending, size, level, top_log, levels, i, k):
    """Return the new level when α has fallen far below the old one; +inf if too much may have been lost for that."""
    above = highest(pending, size) if size > 0 else 0.0
    change = np.ceil(max(top_log, math.log(above))) if above > 0.0 else np.floor(top_log)
    if change >= 0:
        return level
    highest_level = level
    for before in range(max(0, i - k), i + 1):
        highest_level = max(highest_level, levels[before])
    if highest_level - (level + change) > MOST_LIFTED:
        return np.inf
    _scale(pending, size, math.exp(-change))
    return level + change


@kernel(FAST)
def _push(scores, top, size, tiled, entered, level, pending):
    """Add γ_i(y) e^{f(i, d, y)} to α_{i+d}(y) for all d, y; returns the level, which rises with the scores."""
    # [S0.3]
    if top == NEG_INF:
        return level
    if entered + top - level > DRIFT:
        higher = np.ceil(entered + top)
        _scale(pending, size, math.exp(level - higher))
        level = higher
    offset = entered - level
    for e in range(size):
        pending[e] += tiled[e] * exp(scores[e] + offset)
    return level


@kernel(FAST)
def _enter(alpha, arcs, gamma):
    """Compute γ(y) = Σ_x α(x) e^{a_xy}; without transitions the same sum for every label."""
    if arcs.shape[0] > 0:
        times_matrix(alpha, arcs, gamma)
        return
    total = 0.0
    for x in range(alpha.shape[0]):
        total += alpha[x]
    for y in range(gamma.shape[0]):
        gamma[y] = total


@kernel(FAST)
def _row_forward(segments, scores, transitions, arcs, shifts, length, alphas, gammas, levels, works):
    """Return α and γ of one row; False if it is wide."""
    _, k, c = segments.shape
    tops, push_levels, tiled, zeros = works
    table, copies = alphas.ravel(), tiled.ravel()
    for e in range((length + 1) * c):
        table[e] = 0.0
    for i in range(length):  # apart from the loop below, which is slower by half with a search in it
        tops[i] = highest(scores[i], min(k, length - i) * c)
    levels[0] = level = 0.0
    for i in range(length):
        m, j = min(k, length - i), i + 1
        if _tile(gammas[i], m, tiled):
            entered = levels[i] + (shifts[0] if i > 0 else shifts[1])
            level = _push(scores[i], tops[i], m * c, copies, entered, level, table[j * c : (j + m) * c])
        push_levels[i] = level
        alpha = alphas[j]
        top = highest(alpha, c)
        bound = SMALLEST * max(1.0, top)  # α is divided by `top` below, which must not take a weight under SMALLEST
        if some_below(alpha, bound) and _alpha_lost(segments, gammas, j, alpha, bound):
            return False
        change = np.rint(math.log(top)) if top > 0.0 else 0.0  # whole: sums and differences of levels are exact
        _scale(alpha, c, math.exp(-change))
        levels[j] = level + change
        if j < length:
            if change < -DRIFT:
                level = _sink(table[(j + 1) * c :], (m - 1) * c, level, change, push_levels, i, k)
                if level == np.inf:
                    return False
            _enter(alpha, arcs, gammas[j])
            gamma = gammas[j]
            if some_below(gamma, SMALLEST) and vanished(alpha, 0.0, transitions, zeros, gamma, SMALLEST):
                return False
    return True


@kernel(FAST)
def forward_scaled(first, last, given, scores, arcs, shifts, run):
    """Compute α, γ and log Z of rows first..last. `shifts` are those of arcs, start and end scores.

    `given` are segments, transitions, start, end, and the lengths; `run` alphas, gammas, levels, finals, log_z, wide.

    Args:
        first: the first row.
        last: the row behind the last.
        given: segments, transitions, start, end and lengths.
        scores: segments by token, float64 [batch, n, k c].
        arcs: exp of the transitions, shifted, float64 [c, c].
        shifts: what transitions, start and end were shifted by, float64 [3].
        run: alphas, gammas, levels, finals, log_z and wide, filled in.
    """  # [S0.3; S0.5]
    segments, transitions, start, end, lengths = given
    alphas, gammas, levels, finals, log_z, wide = run
    _, n, k, c = segments.shape
    tiled, tops, push_levels, entry, leave = np.empty((k, c)), np.empty(n), np.empty(n), np.empty(c), np.empty(c)
    one, zeros, total = np.ones(1), np.zeros(c), np.empty(1)
    for y in range(c):
        entry[y], leave[y] = exp(start[y] - shifts[1]), exp(end[y] - shifts[2])
    lost = vanished(one, 0.0, start.reshape((1, c)), zeros, entry, SMALLEST)
    arc_scores = transitions if transitions.shape[0] > 0 else np.zeros((c, c))
    for b in range(first, last):
        length = lengths[b]
        for y in range(c):
            gammas[b, 0, y] = entry[y]
        fine = _row_forward(
            segments[b], scores[b], arc_scores, arcs, shifts, length, alphas[b], gammas[b], levels[b],
            (tops, push_levels, tiled, zeros),
        )  # fmt: skip
        alpha, final = alphas[b, length], 0.0
        for y in range(c):
            final += alpha[y] * leave[y]
        total[0] = finals[b] = final
        wide[b] = lost or not fine or vanished(alpha, 0.0, end.reshape((c, 1)), zeros, total, SMALLEST)
        log_z[b] = levels[b, length] + shifts[2] + math.log(final) if final > 0.0 else NEG_INF


@kernel(FAST)
def _leave(scores, size, tiled, entered, reached, after, flat, posteriors, pull):
    """Compute p(i, d, y) = γ_i(y) e^{f(i, d, y)} β_{i+d}(y); pull(y) = Σ_d e^{f(i, d, y)} β_{i+d}(y).

    `flat` and `posteriors` [k, c] are the same memory.
    """  # [S0.6, 10; S0.4]
    c = pull.shape[0]
    for e in range(size):
        flat[e] = after[e] * exp(min(_relative(scores[e], entered, reached[e]), HIGHEST_LOG))
    for y in range(c):
        pull[y] = 0.0
    for d in range(size // c):
        for y in range(c):
            pull[y] += posteriors[d, y]
    for e in range(size):
        flat[e] *= tiled[e]
    for e in range(size, flat.shape[0]):
        flat[e] = 0.0


@kernel(FAST)
def _return(pull, arcs_to, alpha, before):
    """Compute β(x) = Σ_y e^{a_xy} pull(y)."""  # [S0.4]
    _enter(pull, arcs_to, before)
    for x in range(alpha.shape[0]):  # what is unreachable must stay 0 also where its β is beyond all numbers
        before[x] = before[x] if alpha[x] > 0.0 else 0.0


@kernel(FAST)
def _row_backward(scores, arcs_to, shifts, length, alphas, gammas, levels, works, flat, posteriors):
    """From β at the row's end in `after` [n+1, c], the first of the works, to the front."""
    after, reached, tiled, pulls = works
    k, c = tiled.shape
    betas, copies = after.ravel(), tiled.ravel()
    for j in range(length + 1):
        for y in range(c):
            reached[j * c + y] = levels[j]
    for i in range(length - 1, -1, -1):
        m, gamma, pull = min(k, length - i), gammas[i], pulls[i]
        _tile(gamma, m, tiled)
        entered, first = levels[i] + (shifts[0] if i > 0 else shifts[1]), (i + 1) * c
        _leave(scores[i], m * c, copies, entered, reached[first:], betas[first:], flat[i], posteriors[i], pull)
        for y in range(c):
            pull[y] = pull[y] if gamma[y] > 0.0 else 0.0
        if i > 0:
            _return(pull, arcs_to, alphas[i], after[i])


@kernel(FAST)
def backward_scaled(first, last, scores, arcs, shifts, end, lengths, run, grad, gradients):
    """Compute posteriors times the incoming gradient of the rows that are not wide.

    `run` are alphas, gammas, levels, finals and wide. Of `gradients`, d_segments [batch, n, k, c] and d_scores
    [batch, n, k c] are the same memory, written everywhere; d_arcs, [batch, c, c] or [batch, 0, 0], d_start and d_end
    [batch, c] start as 0.

    Args:
        first: the first row.
        last: the row behind the last.
        scores: segments by token, float64 [batch, n, k c].
        arcs: exp of the transitions, shifted, float64 [c, c].
        shifts: what transitions, start and end were shifted by, float64 [3].
        end: [c].
        lengths: tokens of each row, int64 [batch].
        run: arrays of the pass forwards.
        grad: weight of each row, float64 [batch].
        gradients: derivatives by the parts, arcs, start and end; start as 0, filled in.
    """  # [S0.7-8, 10]
    alphas, gammas, levels, finals, wide = run
    d_segments, d_scores, d_arcs, d_start, d_end = gradients
    _, n, k, c = d_segments.shape
    after, reached, tiled = np.empty((n + 1, c)), np.empty((n + 1) * c), np.empty((k, c))
    pulls, arcs_to = np.empty((n, c)), arcs.T.copy()
    for b in range(first, last):
        if wide[b]:
            continue
        length = lengths[b] if finals[b] > 0.0 and grad[b] != 0.0 else 0
        for i in range(length, n):
            for e in range(k * c):
                d_scores[b, i, e] = 0.0
        if length == 0:
            continue
        for y in range(c):
            weight = alphas[b, length, y]
            after[length, y] = grad[b] * exp(end[y] - shifts[2]) / finals[b] if weight > 0.0 else 0.0
            d_end[b, y] = after[length, y] * weight
        _row_backward(
            scores[b], arcs_to, shifts, length, alphas[b], gammas[b], levels[b], (after, reached, tiled, pulls),
            d_scores[b], d_segments[b],
        )  # fmt: skip
        for y in range(c):
            d_start[b, y] = pulls[0, y] * gammas[b, 0, y]
        add_arcs(alphas[b, 1:], pulls, length, d_arcs[b])  # d_arcs(x, y) = e^{a_xy} Σ_i α_i(x) pull_i(y)  [S0.8]
        for x in range(arcs.shape[0]):
            for y in range(arcs.shape[0]):
                d_arcs[b, x, y] *= arcs[x, y]
