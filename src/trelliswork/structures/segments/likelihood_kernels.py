"""CPU kernels that do all of a loss or all of its gradient in one call. Same conventions as `scaled_kernels.py`."""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.compilation import EXACT, FAST, kernel
from trelliswork.structures.segments import path_kernels, scaled_kernels


@kernel(EXACT)
def _are_segmentations(starts, lengths, k, c):
    """Return True if all rows begin with a segment, with labels in 0..c-1 and at most k positions a segment."""
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
def forward_rows(scores, lengths, starts, left, log_probs):
    """Return log p(s) = G(s, x) - log Z of every row; False where a row wants the general way.

    `scores` are segments, transitions, start and end, without NaN and +inf. `left`, for `backward_rows`, are arcs,
    shifts, alphas, gammas, levels and finals as `forward_scaled` says.

    Args:
        scores: parts, transitions, start, end and lengths.
        lengths: tokens of each row, int64 [batch].
        starts: the label at each token that starts a segment, negative elsewhere, int64 [batch, n].
        left: arrays that `forward_rows` has left.
        log_probs: log probability of each segmentation, float64 [batch], filled in.
    """  # [S0, likelihood]
    segments, transitions, start, end = scores
    arcs, shifts, alphas, gammas, levels, finals = left
    batch, n, k, c = segments.shape
    log_z, wide = np.empty(batch), np.empty(batch, np.bool_)
    if not _are_segmentations(starts, lengths, k, c):
        return False
    scaled_kernels.exp_arcs(transitions, start, end, arcs, shifts)
    run, given = (alphas, gammas, levels, finals, log_z, wide), (segments, transitions, start, end, lengths)
    scaled_kernels.forward_scaled(0, batch, given, segments.reshape((batch, n, k * c)), arcs, shifts, run)
    path_kernels.path_scores(segments, transitions, start, end, lengths, starts, log_probs)
    for b in range(batch):
        if wide[b] or log_probs[b] == -np.inf:
            return False
        log_probs[b] = min(log_probs[b] - log_z[b], 0.0)  # rounding must not pass certainty
    return True


@kernel(FAST)
def backward_rows(scores, lengths, starts, grad, left, d_segments):
    """Return gradients of Σ_b grad[b] log p(s_b): observed less expected. By the segments in place; by transitions,
    start and end returned.

    Args:
        scores: parts, transitions, start, end and lengths.
        lengths: tokens of each row, int64 [batch].
        starts: the label at each token that starts a segment, negative elsewhere, int64 [batch, n].
        grad: weight of each row, float64 [batch].
        left: arrays that `forward_rows` has left.
        d_segments: derivatives by segments, float64 [batch, n, k, c], filled in.
    """  # [S0.7]
    segments, _, _, end = scores
    arcs, shifts, alphas, gammas, levels, finals = left
    batch, n, k, c = segments.shape
    d_arcs, d_start, d_end = np.zeros((batch, *arcs.shape)), np.zeros((batch, c)), np.zeros((batch, c))
    shape, run = (batch, n, k * c), (alphas, gammas, levels, finals, np.zeros(batch, np.bool_))
    gradients = (d_segments, d_segments.reshape(shape), d_arcs, d_start, d_end)
    scaled_kernels.backward_scaled(0, batch, segments.reshape(shape), arcs, shifts, end, lengths, run, -grad, gradients)
    path_kernels.add_path_gradients(starts, lengths, grad, d_segments, d_arcs, d_start, d_end)
    return d_arcs.sum(0), d_start.sum(0), d_end.sum(0)
