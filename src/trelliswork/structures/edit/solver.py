"""Edit scripts: both solvers of their queries, and the record that the distributions read."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from trelliswork.runtime import buffers
from trelliswork.runtime.arrays import Array
from trelliswork.runtime.bridge import as_array
from trelliswork.runtime.threads import over_rows
from trelliswork.structures.edit import kernels, structure
from trelliswork.structures.edit.structure import NO_STEP, EditLattice
from trelliswork.structures.kernel_solver import KernelSolver, best_by, draw_by, seeds, top_by
from trelliswork.structures.record import Decoded, Scores, Structure
from trelliswork.structures.reference import Reference


class EditArrays(NamedTuple):
    scores: Array
    lengths: Array
    target_lengths: Array


class Forward(NamedTuple):
    """Shares of the steps into each cell, and log Z."""

    shares: Array
    log_z: Array


class Kernels(KernelSolver):
    """By kernel. Values are scripts [rows, n+m], NO_STEP behind the last step."""

    module = structure
    _parts: EditLattice

    @cached_property
    def arrays(self) -> EditArrays:
        parts = self._parts
        return EditArrays(as_array(parts.scores, np.float64), parts.lengths.numpy(), parts.target_lengths.numpy())

    @cached_property
    def run(self) -> Forward:
        scores = self.arrays.scores
        run = Forward(buffers.empty(scores.shape), np.empty(len(scores)))
        over_rows(kernels.forward, len(scores), scores.size * 20, *self.arrays, *run)
        return run

    def _gradients(self, grad: Array) -> tuple[Array]:
        (_, *lengths), shares = self.arrays, self.run.shares
        found = np.zeros(shares.shape)
        over_rows(kernels.backward, len(grad), shares.size * 2, *self.run, *lengths, grad, found)
        return (found,)

    def best(self) -> Decoded:
        return best_by(kernels.best_scripts, self.arrays.scores.size * 3, self._no_steps(), *self.arrays)

    def top_k(self, k: int) -> Decoded:
        return top_by(kernels.top_scripts, self.arrays.scores.size * 5 * k, self._no_steps(k), *self.arrays)

    def sample(self, n_samples: int, generator: torch.Generator | None) -> Tensor:
        (_, *lengths), steps = self.arrays, self._no_steps(n_samples)
        given = self.run.shares, *lengths, seeds(n_samples, steps.shape[1], generator)
        return draw_by(kernels.sample_scripts, steps.size * 6, steps, *given)

    def _no_steps(self, *lead: int) -> Array:
        parts = self._parts
        return np.full((*lead, len(parts.lengths), parts.n + parts.m), NO_STEP)


def example(scores: Scores) -> dict[str, Any]:
    return {"scores": scores(2, 3, 3, 3)}


STRUCTURE = Structure("edit", partial(Reference, structure), Kernels, example)
