"""log p(segmentation) of a plain batch with the least work per call: one kernel forward, one backward.

A training step on a small batch takes some 200 µs of arithmetic; going through the distribution, with a kernel for each
part and a check for each input, takes as long again. What is not plain is left to it.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
from torch import Tensor

from trelliswork.runtime import buffers
from trelliswork.runtime.autograd import differentiable
from trelliswork.runtime.bridge import Array, as_array, as_tensor
from trelliswork.runtime.threads import row_ranges
from trelliswork.structures.segments import structure
from trelliswork.structures.segments.likelihood_kernels import backward_rows, forward_rows
from trelliswork.structures.segments.structure import Segments

Left = tuple[Array, Array, Array, tuple[Array, ...]]  # end scores, and arcs, shifts and run of `forward_rows`


def _gradients(grad: Array, rows: Array, starts: Array, lengths: Array, left: Left) -> tuple[Array, ...]:
    """Of Σ grad · log p(starts), by segments, transitions, start and end."""
    d_rows = buffers.empty(rows.shape)
    d_segments = d_rows.reshape(*rows.shape[:2], -1, len(left[0]))
    d_others = backward_rows(rows, starts, lengths, grad, *left, d_segments, d_rows)
    return d_segments, *d_others


def log_likelihood(
    segments: Tensor, transitions: Tensor | None, start: Tensor, end: Tensor, starts: Tensor, lengths: Tensor | None
) -> Tensor | None:
    """log p(starts) [batch]; None where the general way is needed instead.

    That is for mixed or half precision, work for several threads, NaN and +inf, wide scores, and segmentations that are
    wrong or forbidden.
    """
    dtype = segments.dtype  # the loss of [S0, likelihood]
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
    arcs, shifts = np.empty(arcs_of.shape), np.empty(3)
    run = (
        buffers.empty((batch, n + 1, c)), buffers.empty((batch, n, c)), np.empty((batch, n + 1)), np.empty(batch),
    )  # fmt: skip
    log_probs = np.empty(batch)
    if not forward_rows((whole, arcs_of, *edges, row_lengths), rows, gold, arcs, shifts, run, log_probs):
        return None

    def reference(segments: Tensor, transitions: Tensor | None, start: Tensor, end: Tensor) -> Tensor:
        parts = Segments(segments, transitions, start, end, torch.from_numpy(row_lengths))
        return structure.log_prob(parts, torch.from_numpy(gold))

    return differentiable(
        as_tensor(log_probs, dtype),
        (segments, transitions, start, end),
        partial(_gradients, rows=rows, starts=gold, lengths=row_lengths, left=(edges[1], arcs, shifts, run)),
        reference,
    )
