"""log p(tags) of a plain batch with the least work per call: one kernel forward, one backward.

A training step on a small batch takes some 100 µs of arithmetic; going through the distribution, with a kernel for
each part, takes as long again. What is not plain (holes, wide scores, unknown tags, half precision) is left to it.
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
from trelliswork.runtime.threads import row_ranges, side_by_side
from trelliswork.structures.chain import structure
from trelliswork.structures.chain.likelihood_kernels import backward_rows, forward_rows
from trelliswork.structures.chain.structure import Chain

Array = np.ndarray[Any, Any]
EVERYWHERE = np.empty((0, 0), np.bool_)
Left = tuple[Array, Array, Array, Array, Array]  # end scores, and arcs, alphas, emits, finals of `forward_rows`


def _gradients(grad: Array, tags: Array, lengths: Array, left: Left) -> tuple[Array, ...]:
    """Of Σ grad · log p(tags), by emissions, transitions, start and end."""
    end, arcs, alphas, emits, finals = left
    d_emissions = buffers.empty(alphas.shape)
    by_part = side_by_side(
        [
            partial(
                backward_rows, tags[rows], lengths[rows], grad[rows], end, arcs[:1],
                (alphas[rows], emits[rows], finals[rows]), d_emissions[rows],
            )
            for rows in _parts(alphas.shape)
        ]
    )  # fmt: skip
    d_others = by_part[0] if len(by_part) == 1 else map(sum, zip(*by_part, strict=True))
    return d_emissions, *d_others


def _parts(shape: tuple[int, ...]) -> list[slice]:
    """The rows of each thread, for scores [batch, n, c]."""
    batch, n, c = shape
    return [slice(first, last) for first, last in row_ranges(batch, batch * n * c * c)]


def log_likelihood(
    emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor, tags: Tensor, mask: Tensor | None
) -> Tensor | None:
    """log p(tags) [batch]; None where the general way is needed instead.

    That is for mixed or half precision, masks with holes, empty rows, NaN and +inf, wide scores, and unknown or wrong
    tags.
    """
    dtype, shape = emissions.dtype, emissions.shape
    if dtype not in (torch.float32, torch.float64) or transitions.dtype != dtype or tags.dtype != torch.long:
        return None
    scores = [as_array(each, np.float64) for each in (emissions, transitions, start, end)]
    scores[1] = scores[1][None, None]
    golds, valid = as_array(tags), EVERYWHERE if mask is None else as_array(mask, np.bool_)
    parts, batch, c = _parts(shape), shape[0], shape[2]
    arcs = np.empty((len(parts), 1, c, (c + 7) // 8 * 8))
    alphas, emits = buffers.empty(shape), buffers.empty(shape)
    finals, log_probs, lengths = np.empty(batch), np.empty(batch), np.empty(batch, np.int64)
    fine = side_by_side(
        [
            partial(
                forward_rows, (scores[0][rows], *scores[1:]), golds[rows], valid[rows], lengths[rows],
                arcs[part : part + 1], (alphas[rows], emits[rows], finals[rows]), log_probs[rows],
            )
            for part, rows in enumerate(parts)
        ]
    )  # fmt: skip
    if not all(fine):
        return None
    left = scores[3], arcs, alphas, emits, finals

    def reference(emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor) -> Tensor:
        chain = Chain(emissions, transitions, start, end, torch.from_numpy(lengths))
        return structure.log_prob(chain, torch.from_numpy(golds))

    return differentiable(
        as_tensor(log_probs, dtype),
        (emissions, transitions, start, end),
        partial(_gradients, tags=golds, lengths=lengths, left=left),
        reference,
    )
