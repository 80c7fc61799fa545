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
from trelliswork.runtime.arrays import Array
from trelliswork.runtime.autograd import differentiable
from trelliswork.runtime.bridge import as_array, as_tensor
from trelliswork.runtime.threads import over_rows
from trelliswork.structures.chain import structure
from trelliswork.structures.chain.likelihood_kernels import POSITIONS, backward_rows, forward_rows
from trelliswork.structures.chain.structure import Chain

if TYPE_CHECKING:
    from trelliswork.structures.chain.solver import ChainArrays

MANY_TAGS = 48  # from here on scores in float32 are summed in float32: 1.4 to 2 times as fast, see decision 61


Scores = tuple[Tensor, Tensor, Tensor, Tensor]
"""Those of `ChainScores`, without names: a loss of one short sentence is a matter of 80 µs."""
PlainRun = tuple[Array, Array, Array]
"""What the way back needs: alphas, emits [batch, n, c] and finals [batch] of `kernels.forward_scaled`."""


def log_likelihood(scores: Scores, given: ChainArrays, tags: Tensor) -> Tensor | None:
    """Return log p(tags) [batch], for scores and their arrays; None if a tag is out of range or a row is wide.

    Many tags in float32 are summed in float32, and again in float64 where it has not the range for a row.

    Args:
        scores: emissions [batch, n, c], transitions [c, c], start [c] and end [c].
        given: the same scores as arrays, and the lengths.
        tags: tags [batch, n].

    Returns:
        Log probabilities, differentiable by the scores; or None.
    """
    _, n, c = given.emissions.shape
    if c >= MANY_TAGS and n <= POSITIONS and all(each.dtype == np.float32 for each in given[:4]):
        log_prob = _log_likelihood(scores, given, tags)
        if log_prob is not None:
            return log_prob
    return _log_likelihood(scores, given.double(), tags)


def _log_likelihood(scores: Scores, arrays: ChainArrays, tags: Tensor) -> Tensor | None:
    """Do `log_likelihood` with sums in the dtype of the arrays."""
    shape, precision, golds = arrays.emissions.shape, arrays.emissions.dtype.type, as_array(tags)
    run = buffers.empty(shape, precision), buffers.empty(shape, precision), np.empty(shape[0])
    log_probs = np.empty(shape[0])
    by_part = over_rows(forward_rows, shape[0], arrays.work, arrays[:4], golds, arrays.lengths, run, log_probs)
    if not all(fine for fine, _ in by_part):
        return None

    def reference(emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor) -> Tensor:
        chain = Chain(emissions, transitions, start, end, torch.from_numpy(arrays.lengths))
        return structure.log_prob(chain, torch.from_numpy(golds))

    vjp = partial(_gradients, golds, arrays, by_part[0][1], run)
    log_prob: Tensor = differentiable(as_tensor(log_probs, scores[0].dtype), scores, vjp, reference)
    return log_prob


def _gradients(tags: Array, arrays: ChainArrays, arcs: Array, run: PlainRun, grad: Array) -> tuple[Array, ...]:
    """Return the gradients of Σ grad · log p(tags), by emissions, transitions, start and end."""
    d_emissions = buffers.empty(run[0].shape, run[0].dtype.type)
    given = tags, arrays.lengths, grad, arrays.end, arcs, run
    by_part = over_rows(backward_rows, len(grad), arrays.work, *given, d_emissions)
    d_others = by_part[0] if len(by_part) == 1 else map(sum, zip(*by_part, strict=True))
    return d_emissions, *d_others
