"""CPU kernels that do all of a loss or all of its gradient in one call. Same conventions as `kernels.py`."""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.compilation import FAST, kernel
from trelliswork.runtime.kernel_math import first_not_a_score, right_padded
from trelliswork.structures.chain import kernels, path_kernels


@kernel(FAST)
def forward_rows(scores, tags, mask, lengths, left, log_probs):
    """log p(tags) = score(tags) - log Z of every row; False where a row wants the general way.

    `scores` are emissions, transitions [1, 1, c, c], start and end. Unless the mask is empty, lengths are read from it.
    `left`, for `backward_rows`, are arcs, alphas, emits and finals as `kernels.forward_scaled` says.
    """  # [S4.114]
    emissions, transitions, start, end = scores
    arcs, alphas, emits, finals = left
    batch = emissions.shape[0]
    log_z, wide, arc_shifts = np.empty(batch), np.empty(batch, np.bool_), np.empty((1, 1))
    if mask.shape[0] > 0 and not right_padded(mask, lengths):
        return False
    if path_kernels.path_scores(emissions, transitions, start, end, lengths, tags, log_probs) >= 0:
        return False
    if first_not_a_score((emissions.ravel(), transitions.ravel(), start, end))[0] >= 0:
        return False
    kernels.exp_arcs(transitions, arcs, arc_shifts)
    given = (emissions, transitions, start, end, lengths)
    kernels.forward_scaled(0, batch, given, arcs, arc_shifts, (alphas, emits, finals, log_z, wide))
    for b in range(batch):
        if wide[b]:
            return False
        if log_probs[b] > -np.inf:
            log_probs[b] = min(log_probs[b] - log_z[b], 0.0)  # rounding must not pass certainty
    return True


@kernel(FAST)
def backward_rows(tags, lengths, grad, end, left, d_emissions):
    """Gradients of Σ_b grad[b] log p(tags_b): what is observed less what is expected.

    By the emissions, in place; by transitions [1, 1, c, c], start and end, returned.
    """  # [S4.115-120]
    arcs, alphas, emits, finals = left
    c = end.shape[0]
    run, none_kept = (alphas, emits, finals), np.empty((0, 0, 0))
    sums = kernels.backward_scaled(0, len(grad), run, arcs, end, lengths, -grad, d_emissions, none_kept, False)
    d_transitions, d_start, d_end = np.empty((1, 1, c, c)), np.zeros(c), np.zeros(c)
    for i in range(c):
        for j in range(c):
            d_transitions[0, 0, i, j] = sums[0, i, j] * arcs[0, 0, i, j]
    kernels.edge_gradients(d_emissions, lengths, d_start, d_end)
    path_kernels.add_path_gradients(tags, lengths, grad, d_emissions, d_transitions, d_start, d_end)
    return d_transitions, d_start, d_end
