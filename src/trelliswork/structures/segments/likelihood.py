"""log p(segmentation) of a plain batch with the least work per call: one kernel forward, one backward.

A training step on a small batch takes some 200 µs of arithmetic; a kernel for each part and a check for each input take
as long again. What is not plain is left to `solver.py`.
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
from trelliswork.structures.segments.structure import Scores, Segments

Arrays = tuple[Array, ...]


def _gradients(grad: Array, scores: Arrays, lengths: Array, starts: Array, left: Arrays) -> Arrays:
    """Of Σ grad · log p(starts), by segments, transitions, start and end."""
    d_segments = buffers.empty(scores[0].shape)
    return d_segments, *backward_rows(scores, lengths, starts, grad, left, d_segments)


def log_likelihood(scores: Scores, starts: Tensor, lengths: Tensor | None) -> Tensor | None:
    """log p(starts) [batch]; None where the general way is needed instead.

    That is for mixed or half precision, work for several threads, NaN and +inf, wide scores, and segmentations that are
    wrong or forbidden.
    """
    dtype = scores[0].dtype  # the loss of [S0, likelihood]
    if dtype not in (torch.float32, torch.float64) or any(each is not None and each.dtype != dtype for each in scores):
        return None
    batch, n, k, c = scores[0].shape
    if starts.dtype != torch.long or starts.shape != (batch, n):
        return None
    if lengths is not None and (lengths.shape != (batch,) or lengths.dtype.is_floating_point):
        return None
    if len(row_ranges(batch, batch * n * c * (12 * k + c))) > 1:
        return None
    arrays = tuple(np.empty((0, 0)) if each is None else as_array(each, np.float64) for each in scores)
    gold, row_lengths = as_array(starts), np.full(batch, n) if lengths is None else as_array(lengths, np.int64)
    left = (
        np.empty(arrays[1].shape), np.empty(3), buffers.empty((batch, n + 1, c)), buffers.empty((batch, n, c)),
        np.empty((batch, n + 1)), np.empty(batch),
    )  # fmt: skip
    log_probs = np.empty(batch)
    if not forward_rows(arrays, row_lengths, gold, left, log_probs):
        return None

    def reference(segments: Tensor, transitions: Tensor | None, start: Tensor, end: Tensor) -> Tensor:
        parts = Segments(segments, transitions, start, end, torch.from_numpy(row_lengths))
        return structure.log_prob(parts, torch.from_numpy(gold))

    return differentiable(
        as_tensor(log_probs, dtype),
        scores,
        partial(_gradients, scores=arrays, lengths=row_lengths, starts=gold, left=left),
        reference,
    )
