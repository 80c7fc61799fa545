"""CPU kernels that sum over the paths of a chain: log Z and its gradient. `path_kernels.py` has those that pick paths.

All take C-contiguous float64 arrays and are bare arithmetic: callers have checked shapes, lengths, NaN and +inf.
`transitions` is [1, 1, c, c] (shared) or [batch, n-1, c, c]; `at(index, size)` serves both.
Rows `first..last` are done, so that a batch can be split over threads.

Two ways to sum over paths. In **scaled exp space** α is kept as a distribution over tags: one multiply-add an arc
and no logarithm, but weights below 1e-308 vanish. A path that vanishes here could win later, so a *reachable* α
that falls under `SMALLEST` marks the row `wide`, and wide rows are computed again in **log space**. Entries that
real -inf scores make unreachable are exact zeros and mark nothing.

Arrays:
    first, last, rows: rows first..last-1; in log space the numbers of the rows, int64 [rows].
    scores: emissions, transitions, start, end and lengths; in `shifted_exp` and `weigh` the scores of tags, [c].
    emissions, transitions, start, end, lengths: [batch, n, c], as said above, [c], [c] and int64 [batch].
    arcs, shifts, arc_shifts: exp of the transitions, shifted, [..., c, width]; by how much, float64 [..., ...].
    run, alphas: alphas, emits, finals, log_z and wide, filled in on the way forward; α sums to 1, [batch, n, c].
    log_alphas, arrivals, log_z: δ and logarithms of what arrives, float64 [rows, n, c]; log Z, float64 [batch].
    grad, d_emissions, d_transitions, d_start, d_end: weight of each row [batch]; derivatives, shaped like scores.
    outgoing, by_row: factors of the posteriors of arcs, [batch, n, width], or empty; whether arcs are summed by row.
    b, t, r: a row, a position, and the place of the row among those in log space.
    alpha, log_alpha, is_log, arrived, weights, tops: α of one position or its logarithm, what arrives, [c].
    row, matrix, out, arc_scores, before: [m], [m, width], [width], [c, c], and p(tag before | tag), [c, c].
    lowest, emission, smallest: what is no weight (0 or -inf), scores of tags [c], the least weight that is safe.
"""

from __future__ import annotations

import math

import numpy as np

from trelliswork.runtime.arrays import NEG_INF
from trelliswork.runtime.compilation import FAST, kernel
from trelliswork.runtime.kernel_math import (
    at,
    exp,
    highest,
    log_arrivals,
    matrix_times,
    shifted_exp,
    subtract_highest,
    times_matrix,
)

SMALLEST = 1e-140  # its square is still a normal float64: products of two weights never vanish
SMALLEST_32 = 1e-30


@kernel(FAST)
def _copy(source, target):
    """Copy: target[: len(source)] = source, as a loop: each slice assignment would take a second to compile."""
    for j in range(source.shape[0]):
        target[j] = source[j]


@kernel(FAST)
def _clear(table, b, first):
    """Set table[b, first:] to 0: outputs are written everywhere, so that they may start as any memory."""
    for t in range(first, table.shape[1]):
        for j in range(table.shape[2]):
            table[b, t, j] = 0.0


@kernel(FAST)
def exp_arcs(transitions, arcs, shifts):
    """Compute exp of every transition matrix, each shifted by its own highest score.

    `arcs` is [..., c, width]: rows filled up with zeros to whole vector registers are a third faster to run over.
    """  # [S4.59]
    c, width = transitions.shape[2], arcs.shape[3]
    for b in range(transitions.shape[0]):
        for t in range(transitions.shape[1]):
            scores = transitions[b, t].ravel()
            shift = np.float64(highest(scores, c * c))  # differences are taken in float64, whatever the scores
            shifts[b, t] = shift = shift if shift > NEG_INF else 0.0
            for i in range(c):
                for j in range(c):
                    arcs[b, t, i, j] = exp(transitions[b, t, i, j] - shift)
                for j in range(c, width):
                    arcs[b, t, i, j] = 0.0


@kernel(FAST)
def vanished(before, lowest, scores, emission, weights, smallest):
    """Return True if an entry is reachable although its weight is (almost) gone: only then a path may have been lost.

    Entry j is reachable if its emission and the score of an arc to it from an i with before[i] > lowest are not -inf.
    """
    for j in range(weights.shape[0]):
        if weights[j] < smallest and emission[j] > NEG_INF:
            for i in range(before.shape[0]):
                if before[i] > lowest and scores[i, j] > NEG_INF:
                    return True
    return False


@kernel(FAST)
def _emission_weights(scores, length, weights, shifts):
    """Compute weights = exp(scores - shift), where each position is shifted by its own highest score.

    All exponentials are taken in one loop: position by position, 9 tags would be one vector register and a lone number.
    """
    c = scores.shape[1]
    for t in range(length):
        top = highest(scores[t], c)
        shifts[t] = top
        for j in range(c):
            weights[t, j] = scores[t, j] - top if top > NEG_INF else NEG_INF
    flat = weights.ravel()
    for i in range(length * c):
        flat[i] = exp(flat[i])


@kernel(FAST)
def forward_scaled(first, last, scores, arcs, arc_shifts, run):
    """Compute α as distributions over tags, and log Z.

    alphas[b, t] = α_t / Σα_t;  emits[b, t] = e^{emissions} over the same scale;  finals[b] = Σ_j α_L(j) e^{end_j}.
    A row that turns out wide, or has no path, is left with finals = 0 and log_z = -inf. `scores` are emissions,
    transitions, start, end, and the lengths; `run` is filled in: alphas, emits, finals, log_z and wide.
    """  # [S4.63, 92, 109; S4.108]
    emissions, transitions, start, end, lengths = scores
    alphas, emits, finals, log_z, wide = run
    c = emissions.shape[2]
    start_weights, end_weights = np.empty(c, arcs.dtype), np.empty(c, arcs.dtype)
    edge_shifts = shifted_exp(start, start_weights) + shifted_exp(end, end_weights)
    alpha, arrived, weights = np.empty(c, arcs.dtype), np.empty(arcs.shape[3], arcs.dtype), np.empty(c, arcs.dtype)
    one, final_weight, zero = np.empty(1, arcs.dtype), np.empty(1, arcs.dtype), np.empty(1, emissions.dtype)
    one[0], zero[0] = 1.0, 0.0
    start_scores, end_scores = start.reshape((1, c)), end.reshape((c, 1))
    smallest = SMALLEST if arcs.itemsize == 8 else SMALLEST_32
    shifts = np.empty(emissions.shape[1])
    for b in range(first, last):
        length = lengths[b]
        _emission_weights(emissions[b], length, emits[b], shifts)
        log_total, product = edge_shifts, 1.0  # log Z = log_total + log(product): few logarithms are taken
        wide[b], finals[b], log_z[b] = False, 0.0, NEG_INF
        _clear(alphas, b, length)
        for t in range(length):
            if t == 0:
                _copy(start_weights, arrived)
            else:
                bb, tt = at(b, arcs.shape[0]), at(t - 1, arcs.shape[1])
                times_matrix(alpha, arcs[bb, tt], arrived)
                log_total += arc_shifts[bb, tt]
            log_total += shifts[t]
            scale, n_small = 0.0, 0
            for j in range(c):
                weight = arrived[j] * emits[b, t, j]
                weights[j] = weight
                scale += weight
                n_small += weight < smallest
            if n_small:  # rare: in the loop above it is only counted, so that the loop stays in vector registers
                if t == 0:
                    wide[b] = vanished(one, 0.0, start_scores, emissions[b, t], weights, smallest)
                else:
                    wide[b] = vanished(alpha, 0.0, transitions[bb, tt], emissions[b, t], weights, smallest)
                if wide[b] or scale == 0.0:
                    _clear(alphas, b, t)
                    break
            inverse = 1.0 / scale
            for j in range(c):
                alpha[j] = weights[j] * inverse
                alphas[b, t, j] = alpha[j]
                emits[b, t, j] *= inverse
            product *= scale
            if product < SMALLEST or product > 1.0 / SMALLEST:
                log_total, product = log_total + math.log(product), 1.0
        if wide[b] or scale == 0.0:
            continue
        final = 0.0
        for j in range(c):
            final += alpha[j] * end_weights[j]
        final_weight[0] = final
        wide[b] = vanished(alpha, 0.0, end_scores, zero, final_weight, smallest)
        if final > 0.0 and not wide[b]:
            finals[b], log_z[b] = final, log_total + math.log(product) + math.log(final)


@kernel(FAST)
def add_arcs(alphas, outgoing, length, d_arcs):
    """Add: d_arcs_ij += Σ_t α_{t-1}(i) outgoing_t(j), eight positions a pass; [c, width] like the arcs.

    Args:
        alphas: α of each position, [n, c], float32 or float64.
        outgoing: factors of the posteriors of arcs, [n, width].
        length: number of positions.
        d_arcs: [c, width], added to.
    """
    (c, width), a, o, last, zero = d_arcs.shape, alphas, outgoing, length - 1, d_arcs.dtype.type(0)
    for t in range(1, length, 8):  # what lies behind the last position counts 0 times
        t1, t2, t3, t4 = min(t + 1, last), min(t + 2, last), min(t + 3, last), min(t + 4, last)
        t5, t6, t7 = min(t + 5, last), min(t + 6, last), min(t + 7, last)
        for i in range(c):
            a0, a1, a2 = a[t - 1, i], a[t, i] if t1 > t else zero, a[t1, i] if t2 > t1 else zero
            a3, a4 = a[t2, i] if t3 > t2 else zero, a[t3, i] if t4 > t3 else zero
            a5, a6, a7 = a[t4, i] if t5 > t4 else zero, a[t5, i] if t6 > t5 else zero, a[t6, i] if t7 > t6 else zero
            for j in range(width):
                first = a0 * o[t, j] + a1 * o[t1, j] + a2 * o[t2, j] + a3 * o[t3, j]
                d_arcs[i, j] += first + a4 * o[t4, j] + a5 * o[t5, j] + a6 * o[t6, j] + a7 * o[t7, j]


@kernel(FAST)
def _correct(alphas, b, t, grad, beta):
    """Scale β so that its posteriors add up to `grad`: in float32 rounding would grow with the length."""
    total = 0.0
    for j in range(beta.shape[0]):
        total += alphas[b, t, j] * beta[j] if alphas[b, t, j] > 0.0 else 0.0
    for j in range(beta.shape[0]):
        beta[j] *= grad / total


@kernel(FAST)
def backward_scaled(first, last, run, arcs, end, lengths, grad, d_emissions, outgoing, by_row):
    """Return posteriors times the incoming gradient, and what the transition gradient needs.

    `run` are alphas, emits and finals of `forward_scaled`.
    β_L = e^{end} / final;  d_emissions = g α β;  outgoing[b, t] = g e^{emission} β;  β_{t-1} = arcs @ outgoing_t;
    p(y_{t-1}=i, y_t=j) g = α_{t-1}(i) arcs_ij outgoing_t(j). A row with Z = 0 or g = 0 stays 0.
    `outgoing` [batch, n, width] keeps what each arc's posterior needs; where it is empty, their sums
    Σ_t α_{t-1}(i) outgoing_t(j) over the rows, or `by_row`, are returned: [1|rows, c, width].
    """  # [S4.107, 115; S4.96; S4.106]
    alphas, emits, finals = run
    c, width = alphas.shape[2], arcs.shape[3]
    keep = outgoing.shape[0] > 0
    d_arcs = np.zeros((0 if keep else last - first if by_row else 1, c, width), arcs.dtype)
    out = outgoing if keep else np.empty((1, alphas.shape[1], width), arcs.dtype)
    end_weights, beta = np.empty(c, arcs.dtype), np.empty(c, arcs.dtype)
    shifted_exp(end, end_weights)
    for b in range(first, last):
        used = lengths[b] if finals[b] > 0.0 and grad[b] != 0.0 else 0
        o = b if keep else 0  # sums over positions need the factors of one row at a time
        _clear(d_emissions, b, used)
        if keep:
            _clear(out, b, used)
        if used == 0:
            continue
        for j in range(c):
            beta[j] = end_weights[j] * (grad[b] / finals[b])
        for t in range(used - 1, -1, -1):
            if arcs.itemsize == 4:
                _correct(alphas, b, t, grad[b], beta)
            for j in range(c):
                # β of an unreachable tag is unbounded and meets only α = 0: keep 0 * inf out.
                reached = beta[j] if alphas[b, t, j] > 0.0 else 0.0
                d_emissions[b, t, j] = alphas[b, t, j] * reached
                out[o, t, j] = emits[b, t, j] * reached
            for j in range(c, width):
                out[o, t, j] = 0.0
            if t > 0:
                matrix_times(arcs[at(b, arcs.shape[0]), at(t - 1, arcs.shape[1])], out[o, t], beta)
        if not keep:
            add_arcs(alphas[b], out[0], used, d_arcs[b - first if by_row else 0])
    return d_arcs


@kernel(FAST)
def edge_gradients(d_emissions, lengths, d_start, d_end):
    """Start and end scores belong to the first and last tag: their gradients are sums of those tags' posteriors."""
    for b in range(d_emissions.shape[0]):
        for j in range(d_start.shape[0]):
            d_start[j] += d_emissions[b, 0, j]
            d_end[j] += d_emissions[b, lengths[b] - 1, j]


@kernel(FAST)
def arc_posteriors(alphas, arcs, outgoing, d_transitions):
    """d_transitions[b, t-1, i, j] = α_{t-1}(i) arcs_ij outgoing_t(j), for arcs that vary by position."""  # [S4.106]
    batch, n, c = alphas.shape
    for b in range(batch):
        for t in range(1, n):
            matrix = arcs[at(b, arcs.shape[0]), at(t - 1, arcs.shape[1])]
            for i in range(c):
                for j in range(c):
                    d_transitions[b, t - 1, i, j] = alphas[b, t - 1, i] * matrix[i, j] * outgoing[b, t, j]


@kernel(FAST)
def forward_log(rows, emissions, transitions, start, end, lengths, log_alphas, arrivals, log_z):
    """Compute δ_t(j) = log Σ_i exp(δ_{t-1}(i) + a_ij) + e_t(j), each δ_t shifted so that its highest is 0.

    log_alphas and arrivals [len(rows), n, c] keep δ_t and its logadd for `backward_log`.
    """  # [S3.9]
    c = emissions.shape[2]
    tops, last = np.empty(c), np.empty(c)
    for r in range(rows.shape[0]):
        b, total = rows[r], 0.0
        for t in range(lengths[b]):
            log_alpha, arrived = log_alphas[r, t], arrivals[r, t]
            if t == 0:
                _copy(start, arrived)
            else:
                arc_scores = transitions[at(b, transitions.shape[0]), at(t - 1, transitions.shape[1])]
                log_arrivals(log_alphas[r, t - 1], arc_scores, tops, arrived)
            _copy(emissions[b, t], log_alpha)
            total += subtract_highest(log_alpha)  # first: added to a huge score, what arrives would lose its digits
            for j in range(c):
                log_alpha[j] += arrived[j]
            total += subtract_highest(log_alpha)
        log_z[b] = total + last_posteriors(log_alphas[r, lengths[b] - 1], end, last)


@kernel(FAST)
def backward_arcs(b, t, r, transitions, log_alphas, arrivals, before):
    """Compute before_ij = p(y_t = i | y_{t+1} = j, x_1..t) of row b, which is row r in log space.

    With these for arcs and ones for α, all that follows the way forward may be done in exp space: they lie in 0..1
    whatever the scores.
    """
    arc_scores, c = transitions[at(b, transitions.shape[0]), at(t, transitions.shape[1])], before.shape[0]
    for i in range(c):
        for j in range(c):  # +inf makes the factors of an unreachable tag exactly 0
            arrived = arrivals[r, t + 1, j] if arrivals[r, t + 1, j] > NEG_INF else np.inf
            before[i, j] = log_alphas[r, t, i] + arc_scores[i, j] - arrived
    flat = before.ravel()
    for e in range(c * c):  # in one loop: row by row, 9 tags would be one vector register and a lone number
        flat[e] = exp(min(flat[e], 0.0))


@kernel(FAST)
def weigh(alpha, is_log, scores, weights):
    """Return weights_i = e^{score - shift} times α, which is given itself or as its logarithm; returns the shift."""
    for i in range(scores.shape[0]):
        weights[i] = alpha[i] + scores[i] if is_log else scores[i]
    shift = shifted_exp(weights, weights)
    for i in range(scores.shape[0]):
        weights[i] *= 1.0 if is_log else alpha[i]
    return shift


@kernel(FAST)
def last_posteriors(log_alpha, end, weights):
    """weights = softmax(log_alpha + end); returns the log of the sum, -inf if nothing is possible."""
    total, top = 0.0, weigh(log_alpha, True, end, weights)
    for y in range(end.shape[0]):
        total += weights[y]
    if total == 0.0:
        return NEG_INF
    for y in range(end.shape[0]):
        weights[y] /= total
    return top + math.log(total)


@kernel(FAST)
def some_below(row, bound):
    """Return True if an entry is below the bound; counted, as a loop that may end early is not vectorised."""
    n_small = 0
    for y in range(row.shape[0]):
        n_small += row[y] < bound
    return n_small > 0


@kernel(FAST)
def backward_log(rows, transitions, end, lengths, log_alphas, arrivals, log_z, grad, d_emissions, d_transitions):
    """Compute ∂C/∂δ_{t-1}(i) = Σ_j ∂C/∂δ_t(j) p(i | j), the factors of `backward_arcs`.

    Each summand is the gradient of one arc; d_transitions may sum over rows or positions: [1|batch, 1|n-1, c, c].
    """  # [S3, delta gradient]
    c = end.shape[0]
    d_delta, d_before, before = np.empty(c), np.empty(c), np.empty((c, c))
    for r in range(rows.shape[0]):
        b = rows[r]
        if log_z[b] == NEG_INF or grad[b] == 0.0:
            continue
        last_posteriors(log_alphas[r, lengths[b] - 1], end, d_delta)
        for j in range(c):
            d_delta[j] *= grad[b]
        for t in range(lengths[b] - 1, -1, -1):
            _copy(d_delta, d_emissions[b, t])
            if t == 0:
                break
            backward_arcs(b, t - 1, r, transitions, log_alphas, arrivals, before)
            d_arcs = d_transitions[at(b, d_transitions.shape[0]), at(t - 1, d_transitions.shape[1])]
            for i in range(c):
                weight = 0.0
                for j in range(c):
                    posterior = d_delta[j] * before[i, j]
                    d_arcs[i, j] += posterior
                    weight += posterior
                d_before[i] = weight
            _copy(d_before, d_delta)
