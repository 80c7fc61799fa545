"""log p(tags) of a plain batch with the least work per call: one kernel forward, one backward.

A training step on a small batch takes some 100 µs of arithmetic; a kernel for each part takes as long again. What is
not plain (holes, wide scores, unknown tags, half precision) is left to `solver.py`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from trelliswork.runtime import buffers
from trelliswork.runtime.autograd import differentiable
from trelliswork.runtime.bridge import as_array, as_tensor
from trelliswork.runtime.threads import over_rows
from trelliswork.structures.chain import structure
from trelliswork.structures.chain.likelihood_kernels import POSITIONS, backward_rows, forward_rows
from trelliswork.structures.chain.structure import Chain

Array = np.ndarray[Any, Any]
Scores = tuple[Tensor, Tensor, Tensor, Tensor]  # emissions, transitions, start, end
NO_MASK = np.empty((0, 0), np.bool_)
Run = tuple[Array, Array, Array]  # alphas, emits and finals of `forward_rows`
MANY_TAGS = 48  # from here on scores in float32 are summed in float32: 1.4 to 2 times as fast, see decision 61


def _gradients(grad: Array, tags: Array, lengths: Array, end: Array, arcs: Array, run: Run) -> tuple[Array, ...]:
    """Of Σ grad · log p(tags), by emissions, transitions, start and end."""
    shape = run[0].shape
    d_emissions = buffers.empty(shape, end.dtype.type)
    by_part = over_rows(backward_rows, *_work(shape), tags, lengths, grad, end, arcs, run, d_emissions)
    d_others = by_part[0] if len(by_part) == 1 else map(sum, zip(*by_part, strict=True))
    return d_emissions, *d_others


def _work(shape: tuple[int, ...]) -> tuple[int, int]:
    """Rows, and multiply-adds, of scores [batch, n, c]."""
    batch, n, c = shape
    return batch, batch * n * c * c


def log_likelihood(
    scores: Scores, tags: Tensor, *, mask: Tensor | None = None, lengths: Tensor | None = None
) -> Tensor | None:
    """log p(tags) [batch] for emissions [batch, n, c], transitions [c, c], start and end; None where it is not plain.

    That is for mixed or half precision, arcs by position, masks with holes, empty rows, NaN and +inf, wide scores, and
    unknown or wrong tags. Rows have a mask, or lengths that have been checked, or neither.
    """
    dtype = scores[0].dtype
    if dtype not in (torch.float32, torch.float64) or scores[1].dtype != dtype or tags.dtype != torch.long:
        return None
    if scores[1].dim() != 2:
        return None
    found = None
    if dtype == torch.float32 and scores[1].shape[0] >= MANY_TAGS and scores[0].shape[1] <= POSITIONS:
        found = _log_likelihood(scores, tags, mask, lengths, np.float32)
    return _log_likelihood(scores, tags, mask, lengths, np.float64) if found is None else found


def _log_likelihood(
    scores: Scores, tags: Tensor, mask: Tensor | None, lengths: Tensor | None, precision: type
) -> Tensor | None:
    """`log_likelihood` with sums in this precision; None also where float32 has not the range for a row."""
    shape = scores[0].shape
    emissions, transitions, start, end = (as_array(each, precision) for each in scores)
    given = emissions, transitions[None, None], start, end
    golds, valid = as_array(tags), NO_MASK if mask is None else as_array(mask, np.bool_)
    batch, n, _ = shape
    row_lengths = np.full(batch, n) if lengths is None else as_array(lengths)
    run = buffers.empty(shape, precision), buffers.empty(shape, precision), np.empty(batch)
    log_probs = np.empty(batch)
    by_part = over_rows(forward_rows, *_work(shape), given, golds, valid, row_lengths, run, log_probs)
    if not all(fine for fine, _ in by_part):
        return None
    arcs = by_part[0][1]

    def reference(emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor) -> Tensor:
        chain = Chain(emissions, transitions, start, end, torch.from_numpy(row_lengths))
        return structure.log_prob(chain, torch.from_numpy(golds))

    return differentiable(
        as_tensor(log_probs, scores[0].dtype),
        scores,
        partial(_gradients, tags=golds, lengths=row_lengths, end=end, arcs=arcs, run=run),
        reference,
    )
