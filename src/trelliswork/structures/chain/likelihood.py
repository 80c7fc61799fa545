"""log p(tags) of a plain batch in one kernel forward and one backward.

A training step on a small batch takes some 100 µs of arithmetic, and a kernel for each part as long again.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from trelliswork.runtime import buffers
from trelliswork.runtime.autograd import differentiable
from trelliswork.runtime.bridge import Array, as_array, as_tensor
from trelliswork.runtime.threads import over_rows
from trelliswork.structures.chain import structure
from trelliswork.structures.chain.likelihood_kernels import backward_rows, forward_rows
from trelliswork.structures.chain.structure import Chain, ChainScores

if TYPE_CHECKING:
    from trelliswork.structures.chain.solver import ChainArrays


class PlainRun(NamedTuple):
    """What a forward pass leaves behind for the way back; see `kernels.forward_scaled`."""

    alphas: Array
    """α_t over its sum [batch, n, c]."""
    emits: Array
    """Weights of the emissions over the same scale [batch, n, c]."""
    finals: Array
    """Σ_j α_L(j) exp end_j [batch]."""


def log_likelihood(scores: ChainScores, given: ChainArrays, tags: Tensor) -> Tensor | None:
    """log p(tags) [batch], for scores and their arrays; None if a tag is out of range or a row is wide."""
    arrays, golds = given.double(), as_array(tags)
    shape = arrays.emissions.shape
    run, log_probs = PlainRun(buffers.empty(shape), buffers.empty(shape), np.empty(shape[0])), np.empty(shape[0])
    arguments = arrays[:4], golds, arrays.lengths, tuple(run)
    by_part = over_rows(forward_rows, shape[0], arrays.work, *arguments, log_probs)
    if not all(fine for fine, _ in by_part):
        return None

    def reference(emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor) -> Tensor:
        chain = Chain(emissions, transitions, start, end, torch.from_numpy(arrays.lengths))
        return structure.log_prob(chain, torch.from_numpy(golds))

    vjp = partial(_gradients, tags=golds, arrays=arrays, arcs=by_part[0][1], run=run)
    log_prob: Tensor = differentiable(as_tensor(log_probs, scores[0].dtype), scores, vjp, reference)
    return log_prob


def _gradients(grad: Array, tags: Array, arrays: ChainArrays, arcs: Array, run: PlainRun) -> tuple[Array, ...]:
    """Of Σ grad · log p(tags), by emissions, transitions, start and end."""
    d_emissions = buffers.empty(run.alphas.shape)
    given = tags, arrays.lengths, grad, arrays.end, arcs, tuple(run)
    by_part = over_rows(backward_rows, len(grad), arrays.work, *given, d_emissions)
    d_others = by_part[0] if len(by_part) == 1 else map(sum, zip(*by_part, strict=True))
    return d_emissions, *d_others
