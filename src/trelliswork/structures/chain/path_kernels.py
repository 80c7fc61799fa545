"""CPU kernels that pick paths of a chain: a given path's score, the best, the k best, samples.

Same conventions as `kernels.py`; `best_paths` also takes float32, the others float64.
"""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.arrays import NEG_INF
from trelliswork.runtime.compilation import EXACT, FAST, kernel
from trelliswork.runtime.kernel_math import (
    at,
    best_arrivals,
    first_best,
    insert_moved,
    pick_from_sums,
    subtract_highest,
    sum_up,
)
from trelliswork.structures.chain.kernels import backward_arcs, weigh

SHIFT_EVERY = 16


@kernel(EXACT)
def path_scores(emissions, transitions, start, end, lengths, tags, scores):
    """Compute score(y) of each row. Returns the flat index of the first tag out of range, or -1.

    Args:
        emissions: [batch, n, c], float32 or float64.
        transitions: [1 or batch, 1 or n-1, c, c], indexed [from, to].
        start: [c].
        end: [c].
        lengths: positions of each row, int64 [batch].
        tags: int64 [batch, n].
        scores: score of each row, float64 [batch], filled in.
    """  # [S3, sentence score]
    batch, n, c = emissions.shape
    for b in range(batch):
        before, score = -1, 0.0
        for t in range(lengths[b]):
            tag = tags[b, t]
            if tag < 0 or tag >= c:
                return b * n + t
            score += emissions[b, t, tag]
            if t == 0:
                score += start[tag]
            else:
                score += transitions[at(b, transitions.shape[0]), at(t - 1, transitions.shape[1]), before, tag]
            before = tag
        scores[b] = score + end[before]
    return -1


@kernel(EXACT)
def add_path_gradients(tags, lengths, grad, d_emissions, d_transitions, d_start, d_end):
    """Add grad[b] at every part of the path: the observed counts.

    Args:
        tags: int64 [batch, n].
        lengths: positions of each row, int64 [batch].
        grad: weight of each row, float64 [batch].
        d_emissions: [batch, n, c], added to.
        d_transitions: derivatives by transitions, float64 [1 or batch, 1 or n-1, c, c], added to.
        d_start: derivatives by start scores, float64 [c], added to.
        d_end: derivatives by end scores, float64 [c], added to.
    """  # [S4.115; S2, log-linear gradient]
    for b in range(tags.shape[0]):
        before = -1
        for t in range(lengths[b]):
            tag = tags[b, t]
            d_emissions[b, t, tag] += grad[b]
            if t == 0:
                d_start[tag] += grad[b]
            else:
                d_transitions[at(b, d_transitions.shape[0]), at(t - 1, d_transitions.shape[1]), before, tag] += grad[b]
            before = tag
        d_end[before] += grad[b]


@kernel(FAST)
def _padded(matrix):
    """Return a copy whose rows are filled up with -inf to whole vector registers: a third faster to run over."""
    c = matrix.shape[0]
    width = (c + 7) // 8 * 8 if c > 16 else c
    out = np.empty((c, width), matrix.dtype)
    for i in range(c):  # loops, not slices: each slice assignment takes a second to compile
        for j in range(c):
            out[i, j] = matrix[i, j]
        for j in range(c, width):
            out[i, j] = NEG_INF
    return out


@kernel(FAST)
def best_paths(first, last, emissions, transitions, start, end, lengths, tags, possible):
    """Run Viterbi: δ forward without back-pointers, then the argmax only along the best path.

    δ is shifted to a highest of 0 every few steps: rounding stays that of a few scores, however long the row. A fast
    lane of its own: written over a number space, the same recursion takes up to 1.26 times as long (decision 61).

    Args:
        first: the first row.
        last: the row behind the last.
        emissions: [batch, n, c], float32 or float64.
        transitions: [1 or batch, 1 or n-1, c, c], indexed [from, to].
        start: [c].
        end: [c].
        lengths: positions of each row, int64 [batch].
        tags: best tags, int64 [batch, n], filled in.
        possible: whether a row has a path, bool [batch], filled in.
    """  # [S4.100-103, 111]
    _, n, c = emissions.shape
    shared = transitions.shape[0] == 1 and transitions.shape[1] == 1
    arc_scores = _padded(transitions[0, 0]) if shared else np.empty((c, c), emissions.dtype)
    deltas, arrived = np.empty((n, c), emissions.dtype), np.empty(arc_scores.shape[1], emissions.dtype)
    for b in range(first, last):
        length = lengths[b]
        for j in range(c):
            deltas[0, j] = start[j] + emissions[b, 0, j]
        for t in range(1, length):
            if not shared:
                arc_scores = transitions[b, t - 1]
            best_arrivals(deltas, t - 1, arc_scores, arrived)
            for j in range(c):
                deltas[t, j] = arrived[j] + emissions[b, t, j]  # [S4.101]
            if t % SHIFT_EVERY == 0:
                subtract_highest(deltas[t])
        for j in range(c):
            arrived[j] = deltas[length - 1, j] + end[j]
        tag, best = first_best(arrived, c)  # [S4.102]
        possible[b] = best > NEG_INF
        tags[b, length - 1] = tag
        for t in range(length - 2, -1, -1):
            if not shared:
                arc_scores = transitions[b, t]
            for i in range(c):
                arrived[i] = deltas[t, i] + arc_scores[i, tag]
            tag, _ = first_best(arrived, c)  # [S4.103], corrected
            tags[b, t] = tag


@kernel(FAST)
def top_paths(first, last, emissions, transitions, start, end, lengths, tags, scores):
    """Compute the k best paths: δ_t(j) holds the k best prefixes ending in tag j; a prefix is (tag before, its rank).

    tags [k, batch, n], scores [k, batch]; a row with fewer than k paths has scores of -inf at the end. A fast lane of
    its own: the recursion over the semiring of lists, in torch, takes 58 times as long at (32, 30, 9), k = 10.

    Args:
        first: the first row.
        last: the row behind the last.
        emissions: [batch, n, c], float32 or float64.
        transitions: [1 or batch, 1 or n-1, c, c], indexed [from, to].
        start: [c].
        end: [c].
        lengths: positions of each row, int64 [batch].
        tags: int64 [k, batch, n], filled in.
        scores: float64 [k, batch], filled in.
    """
    k = scores.shape[0]
    _, n, c = emissions.shape
    deltas, origins = np.empty((n, c, k)), np.zeros((n, c, k), np.int64)
    finals, final_origins = np.empty(k), np.zeros(k, np.int64)
    for b in range(first, last):
        length = lengths[b]
        for t in range(length):
            deltas[t] = NEG_INF
            for j in range(c):
                values = deltas[t, j]
                if t == 0:
                    values[0] = start[j]
                else:
                    arc_scores = transitions[at(b, transitions.shape[0]), at(t - 1, transitions.shape[1])]
                    for i in range(c):
                        insert_moved(deltas[t - 1, i], arc_scores[i, j], i * k, values, origins[t, j])
                for r in range(k):
                    values[r] += emissions[b, t, j]
        finals[:] = NEG_INF
        for j in range(c):
            insert_moved(deltas[length - 1, j], end[j], j * k, finals, final_origins)
        for rank in range(k):
            scores[rank, b] = finals[rank]
            if finals[rank] == NEG_INF:
                continue
            place = final_origins[rank]
            for t in range(length - 1, -1, -1):
                tags[rank, b, t] = place // k
                place = origins[t, place // k, place % k]


@kernel(FAST)
def sample_paths(first, last, scores, arcs, wide_at, run, uniforms, tags):
    """Sample backwards: y_L ~ α_L e^{end}, then y_t ~ α_t(i) e^{a(i, y_{t+1})}, without an exp or a log a sample.

    Running sums of weights are made once for each tag that follows at a position, however many samples have it there.
    `scores` are transitions, end, and the lengths; `run` alphas, log_alphas and arrivals as `backward_arcs` says.

    Args:
        first: the first row.
        last: the row behind the last.
        scores: transitions, end and lengths.
        arcs: exp of the transitions, shifted, [1 or batch, 1 or n-1, c, width].
        wide_at: place of each row among those in log space, -1 for the others, int64 [batch].
        run: alphas, log_alphas and arrivals, as `backward_arcs` reads them.
        uniforms: numbers in [0, 1), float64 [samples, batch, n].
        tags: int64 [samples, batch, n], filled in.
    """
    transitions, end, lengths = scores
    alphas, log_alphas, arrivals = run
    c = end.shape[0]
    sums, known_at, step = np.empty((c, c)), np.zeros(c, np.int64), 0
    ones, before = np.ones((1, 1, c)), np.empty((1, 1, c, c))
    for b in range(first, last):
        r = wide_at[b]
        row_alphas, row_arcs = (ones, before) if r >= 0 else (alphas, arcs)
        ba, bb = at(b, row_alphas.shape[0]), at(b, row_arcs.shape[0])
        for t in range(lengths[b] - 1, -1, -1):
            step, is_last, ta, tt = step + 1, t == lengths[b] - 1, at(t, row_alphas.shape[1]), at(t, row_arcs.shape[1])
            if is_last:
                weigh(log_alphas[r, t] if r >= 0 else alphas[b, t], r >= 0, end, sums[0])
                sum_up(sums[0])
                known_at[0] = step
            elif r >= 0:
                backward_arcs(b, t, r, transitions, log_alphas, arrivals, before[0, 0])
            for s in range(uniforms.shape[0]):
                to = 0 if is_last else tags[s, b, t + 1]
                if known_at[to] < step:  # made at an earlier position or row, if ever
                    for i in range(c):
                        sums[to, i] = row_alphas[ba, ta, i] * row_arcs[bb, tt, i, to]
                    sum_up(sums[to])
                    known_at[to] = step
                tags[s, b, t] = pick_from_sums(sums, to, c, uniforms[s, b, t])
