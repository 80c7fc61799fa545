"""CPU kernels that pick alignments: the best, the k best, samples; and what prefix search computes for a label string.

Same conventions as `kernels.py`, but states of ℓ' are numbered as they are: s = 2u is the blank before label u,
s = 2u + 1 label u. Its score is `emissions[s % 2, t, b, s // 2]`.
"""

from __future__ import annotations

import math

import numpy as np

from trelliswork.runtime.arrays import NEG_INF
from trelliswork.runtime.compilation import EXACT, kernel
from trelliswork.runtime.kernel_math import insert_moved, log_add
from trelliswork.runtime.kernel_random import uniform

STAY, STEP, SKIP = 0, 1, 2  # a move goes back this many states


@kernel(EXACT)
def _symbol(s, targets, blank):
    return blank if s % 2 == 0 else targets[s // 2]


@kernel(EXACT)
def _n_moves(s, bars):
    """Return the number of moves into state s: 1 at the first, 2 at blanks and repeats, 3 at other labels."""
    if s % 2 == 1 and s > 1 and bars[s // 2] == 0.0:
        return 3
    return 2 if s > 0 else 1


@kernel(EXACT)
def best_paths(first, last, emissions, bars, targets, lengths, target_lengths, blank, paths, possible):
    """Run Viterbi: `forward` with max. Among ties a path ends in the blank, and looks back to where it already is.

    Args:
        first: the first row.
        last: the row behind the last.
        emissions: scores of the blank and of labels, float64 [2, t, batch, u+1].
        bars: -inf where a label must not follow the one before at once, else 0, float64 [batch, u+1].
        targets: labels of each row, int64 [batch, u].
        lengths: frames of each row, int64 [batch].
        target_lengths: labels of each row, int64 [batch].
        blank: number of the blank.
        paths: symbol of each frame, int64 [batch, t], filled in.
        possible: whether a row has an alignment, bool [batch], filled in.
    """
    # [S4.654-657]
    _, n_frames, _, size = emissions.shape
    alpha, new, moves = np.empty(2 * size), np.empty(2 * size), np.empty((n_frames, 2 * size), np.int8)
    for b in range(first, last):
        n_states = 2 * target_lengths[b] + 1
        if lengths[b] == 0:
            possible[b] = n_states == 1
            continue
        alpha[:] = NEG_INF
        for s in range(min(2, n_states)):
            alpha[s] = emissions[s % 2, 0, b, s // 2]
        for t in range(1, lengths[b]):
            for s in range(n_states):
                best, move = alpha[s], STAY
                for m in range(1, _n_moves(s, bars[b])):
                    if alpha[s - m] > best:
                        best, move = alpha[s - m], m
                new[s], moves[t, s] = best + emissions[s % 2, t, b, s // 2], move
            alpha, new = new, alpha
        s = n_states - 1
        if s > 0 and alpha[s - 1] > alpha[s]:
            s -= 1
        possible[b] = alpha[s] > NEG_INF
        for t in range(lengths[b] - 1, -1, -1):
            paths[b, t] = _symbol(s, targets[b], blank)
            s -= moves[t, s] if t > 0 and possible[b] else 0


@kernel(EXACT)
def top_paths(first, last, emissions, bars, targets, lengths, target_lengths, blank, paths, scores):
    """Find the k best paths: descending lists in place of numbers; an origin is move * k + rank in its list.

    Args:
        first: the first row.
        last: the row behind the last.
        emissions: scores of the blank and of labels, float64 [2, t, batch, u+1].
        bars: -inf where a label must not follow the one before at once, else 0, float64 [batch, u+1].
        targets: labels of each row, int64 [batch, u].
        lengths: frames of each row, int64 [batch].
        target_lengths: labels of each row, int64 [batch].
        blank: number of the blank.
        paths: int64 [k, batch, t], filled in.
        scores: float64 [k, batch], filled in.
    """
    k = paths.shape[0]
    _, n_frames, _, size = emissions.shape
    alpha, new = np.empty((2 * size, k)), np.empty((2 * size, k))
    origins = np.zeros((n_frames + 1, 2 * size, k), np.int64)
    for b in range(first, last):
        n_states, n = 2 * target_lengths[b] + 1, lengths[b]
        alpha[:] = NEG_INF
        if n == 0:
            scores[:, b] = NEG_INF
            scores[0, b] = 0.0 if n_states == 1 else NEG_INF
            continue
        for s in range(min(2, n_states)):
            alpha[s, 0] = emissions[s % 2, 0, b, s // 2]
        for t in range(1, n):
            new[:] = NEG_INF
            for s in range(n_states):
                emission = emissions[s % 2, t, b, s // 2]
                for m in range(_n_moves(s, bars[b])):
                    insert_moved(alpha[s - m], emission, m * k, new[s], origins[t, s])
            alpha, new = new, alpha
        ended, final = new[0], origins[n, 0]
        ended[:] = NEG_INF
        for m in range(min(2, n_states)):
            insert_moved(alpha[n_states - 1 - m], 0.0, m * k, ended, final)
        for r in range(k):
            scores[r, b] = ended[r]
            if ended[r] > NEG_INF:
                s, rank = n_states - 1 - final[r] // k, final[r] % k
                for t in range(n - 1, -1, -1):
                    paths[r, b, t] = _symbol(s, targets[b], blank)
                    if t > 0:
                        origin = origins[t, s, rank]
                        s, rank = s - origin // k, origin % k


@kernel(EXACT)
def sample_paths(first, last, bars, run, strings, blank, seeds, paths):
    """Draw exact samples, from the last frame to the first: predecessors are drawn by their shares.

    Args:
        first: the first row.
        last: the row behind the last.
        bars: -inf where a label must not follow the one before at once, else 0, float64 [batch, u+1].
        run: shares, ends and log_z of `forward`.
        strings: targets, lengths and target lengths.
        blank: number of the blank.
        seeds: a seed for each sample, int64 [samples, batch].
        paths: int64 [samples, batch, t], filled in.
    """
    (shares, ends, _), (targets, lengths, target_lengths), state = run, strings, np.empty(1, np.uint64)
    for b in range(first, last):
        for i in range(paths.shape[0]):
            s, state[0] = 2 * target_lengths[b], np.uint64(seeds[i, b])
            if s > 0 and uniform(state) >= ends[b]:
                s -= 1
            for t in range(lengths[b] - 1, -1, -1):
                paths[i, b, t] = _symbol(s, targets[b], blank)
                u = s // 2
                if t == 0 or (s % 2 == 1 and uniform(state) < shares[1, t, b, u]):
                    continue
                skips = s % 2 == 0 or bars[b, u] == 0.0  # it comes from blank u, or from label u-1
                s = 2 * u - (1 if skips and uniform(state) >= shares[0, t, b, u] else 0)


# --- prefix search -------------------------------------------------------------------------------------------


@kernel(EXACT)
def extend_prefix(scores, blank, label, reaching, in_label, in_blank):
    """A prefix with one more label: log weights of the paths of frames 0..t that collapse to it and end in the label,
    or in a blank. reaching[t]: those that may begin the label at frame t. Returns the weight of the string itself.

    Args:
        scores: scores of the symbols of each frame, float64 [t, c].
        blank: number of the blank.
        label: the next label.
        reaching: log weight of the paths that may begin a label at each frame, float64 [t].
        in_label: log weight of the paths that end in the label, float64 [t], filled in.
        in_blank: the same for a blank behind it, float64 [t], filled in.
    """
    label_weight, blank_weight = NEG_INF, NEG_INF
    for t in range(scores.shape[0]):
        blank_weight = scores[t, blank] + log_add(blank_weight, label_weight)
        label_weight = scores[t, label] + log_add(label_weight, reaching[t])
        in_label[t], in_blank[t] = label_weight, blank_weight
    return log_add(label_weight, blank_weight)


@kernel(EXACT)
def prefix_masses(scores, rest, blank, last, in_label, in_blank, reaching, repeating, masses):
    """masses[k]: the log weight of all paths whose string goes on with label k, whatever follows.

    rest[t] is the log weight of frames t.. together. A label other than the last may begin at once (`reaching`), the
    last one only after a blank (`repeating`).

    Args:
        scores: scores of the symbols of each frame, float64 [t, c].
        rest: log weight of all that may follow, by frame, float64 [t+1].
        blank: number of the blank.
        last: the last label of the prefix.
        in_label: log weight of the paths that end in the last label, float64 [t].
        in_blank: the same for a blank behind it, float64 [t].
        reaching: room for the weights of paths that may begin another label, float64 [t].
        repeating: room for the weights of paths that may begin the last label again, float64 [t].
        masses: float64 [c], filled in.
    """  # [S4, prefix search]
    n, c = scores.shape
    for t in range(1, n):
        reaching[t] = log_add(in_blank[t - 1], in_label[t - 1])
        repeating[t] = in_blank[t - 1]
    for k in range(c):
        masses[k] = NEG_INF
        if k == blank:
            continue
        top, total = NEG_INF, 0.0
        for t in range(n):
            value = (repeating[t] if k == last else reaching[t]) + scores[t, k] + rest[t + 1]
            if value > top:  # in one pass: what was summed is scaled to the new highest value
                total, top = (total * math.exp(top - value) if top > NEG_INF else 0.0) + 1.0, value
            elif value > NEG_INF:
                total += math.exp(value - top)
        masses[k] = top + math.log(total) if total > 0.0 else NEG_INF
