"""CPU kernels that do all of a loss or all of its gradient in one call. Same conventions as `kernels.py`.

A fast lane: nine calls, a kernel for each part, take 1.26 times as long at (32, 30, 9) and 1.17 times at (32, 30, 45).
"""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.compilation import FAST, kernel
from trelliswork.structures.chain import kernels, path_kernels

ROWS = 8  # summed before it is looked whether one of them is wide
POSITIONS = 512  # whose arcs are summed in float32 at most; these sums are added up in float64


@kernel(FAST)
def forward_rows(first, last, scores, tags, lengths, run, log_probs):
    """log p(tags) = score(tags) - log Z of rows first..last: (True, arcs), or False if a tag is none or a row is wide.

    In the dtype of the scores, float64 or float32, apart from sums of logarithms.
    `scores` are emissions, transitions [1, 1, c, c], start and end, without NaN and +inf.
    `run`, for `backward_rows`, are alphas, emits and finals as `kernels.forward_scaled` says. The arcs are made here:
    memory of numba's begins at a whole vector register, which a large matrix is up to a third faster to run over.

    Args:
        first: the first row.
        last: the row behind the last.
        scores: emissions, transitions [1, 1, c, c], start and end, without NaN and +inf.
        tags: int64 [batch, n].
        lengths: positions of each row, int64 [batch].
        run: alphas, emits and finals, filled in.
        log_probs: log probability of the tags of each row, float64 [batch], filled in.
    """  # [S4.114]
    every_emission, transitions, start, end = scores
    emissions, golds, of_rows = every_emission[first:last], tags[first:last], lengths[first:last]
    row_log_probs, batch, c = log_probs[first:last], last - first, end.shape[0]
    arcs, arc_shifts = np.empty((1, 1, c, (c + 7) // 8 * 8), start.dtype), np.empty((1, 1))
    if path_kernels.path_scores(emissions, transitions, start, end, of_rows, golds, row_log_probs) >= 0:
        return False, arcs
    kernels.exp_arcs(transitions, arcs, arc_shifts)
    alphas, emits, finals = run
    log_z, wide = np.empty(batch), np.empty(batch, np.bool_)
    given = (emissions, transitions, start, end, of_rows)
    filled = (alphas[first:last], emits[first:last], finals[first:last], log_z, wide)
    for b in range(batch):
        if b % ROWS == 0:  # the rest is not summed in vain
            kernels.forward_scaled(b, min(b + ROWS, batch), given, arcs, arc_shifts, filled)
        if wide[b]:
            return False, arcs
        if row_log_probs[b] > -np.inf:
            row_log_probs[b] = min(row_log_probs[b] - log_z[b], 0.0)  # rounding must not pass certainty
    return True, arcs


@kernel(FAST)
def backward_rows(first, last, tags, lengths, grad, end, arcs, run, d_emissions):
    """Return gradients of Σ_b grad[b] log p(tags_b) over rows first..last: what is observed less what is expected.

    By the emissions, in place; by transitions [1, 1, c, c], start and end, returned.

    Args:
        first: the first row.
        last: the row behind the last.
        tags: int64 [batch, n].
        lengths: positions of each row, int64 [batch].
        grad: weight of each row, float64 [batch].
        end: [c].
        arcs: exp of the transitions, as `forward_rows` returns them.
        run: alphas, emits and finals, as `forward_rows` fills them in.
        d_emissions: derivatives by emissions, [batch, n, c], filled in.
    """  # [S4.115-120]
    c, none_kept = end.shape[0], np.empty((0, 0, 0), end.dtype)
    d_transitions, d_start, d_end = np.zeros((1, 1, c, c)), np.zeros(c), np.zeros(c)
    together = last - first if arcs.itemsize == 8 else max(1, POSITIONS // d_emissions.shape[1])
    for b in range(first, last, together):
        ends = b, min(b + together, last)
        sums = kernels.backward_scaled(*ends, run, arcs, end, lengths, -grad, d_emissions, none_kept, False)
        for i in range(c):
            for j in range(c):
                d_transitions[0, 0, i, j] += sums[0, i, j] * arcs[0, 0, i, j]
    of_rows, changed = lengths[first:last], d_emissions[first:last]
    kernels.edge_gradients(changed, of_rows, d_start, d_end)
    path_kernels.add_path_gradients(tags[first:last], of_rows, grad[first:last], changed, d_transitions, d_start, d_end)
    return d_transitions, d_start, d_end
