"""CPU kernels that pick segmentations: a given one's score, the best, the k best, samples.

Same conventions as `kernels.py`; `parts` as there. A segmentation is `starts` [n]: the label where a segment starts, -1
elsewhere. `best_starts` also takes float32, the others float64.
"""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.compilation import EXACT, FAST, kernel
from trelliswork.runtime.kernel_math import draw, first_best, higher, insert
from trelliswork.structures.segments.part_kernels import arriving, arriving_with, collect_one, n_durations, score_of

NEG_INF = -np.inf


@kernel(EXACT)
def _next_start(starts, first, length):
    """Where the segment that starts at `first` ends."""
    last = first + 1
    while last < length and starts[last] < 0:
        last += 1
    return last


@kernel(EXACT)
def path_scores(parts, transitions, start, end, lengths, starts, scores):
    """G(s, x) of each row."""  # [S0, score]
    for b in range(starts.shape[0]):
        before, score, i = -1, 0.0, 0
        while i < lengths[b]:
            label, last = starts[b, i], _next_start(starts[b], i, lengths[b])
            score += score_of(parts, b, i, last - i - 1, label)
            if i == 0:
                score += start[label]
            elif transitions.shape[0] > 0:
                score += transitions[before, label]
            before, i = label, last
        scores[b] = score + end[before]


@kernel(EXACT)
def add_path_gradients(starts, lengths, grad, gradients, d_arcs, d_start, d_end):
    """Add grad[b] at every part of the segmentation: the indicator of its parts."""  # [S0.7]
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
def _enter_best(alpha, transitions, gamma):
    """γ(y) = max_x α(x) + a_xy; without transitions the same for every label."""
    c = gamma.shape[0]
    if transitions.shape[0] == 0:
        _, best = first_best(alpha, c)
        for y in range(c):
            gamma[y] = best
        return
    for y in range(c):
        gamma[y] = NEG_INF
    for x in range(c):
        weight, row = alpha[x], transitions[x]
        for y in range(c):
            gamma[y] = higher(gamma[y], weight + row[y])


@kernel(FAST)
def best_starts(first, last, parts, transitions, start, end, lengths, starts, possible):
    """Viterbi: V forward without back-pointers, then the argmax again along the best segmentation only."""  # [S0.18]
    n, k, c = starts.shape[1], n_durations(parts), start.shape[0]
    alphas, gammas, arrivals = np.empty((n + 1, c)), np.empty((n, c)), np.empty(k * c)
    by_label, by_duration = np.empty(c), np.empty(k)
    for b in range(first, last):
        length = lengths[b]
        for y in range(c):
            gammas[0, y] = start[y]
        for j in range(1, length + 1):
            alpha, m = alphas[j], min(k, j)
            arriving(parts, b, j, m, arrivals)
            for y in range(c):
                alpha[y] = NEG_INF
            for d in range(m):
                gamma, scores = gammas[j - 1 - d], arrivals[d * c : d * c + c]
                for y in range(c):
                    alpha[y] = higher(alpha[y], gamma[y] + scores[y])  # [S0.18]
            if j < length:
                _enter_best(alpha, transitions, gammas[j])
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
    """The best entries into each label from the lists alpha [c, k_best]; an origin is label * k_best + rank."""
    c, k_best = gamma.shape
    for y in range(c if transitions.shape[0] > 0 else 1):
        for x in range(c):
            arc = transitions[x, y] if transitions.shape[0] > 0 else 0.0
            for r in range(k_best):
                value = alpha[x, r] + arc
                if value <= gamma[y, k_best - 1]:
                    break
                insert(value, x * k_best + r, gamma[y], origins[y])
    if transitions.shape[0] == 0:
        for y in range(1, c):
            for r in range(k_best):
                gamma[y, r], origins[y, r] = gamma[0, r], origins[0, r]


@kernel(FAST)
def top_starts(first, last, parts, transitions, start, end, lengths, starts, scores):
    """The k best: α_j(y) and γ_i(y) are descending lists, each entry with its origin; different origins differ.

    starts [k_best, batch, n], scores [k_best, batch]; -inf where a row has fewer.
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
            arriving(parts, b, j, min(k, j), arrivals)
            for y in range(c):
                for d in range(min(k, j)):
                    score = arrivals[d * c + y]
                    for r in range(k_best):
                        value = gammas[j - 1 - d, y, r] + score
                        if value <= alphas[j, y, k_best - 1]:
                            break
                        insert(value, d * k_best + r, alphas[j, y], durations[j, y])
            if j < length:
                _enter_top(alphas[j], transitions, gammas[j], labels[j])
        for y in range(c):
            for r in range(k_best):
                value = alphas[length, y, r] + end[y]
                if value <= finals[k_best - 1]:
                    break
                insert(value, y * k_best + r, finals, final_origins)
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


@kernel(FAST)
def sample_starts(first, last, scores, run, uniforms, starts):
    """Backward sampling: y ~ α_L e^{end}; then d ~ γ_{j-d}(y) e^{f(j-d, d, y)} and y' ~ α(y') e^{a(y', y)} in turn.

    `scores` are as in `best_starts`, `run` alphas, gammas and steps of `forward_log`.
    """
    parts, transitions, _, end, lengths = scores
    alphas, gammas, steps = run
    k, c = n_durations(parts), end.shape[0]
    by_label, by_duration, weights = np.empty(c), np.empty(k), np.empty(max(c, k))
    for s in range(uniforms.shape[0]):
        for b in range(first, last):
            j, label = lengths[b], -1
            while j > 0:
                for x in range(c):
                    by_label[x] = alphas[b, j, x]
                    if label < 0:
                        by_label[x] += end[x]
                    elif transitions.shape[0] > 0:
                        by_label[x] += transitions[x, label]
                label = draw(by_label, weights, uniforms[s, b, 2 * j - 1])
                m, offset = min(k, j), 0.0
                arriving_with(parts, b, j, m, label, by_duration)
                for d in range(m):
                    by_duration[d] += gammas[b, j - 1 - d, label] - offset
                    offset += steps[b, j - 1 - d]
                j -= draw(by_duration[:m], weights, uniforms[s, b, 2 * j - 2]) + 1
                starts[s, b, j] = label
