"""log p(tags) of a plain batch in one kernel forward and one backward.

A training step on a small batch takes some 100 µs of arithmetic, and a kernel for each part as long again.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from trelliswork.runtime import buffers
from trelliswork.runtime.autograd import differentiable
from trelliswork.runtime.bridge import Array, as_array, as_tensor
from trelliswork.runtime.threads import over_rows
from trelliswork.structures.chain import structure
from trelliswork.structures.chain.likelihood_kernels import backward_rows, forward_rows
from trelliswork.structures.chain.structure import Chain

if TYPE_CHECKING:
    from trelliswork.structures.chain.solver import ChainArrays

Scores = tuple[Tensor, Tensor, Tensor, Tensor]  # emissions, transitions, start, end
Run = tuple[Array, Array, Array]  # alphas, emits and finals of `forward_rows`


def log_likelihood(scores: Scores, given: ChainArrays, tags: Tensor) -> Tensor | None:
    """log p(tags) [batch], for scores and their arrays; None if a tag is out of range or a row is wide."""
    arrays, golds = given.double(), as_array(tags)
    shape = arrays.emissions.shape
    run, log_probs = (buffers.empty(shape), buffers.empty(shape), np.empty(shape[0])), np.empty(shape[0])
    by_part = over_rows(forward_rows, shape[0], arrays.work, arrays[:4], golds, arrays.lengths, run, log_probs)
    if not all(fine for fine, _ in by_part):
        return None

    def reference(emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor) -> Tensor:
        chain = Chain(emissions, transitions, start, end, torch.from_numpy(arrays.lengths))
        return structure.log_prob(chain, torch.from_numpy(golds))

    vjp = partial(_gradients, tags=golds, arrays=arrays, arcs=by_part[0][1], run=run)
    log_prob: Tensor = differentiable(as_tensor(log_probs, scores[0].dtype), scores, vjp, reference)
    return log_prob


def _gradients(grad: Array, tags: Array, arrays: ChainArrays, arcs: Array, run: Run) -> tuple[Array, ...]:
    """Of Σ grad · log p(tags), by emissions, transitions, start and end."""
    batch, d_emissions = len(grad), buffers.empty(run[0].shape)
    by_part = over_rows(
        backward_rows, batch, arrays.work, tags, arrays.lengths, grad, arrays.end, arcs, run, d_emissions
    )
    d_others = by_part[0] if len(by_part) == 1 else map(sum, zip(*by_part, strict=True))
    return d_emissions, *d_others
