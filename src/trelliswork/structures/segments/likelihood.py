"""log p(segmentation) of a plain batch in one kernel forward and one backward.

A training step on a small batch takes some 200 µs of arithmetic, and a kernel for each part as long again.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from trelliswork.runtime import buffers
from trelliswork.runtime.arrays import Array
from trelliswork.runtime.autograd import differentiable
from trelliswork.runtime.bridge import as_array, as_tensor
from trelliswork.runtime.threads import row_ranges
from trelliswork.structures.segments import structure
from trelliswork.structures.segments.likelihood_kernels import backward_rows, forward_rows
from trelliswork.structures.segments.structure import SegmentationScores, Segments

if TYPE_CHECKING:
    from trelliswork.structures.segments.solver import SegmentArrays

Run = tuple[Array, ...]  # arcs, shifts, alphas, gammas, levels and finals of `forward_rows`


def log_likelihood(scores: SegmentationScores, arrays: SegmentArrays, starts: Tensor) -> Tensor | None:
    """Return log p(starts) [batch], for whole scores and their arrays; None where the general way is needed instead.

    That is for work for several threads, wide scores, and segmentations that are wrong or forbidden.
    """  # [S0, likelihood]
    batch, n, _, c = arrays.shape
    if len(row_ranges(batch, arrays.work)) > 1:
        return None
    gold, own, log_probs = as_array(starts), arrays[:4], np.empty(batch)
    run = (
        np.empty(arrays.transitions.shape), np.empty(3), buffers.empty((batch, n + 1, c)), buffers.empty((batch, n, c)),
        np.empty((batch, n + 1)), np.empty(batch),
    )  # fmt: skip
    if not forward_rows(own, arrays.lengths, gold, run, log_probs):
        return None

    def reference(segments: Tensor, transitions: Tensor | None, start: Tensor, end: Tensor) -> Tensor:
        parts = Segments(segments, transitions, start, end, torch.from_numpy(arrays.lengths))
        return structure.log_prob(parts, torch.from_numpy(gold))

    vjp = partial(_gradients, scores=own, lengths=arrays.lengths, starts=gold, run=run)
    log_prob: Tensor = differentiable(as_tensor(log_probs, scores[0].dtype), scores, vjp, reference)
    return log_prob


def _gradients(grad: Array, scores: tuple[Any, ...], lengths: Array, starts: Array, run: Run) -> tuple[Array, ...]:
    """Return the gradients of Σ grad · log p(starts), by segments, transitions, start and end."""
    d_segments = buffers.empty(scores[0].shape)
    return d_segments, *backward_rows(scores, lengths, starts, grad, run, d_segments)
