"""Alignments of known label strings: the passes of the kernels over float64 arrays, both solvers, and the record."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from trelliswork.runtime import buffers
from trelliswork.runtime.arrays import Array
from trelliswork.runtime.autograd import differentiable
from trelliswork.runtime.bridge import as_array, as_tensor
from trelliswork.runtime.compilation import Kernel
from trelliswork.runtime.threads import over_rows
from trelliswork.structures.ctc import kernels, path_kernels, structure
from trelliswork.structures.ctc.structure import Labelling
from trelliswork.structures.kernel_solver import KernelSolver, best_by, draw_by, seeds, top_by
from trelliswork.structures.record import Decoded, Example, Scores, Structure
from trelliswork.structures.reference import Reference

MOST = 700.0  # e^700 is still a float64
CELLS = 1024  # states that are done together: enough for long loops, few enough to stay in the cache


class LabelArrays(NamedTuple):
    """The scores that are read, [2, t, batch, u + 1] (of the blank, of labels), and the labels they belong to."""

    emissions: Array
    bars: Array
    targets: Array
    lengths: Array
    target_lengths: Array
    blank: int

    @staticmethod
    def of(scores: Array, targets: Array, lengths: Array, target_lengths: Array, blank: int) -> LabelArrays:
        """Build it from scores [batch, t, c] of any float dtype and memory layout.

        Args:
            scores: scores of the symbols of each frame [batch, t, c].
            targets: labels of each row [batch, u].
            lengths: number of frames of each row [batch].
            target_lengths: number of labels of each row [batch].
            blank: number of the blank.

        Returns:
            The scores of blanks and labels, in float64.
        """
        batch, n_frames, _ = scores.shape
        emissions = buffers.empty((2, n_frames, batch, targets.shape[1] + 1))
        bars = np.empty((batch, targets.shape[1] + 1))
        kernels.gather(scores, targets, lengths, target_lengths, blank, emissions, bars)
        return LabelArrays(emissions, bars, targets, lengths, target_lengths, blank)

    @property
    def strings(self) -> tuple[Array, Array, Array]:
        return self.targets, self.lengths, self.target_lengths

    @property
    def work(self) -> int:
        """Return the multiply-adds of one pass; a state costs five exponentials and logarithms."""
        return self.emissions.size * 30


class Forward(NamedTuple):
    """log p(ℓ | x) of each row, and what the way back needs: see `kernels.forward`."""

    shares: Array  # [2, t, batch, u + 1]
    ends: Array
    log_z: Array


def run_forward(arrays: LabelArrays) -> Forward:
    _, n_frames, batch, size = arrays.emissions.shape
    run = Forward(buffers.empty((2, n_frames, batch, size)), np.empty(batch), np.empty(batch))
    given = arrays.emissions, arrays.bars, arrays.lengths, arrays.target_lengths
    over_rows(partial(_together, kernels.forward, size), batch, arrays.work, *given, *run)
    return run


def add_occupancies(arrays: LabelArrays, run: Forward, grad: Array, occupancies: Array) -> None:
    """Add occupancies[b, t, c] += grad[b] p(π_t = c | ℓ, x).

    Args:
        arrays: the scores that are read.
        run: the pass forwards.
        grad: weight of each row [batch].
        occupancies: [batch, t, c], which is added to.
    """
    given = arrays.bars, tuple(run), arrays.strings, arrays.blank, grad, occupancies
    over_rows(partial(_together, kernels.backward, arrays.bars.shape[1]), len(grad), arrays.work // 6, *given)


def _together(kernel: Kernel, size: int, first: int, last: int, *arguments: object) -> None:
    """Run a kernel over rows first..last, as many at once as have `CELLS` states."""
    at_once = max(1, CELLS // size)
    for b in range(first, last, at_once):
        kernel(b, min(b + at_once, last), *arguments)


def loss(log_probs: Tensor, arrays: LabelArrays, parts_of: Callable[[Tensor], Labelling]) -> Tensor:
    """Return -log p(ℓ | x) [batch] in one node, with the gradient y - occupancy.

    That is the derivative for scores that are log probabilities and stay so: through a log-softmax it is the exact one,
    and it is what torch's own loss gives. Rows without an alignment have the loss +inf and the gradient 0.

    Args:
        log_probs: log probabilities of the symbols of each frame [batch, t, c].
        arrays: the scores that are read of them.
        parts_of: a function from log probabilities to the parts of the reference, for second derivatives.

    Returns:
        The loss of each row.
    """  # [S4.649-650; S4, CTC gradient]
    run = run_forward(arrays)
    scores = as_array(log_probs)

    def vjp(grad: Array) -> tuple[Array]:
        grad = np.where(run.log_z > -np.inf, grad, 0.0)
        gradient = np.empty(scores.shape, scores.dtype)
        kernels.fill_exponentials(scores, arrays.lengths, grad, gradient)
        add_occupancies(arrays, run, -grad, gradient.transpose(1, 0, 2))
        return (gradient,)

    return differentiable(
        as_tensor(-run.log_z, log_probs.dtype), (log_probs,), vjp, lambda scores: reference_loss(parts_of(scores))
    )


def reference_loss(parts: Labelling) -> Tensor:
    """Return the same loss in plain torch: its value is -log p, its derivative y - occupancy."""
    log_prob = structure.log_partition(parts)
    weights = parts.scores.clamp(max=MOST).exp().sum((1, 2))
    feasible = log_prob > -torch.inf
    return torch.where(feasible, weights - weights.detach() - log_prob, torch.inf)


class Kernels(KernelSolver):
    """By kernel. Values are paths [rows, t], 0 at padding."""

    module = structure
    _parts: Labelling

    @cached_property
    def arrays(self) -> LabelArrays:
        parts = self._parts
        lengths, target_lengths = parts.lengths.numpy(), parts.target_lengths.numpy()
        return LabelArrays.of(as_array(parts.scores), as_array(parts.targets), lengths, target_lengths, parts.blank)

    @cached_property
    def run(self) -> Forward:
        return run_forward(self.arrays)

    def _gradients(self, grad: Array) -> tuple[Array]:
        occupancies = np.zeros(self._parts.scores.shape)
        add_occupancies(self.arrays, self.run, grad, occupancies)
        return (occupancies,)

    def best(self) -> Decoded:
        return best_by(path_kernels.best_paths, self.arrays.work // 10, self._no_paths(), *self.arrays)

    def top_k(self, k: int) -> Decoded:
        return top_by(path_kernels.top_paths, self.arrays.work * k, self._no_paths(k), *self.arrays)

    def sample(self, n_samples: int, generator: torch.Generator | None) -> Tensor:
        arrays, run, paths = self.arrays, self.run, self._no_paths(n_samples)
        chosen = seeds(n_samples, len(run.log_z), generator)
        given = arrays.bars, tuple(run), arrays.strings, arrays.blank, chosen
        return draw_by(path_kernels.sample_paths, paths.size * 4, paths, *given)

    def _no_paths(self, *lead: int) -> Array:
        return np.zeros((*lead, *self._parts.scores.shape[:2]), np.int64)


def example(scores: Scores) -> Example:
    return {"log_probs": scores(2, 4, 3), "targets": [[1, 2], [1]]}


STRUCTURE = Structure("ctc", partial(Reference, structure), Kernels, example)
