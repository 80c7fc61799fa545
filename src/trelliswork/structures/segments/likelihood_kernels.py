"""CPU kernels that do all of a loss or all of its gradient in one call. Same conventions as `scaled_kernels.py`."""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.compilation import EXACT, FAST, kernel
from trelliswork.runtime.kernel_math import first_not_a_score
from trelliswork.structures.segments import path_kernels, scaled_kernels


@kernel(EXACT)
def _are_segmentations(starts, lengths, k, c):
    """Do all rows begin with a segment, with labels in 0..c-1 and at most k positions a segment?"""
    for b in range(starts.shape[0]):
        if not 1 <= lengths[b] <= starts.shape[1] or starts[b, 0] < 0:
            return False
        first = 0
        for i in range(lengths[b]):
            if starts[b, i] >= c:
                return False
            first = i if starts[b, i] >= 0 else first
            if i - first >= k:
                return False
    return True


@kernel(FAST)
def forward_rows(given, scores, starts, arcs, shifts, run, log_probs):
    """log p(s) = G(s, x) - log Z of every row; False where a row wants the general way.

    `given` are segments, transitions, start, end, and the lengths, `scores` [batch, n, k c] the segments again. `run`,
    alphas, gammas, levels and finals, is left for `backward_rows` as `forward_scaled` says.
    """  # [S0, likelihood]
    segments, transitions, start, end, lengths = given
    alphas, gammas, levels, finals = run
    batch, _, k, c = segments.shape
    log_z, wide = np.empty(batch), np.empty(batch, np.bool_)
    if not _are_segmentations(starts, lengths, k, c):
        return False
    if first_not_a_score(segments.ravel(), transitions.ravel(), start, end)[0] >= 0:
        return False
    scaled_kernels.exp_arcs(transitions, start, end, arcs, shifts)
    left = (alphas, gammas, levels, finals, log_z, wide)
    scaled_kernels.forward_scaled(0, batch, given, scores, arcs, shifts, left)
    path_kernels.path_scores(segments, transitions, start, end, lengths, starts, log_probs)
    for b in range(batch):
        if wide[b] or log_probs[b] == -np.inf:
            return False
        log_probs[b] = min(log_probs[b] - log_z[b], 0.0)  # rounding must not pass certainty
    return True


@kernel(FAST)
def backward_rows(scores, starts, lengths, grad, end, arcs, shifts, run, d_segments, d_scores):
    """Gradients of Σ_b grad[b] log p(s_b): observed less expected. By the segments in place; by transitions,
    start and end returned.
    """  # [S0.7]
    batch, c = lengths.shape[0], end.shape[0]
    d_arcs, d_start, d_end = np.zeros((batch, *arcs.shape)), np.zeros((batch, c)), np.zeros((batch, c))
    alphas, gammas, levels, finals = run
    left = (alphas, gammas, levels, finals, np.zeros(batch, np.bool_))
    found = (d_segments, d_scores, d_arcs, d_start, d_end)
    scaled_kernels.backward_scaled(0, batch, scores, arcs, shifts, end, lengths, left, -grad, found)
    path_kernels.add_path_gradients(starts, lengths, grad, d_segments, d_arcs, d_start, d_end)
    return d_arcs.sum(0), d_start.sum(0), d_end.sum(0)
