"""Alignments of known label strings: both solvers of their queries, and the record that the distributions read."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from trelliswork.runtime.bridge import Array, as_array
from trelliswork.structures.ctc import path_kernels, structure
from trelliswork.structures.ctc.fast import Forward, LabelArrays, add_occupancies, run_forward
from trelliswork.structures.ctc.structure import Labelling
from trelliswork.structures.kernel_solver import KernelSolver, best_by, draw_by, top_by, uniforms
from trelliswork.structures.record import Drawn, Scores, Structure
from trelliswork.structures.reference import Reference


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

    def best(self) -> Drawn:
        return best_by(path_kernels.best_paths, self.arrays.work // 10, self._no_paths(), *self.arrays)

    def top_k(self, k: int) -> Drawn:
        return top_by(path_kernels.top_paths, self.arrays.work * k, self._no_paths(k), *self.arrays)

    def sample(self, n_samples: int, generator: torch.Generator | None) -> Tensor:
        arrays, run, paths = self.arrays, self.run, self._no_paths(n_samples)
        _, batch, n_frames = paths.shape
        return draw_by(
            path_kernels.sample_paths, paths.size * 4, paths,
            arrays.bars, tuple(run), arrays.strings, arrays.blank,
            uniforms((n_samples, batch, n_frames + 1, 2), generator),
        )  # fmt: skip

    def _no_paths(self, *lead: int) -> Array:
        return np.zeros((*lead, *self._parts.scores.shape[:2]), np.int64)


def example(scores: Scores) -> dict[str, Any]:
    return {"log_probs": scores(2, 4, 3), "targets": [[1, 2], [1]]}


STRUCTURE = Structure("ctc", partial(Reference, structure), Kernels, example)
