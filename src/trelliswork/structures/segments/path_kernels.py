"""CPU kernels that pick segmentations: a given one's score, the best, the k best, samples.

Same conventions as `kernels.py`; `parts` as there. A segmentation is `starts` [n]: the label where a segment starts, -1
elsewhere. `best_starts` also takes float32, the others float64.
"""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.arrays import NEG_INF
from trelliswork.runtime.compilation import EXACT, FAST, kernel
from trelliswork.runtime.kernel_math import (
    best_arrivals,
    first_best,
    higher,
    insert_moved,
    pick_from_sums,
    shifted_exp,
    sum_up,
)
from trelliswork.structures.chain.kernels import weigh
from trelliswork.structures.segments.part_kernels import arriving_with, collect_one, n_durations, segment_scores


@kernel(EXACT)
def _next_start(starts, first, length):
    """Return the end of the segment that starts at `first`."""
    last = first + 1
    while last < length and starts[last] < 0:
        last += 1
    return last


@kernel(EXACT)
def path_scores(parts, transitions, start, end, lengths, starts, scores):
    """Compute G(s, x) of each row.

    Args:
        parts: scores of segments, whole or factored.
        transitions: [c, c], indexed [from, to]; empty for 0.
        start: [c].
        end: [c].
        lengths: tokens of each row, int64 [batch].
        starts: the label at each token that starts a segment, negative elsewhere, int64 [batch, n].
        scores: score of each row, float64 [batch], filled in.
    """  # [S0, score]
    by_duration = np.empty(n_durations(parts))
    for b in range(starts.shape[0]):
        before, score, i = -1, 0.0, 0
        while i < lengths[b]:
            label, last = starts[b, i], _next_start(starts[b], i, lengths[b])
            arriving_with(parts, b, last, last - i, label, by_duration)
            score += by_duration[last - i - 1]
            if i == 0:
                score += start[label]
            elif transitions.shape[0] > 0:
                score += transitions[before, label]
            before, i = label, last
        scores[b] = score + end[before]


@kernel(EXACT)
def add_path_gradients(starts, lengths, grad, gradients, d_arcs, d_start, d_end):
    """Add grad[b] at every part of the segmentation: the indicator of its parts.

    Args:
        starts: the label at each token that starts a segment, negative elsewhere, int64 [batch, n].
        lengths: tokens of each row, int64 [batch].
        grad: weight of each row, float64 [batch].
        gradients: derivatives by the parts, added to.
        d_arcs: float64 [batch, c, c], or [batch, 0, 0] for none; added to.
        d_start: float64 [batch, c], added to.
        d_end: float64 [batch, c], added to.
    """  # [S0.7]
    for b in range(starts.shape[0]):
        before, i = -1, 0
        while i < lengths[b]:
            label, last = starts[b, i], _next_start(starts[b], i, lengths[b])
            collect_one(gradients, b, i, last - i - 1, label, grad[b])
            if i == 0:
                d_start[b, label] += grad[b]
            elif d_arcs.shape[1] > 0:
                d_arcs[b, before, label] += grad[b]
            before, i = label, last
        d_end[b, before] += grad[b]


@kernel(FAST)
def best_starts(first, last, parts, transitions, start, end, lengths, starts, possible):
    """Run Viterbi: V forward without back-pointers, then the argmax again along the best segmentation only.

    A fast lane of its own, as that of chains: the reference takes 17 times as long at (8, 40, 8, 9).

    Args:
        first: the first row.
        last: the row behind the last.
        parts: scores of segments, whole or factored.
        transitions: [c, c], indexed [from, to]; empty for 0.
        start: [c].
        end: [c].
        lengths: tokens of each row, int64 [batch].
        starts: int64 [batch, n], filled in.
        possible: whether a row has a segmentation, bool [batch], filled in.
    """  # [S0.18]
    n, k, c = starts.shape[1], n_durations(parts), start.shape[0]
    alphas, gammas, arrivals = np.empty((n + 1, c)), np.empty((n, c)), np.empty(k * c)
    by_label, by_duration = np.empty(c), np.empty(k)
    for b in range(first, last):
        length = lengths[b]
        for y in range(c):
            gammas[0, y] = start[y]
        for j in range(1, length + 1):
            alpha, m = alphas[j], min(k, j)
            segment_scores(parts, b, j - 1, False, m, arrivals)
            for y in range(c):
                alpha[y] = NEG_INF
            for d in range(m):
                gamma, scores = gammas[j - 1 - d], arrivals[d * c : d * c + c]
                for y in range(c):
                    alpha[y] = higher(alpha[y], gamma[y] + scores[y])  # [S0.18]
            if j < length:
                if transitions.shape[0] > 0:
                    best_arrivals(alphas, j, transitions, gammas[j])
                else:
                    _, best = first_best(alpha, c)
                    for y in range(c):
                        gammas[j, y] = best
        for y in range(c):
            by_label[y] = alphas[length, y] + end[y]
        label, best = first_best(by_label, c)
        possible[b] = best > NEG_INF
        j = length
        while j > 0 and possible[b]:
            m = min(k, j)
            arriving_with(parts, b, j, m, label, by_duration)
            for d in range(m):
                by_duration[d] += gammas[j - 1 - d, label]
            d, _ = first_best(by_duration, m)
            j -= d + 1
            starts[b, j] = label
            if j > 0:
                for x in range(c):
                    by_label[x] = alphas[j, x] + (transitions[x, label] if transitions.shape[0] > 0 else 0.0)
                label, _ = first_best(by_label, c)


@kernel(FAST)
def _enter_top(alpha, transitions, gamma, origins):
    """Compute the best entries into each label from the lists alpha [c, k_best]; an origin is label * k_best + rank."""
    c, k_best = gamma.shape
    for y in range(c if transitions.shape[0] > 0 else 1):
        for x in range(c):
            arc = transitions[x, y] if transitions.shape[0] > 0 else 0.0
            insert_moved(alpha[x], arc, x * k_best, gamma[y], origins[y])
    if transitions.shape[0] == 0:
        for y in range(1, c):
            for r in range(k_best):
                gamma[y, r], origins[y, r] = gamma[0, r], origins[0, r]


@kernel(FAST)
def top_starts(first, last, parts, transitions, start, end, lengths, starts, scores):
    """Compute the k best: α_j(y) and γ_i(y) are descending lists, each entry with its origin; different origins differ.

    starts [k_best, batch, n], scores [k_best, batch]; -inf where a row has fewer. A fast lane of its own: the reference
    takes 46 times as long at (8, 40, 8, 9), k = 10.

    Args:
        first: the first row.
        last: the row behind the last.
        parts: scores of segments, whole or factored.
        transitions: [c, c], indexed [from, to]; empty for 0.
        start: [c].
        end: [c].
        lengths: tokens of each row, int64 [batch].
        starts: int64 [k, batch, n], filled in.
        scores: float64 [k, batch], filled in.
    """
    k_best, arrivals = scores.shape[0], np.empty(n_durations(parts) * start.shape[0])
    n, k, c = starts.shape[2], n_durations(parts), start.shape[0]
    alphas, durations = np.empty((n + 1, c, k_best)), np.zeros((n + 1, c, k_best), np.int64)
    gammas, labels = np.empty((n, c, k_best)), np.zeros((n, c, k_best), np.int64)
    finals, final_origins = np.empty(k_best), np.zeros(k_best, np.int64)
    for b in range(first, last):
        length = lengths[b]
        alphas[:] = NEG_INF
        gammas[:] = NEG_INF
        finals[:] = NEG_INF
        for y in range(c):
            gammas[0, y, 0] = start[y]
        for j in range(1, length + 1):
            segment_scores(parts, b, j - 1, False, min(k, j), arrivals)
            for y in range(c):
                values, origins = alphas[j, y], durations[j, y]
                for d in range(min(k, j)):
                    insert_moved(gammas[j - 1 - d, y], arrivals[d * c + y], d * k_best, values, origins)
            if j < length:
                _enter_top(alphas[j], transitions, gammas[j], labels[j])
        for y in range(c):
            insert_moved(alphas[length, y], end[y], y * k_best, finals, final_origins)
        for rank in range(k_best):
            scores[rank, b] = finals[rank]
            j, place = length, final_origins[rank]
            while j > 0 and finals[rank] > NEG_INF:
                label = place // k_best
                origin = durations[j, label, place % k_best]
                j -= origin // k_best + 1
                starts[rank, b, j] = label
                if j > 0:
                    place = labels[j, label, origin % k_best]


@kernel(FAST, inline=True)
def _sum_labels(b, j, to, is_log, scores, arcs, alphas, sums):
    """Running sums of the weights of the labels that may end at j before label `to`, or at the row's end."""
    _, transitions, _, end, lengths = scores
    is_last, ordered = j == lengths[b], transitions.shape[0] > 0
    for x in range(end.shape[0]):
        if is_log or is_last:
            sums[x] = end[x] if is_last else transitions[x, to] if ordered else 0.0
        else:
            sums[x] = alphas[b, j, x] * (arcs[x, to] if ordered else 1.0)
    if is_log or is_last:
        weigh(alphas[b, j], is_log, sums, sums)
    sum_up(sums)


@kernel(FAST, inline=True)
def _sum_durations(b, j, y, is_log, scores, shifts, run, sums):
    """Running sums of the weights of the durations of a segment that ends at j with label y.

    γ is e^{levels + shift} times `gammas`, or in log space their difference to the sum of `steps`.
    """
    _, gammas, levels = run
    arriving_with(scores[0], b, j, sums.shape[0], y, sums)
    offset = 0.0
    for d in range(sums.shape[0]):
        i = j - 1 - d
        gamma = gammas[b, i, y]
        if is_log:
            sums[d] += gamma - offset
            offset += levels[b, i]
        else:
            sums[d] += levels[b, i] + (shifts[0] if i > 0 else shifts[1]) if gamma > 0.0 else NEG_INF
    shifted_exp(sums, sums)
    for d in range(sums.shape[0]):
        sums[d] *= 1.0 if is_log else gammas[b, j - 1 - d, y]
    sum_up(sums)


@kernel(FAST)
def sample_starts(first, last, is_log, scores, arcs, shifts, run, left_out, uniforms, starts):
    """Sample backwards: y ~ α_L e^{end}; then d ~ γ_{j-d}(y) e^{f(j-d, d, y)} and y' ~ α(y') e^{a(y', y)} in turn.

    Running sums of weights are made once for each label at a boundary, however many samples have it there. `scores` are
    as in `best_starts`, `run` alphas, gammas and levels of `forward_scaled`, or alphas, gammas and steps of
    `forward_log`; rows that are `left_out` stay as they are.

    Args:
        first: the first row.
        last: the row behind the last.
        is_log: whether `run` is that of `forward_log`.
        scores: parts, transitions, start, end and lengths.
        arcs: exp of the transitions, shifted, float64 [c, c].
        shifts: what transitions, start and end were shifted by, float64 [3].
        run: arrays of the pass forwards.
        left_out: rows that stay as they are, bool [batch].
        uniforms: numbers in [0, 1), float64 [samples, batch, 2n].
        starts: int64 [samples, batch, n], filled in.
    """
    parts, _, _, end, lengths = scores
    n_samples, k, c = uniforms.shape[0], n_durations(parts), end.shape[0]
    before, durations, known, step = np.empty((c, c)), np.empty((c, k)), np.zeros((2, c), np.int64), 0
    ends, labels = np.empty(n_samples, np.int64), np.empty(n_samples, np.int64)
    for b in range(first, last):
        for s in range(n_samples):
            ends[s], labels[s] = 0 if left_out[b] else lengths[b], 0
        for j in range(lengths[b], 0, -1):
            step, m = step + 1, min(k, j)
            for s in range(n_samples):
                if ends[s] != j:
                    continue
                to = labels[s]
                if known[0, to] < step:
                    _sum_labels(b, j, to, is_log, scores, arcs, run[0], before[to])
                    known[0, to] = step
                y = pick_from_sums(before, to, c, uniforms[s, b, 2 * j - 1])
                if known[1, y] < step:
                    _sum_durations(b, j, y, is_log, scores, shifts, run, durations[y, :m])
                    known[1, y] = step
                ends[s], labels[s] = j - 1 - pick_from_sums(durations, y, m, uniforms[s, b, 2 * j - 2]), y
                starts[s, b, ends[s]] = y
