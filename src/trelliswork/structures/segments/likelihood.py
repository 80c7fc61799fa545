"""log p(segmentation) of a plain batch with the least work per call: one kernel forward, one backward.

A training step on a small batch takes some 200 µs of arithmetic; going through the distribution, with a kernel for each
part and a check for each input, takes as long again. What is not plain is left to it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from trelliswork.runtime import buffers
from trelliswork.runtime.bridge import Array, as_array, as_tensor, by_reference, to_tensors
from trelliswork.runtime.threads import row_ranges
from trelliswork.structures.segments import structure
from trelliswork.structures.segments.likelihood_kernels import backward_rows, forward_rows
from trelliswork.structures.segments.structure import Segments

Left = tuple[Array, ...]  # end scores, and arcs, shifts, alphas, gammas, levels, finals of `forward_rows`


class LogLikelihood(torch.autograd.Function):
    """log p(starts) [batch] [S0, likelihood], with what `forward_rows` was given and has left behind."""

    @staticmethod
    def forward(
        ctx: Any, log_probs: Array, rows: Array, starts: Array, lengths: Array, left: Left, *scores: Tensor | None
    ) -> Tensor:
        ctx.rows, ctx.starts, ctx.lengths, ctx.left = rows, starts, lengths, left
        ctx.save_for_backward(*scores)
        assert scores[0] is not None
        return as_tensor(log_probs, scores[0].dtype)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        scores, starts, lengths = ctx.saved_tensors, ctx.starts, ctx.lengths
        if torch.is_grad_enabled():
            segments, transitions, start, end = scores
            parts = Segments(segments, transitions, start, end, torch.from_numpy(lengths))
            gold = torch.from_numpy(starts)
            found = by_reference(lambda parts: structure.log_prob(parts, gold), parts, scores, grads)
            return None, None, None, None, None, *found
        d_segments = buffers.empty(scores[0].shape)
        d_rows = d_segments.reshape(ctx.rows.shape)
        grad = as_array(grads[0], np.float64)
        d_others = backward_rows(ctx.rows, starts, lengths, grad, *ctx.left, d_segments, d_rows)
        return None, None, None, None, None, *to_tensors((d_segments, *d_others), scores)


def log_likelihood(
    segments: Tensor, transitions: Tensor | None, start: Tensor, end: Tensor, starts: Tensor, lengths: Tensor | None
) -> Tensor | None:
    """log p(starts) [batch]; None where the general way is needed instead.

    That is for mixed or half precision, work for several threads, NaN and +inf, wide scores, and segmentations that are
    wrong or forbidden.
    """
    dtype = segments.dtype
    given = (start, end) if transitions is None else (start, end, transitions)
    if dtype not in (torch.float32, torch.float64) or any(each.dtype != dtype for each in given):
        return None
    batch, n, k, c = segments.shape
    if starts.dtype != torch.long or starts.shape != (batch, n):
        return None
    if lengths is not None and (lengths.shape != (batch,) or lengths.dtype.is_floating_point):
        return None
    if len(row_ranges(batch, batch * n * c * (12 * k + c))) > 1:
        return None
    whole = as_array(segments, np.float64)
    rows, gold = whole.reshape(batch, n, k * c), as_array(starts)
    arcs_of = np.empty((0, 0)) if transitions is None else as_array(transitions, np.float64)
    edges = as_array(start, np.float64), as_array(end, np.float64)
    row_lengths = np.full(batch, n) if lengths is None else as_array(lengths, np.int64)
    left = (
        np.empty(arcs_of.shape), np.empty(3), buffers.empty((batch, n + 1, c)), buffers.empty((batch, n, c)),
        np.empty((batch, n + 1)), np.empty(batch),
    )  # fmt: skip
    log_probs = np.empty(batch)
    if not forward_rows(whole, rows, arcs_of, *edges, row_lengths, gold, *left, log_probs):
        return None
    return LogLikelihood.apply(log_probs, rows, gold, row_lengths, (edges[1], *left), segments, transitions, start, end)
