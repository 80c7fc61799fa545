"""Segmentations: both solvers of their queries, and the record that the distributions read."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from trelliswork.runtime.bridge import Array
from trelliswork.structures.kernel_solver import KernelSolver, best_by, draw_by, top_by, uniforms
from trelliswork.structures.record import Drawn, Scores, Structure
from trelliswork.structures.reference import Reference
from trelliswork.structures.segments import fast, path_kernels, structure
from trelliswork.structures.segments.factored import Factored
from trelliswork.structures.segments.fast import Forward, LogForward, SegmentArrays
from trelliswork.structures.segments.likelihood import log_likelihood
from trelliswork.structures.segments.structure import Segments


class Kernels(KernelSolver):
    """By kernel. Values are starts [rows, n]: the label where a segment starts, -1 elsewhere."""

    module = structure
    _parts: Segments | Factored

    @cached_property
    def arrays(self) -> SegmentArrays:
        return SegmentArrays.of(self._parts)

    @cached_property
    def run(self) -> Forward | LogForward:
        return fast.run_forward(self.arrays)

    def _moved(self, scores: tuple[Tensor | None, ...]) -> tuple[Any, ...]:
        parts: Any = self._parts
        return (parts.with_scores(*scores).whole(),)

    def _gradients(self, grad: Array) -> tuple[Array, ...]:
        return fast.summed(fast.run_backward(self.arrays, self.run, grad))

    def log_prob(self, values: Tensor) -> Tensor:
        """G(s, x) - log Z; its gradient is observed less expected."""  # [S0, likelihood; S0.7]
        if isinstance(self._parts, Segments) and self._is_first_answer():  # all in one kernel, if the batch is plain
            found = log_likelihood(self._parts.scores, values, self._parts.lengths)
            if found is not None:
                return found

        def vjp(grad: Array) -> tuple[Array, ...]:
            by_part = fast.run_backward(self.arrays, self.run, -grad)
            path_kernels.add_path_gradients(values.numpy(), self.arrays.lengths, grad, *by_part)
            return fast.summed(by_part)

        return self._log_probs(fast.run_path_scores(self.arrays, values), values, vjp)

    def marginals(self) -> tuple[Tensor, Tensor]:
        """p(segment | x) [batch, n, k, c] and the expected number of each label pair [batch, c, c]."""  # [S0.6, 10]
        parts = self._parts
        if isinstance(parts, Factored):
            return Kernels(parts.double().whole()).marginals()
        segments, arcs, _, _ = fast.run_backward(self.arrays, self.run, np.ones(len(self.arrays.lengths)))
        assert not isinstance(segments, tuple)

        def vjp(*grads: Array) -> tuple[Array, ...]:
            return fast.run_tangents(parts.scores, parts.lengths, grads)

        found: tuple[Tensor, Tensor] = self._posteriors((torch.from_numpy(segments), torch.from_numpy(arcs)), vjp)
        return found

    def score(self, values: Tensor) -> Tensor:
        return self._parts.path_score(values)

    def best(self) -> Drawn:
        """Viterbi."""
        arrays = SegmentArrays.of(self._parts, None)
        return best_by(path_kernels.best_starts, arrays.work // 6, _no_starts(arrays), *arrays)

    def top_k(self, k: int) -> Drawn:
        return top_by(path_kernels.top_starts, self.arrays.work * k, _no_starts(self.arrays, k), *self.arrays)

    def sample(self, n_samples: int, generator: torch.Generator | None) -> Tensor:
        """By backward sampling, from a pass in log space."""
        arrays, starts = self.arrays, _no_starts(self.arrays, n_samples)
        run = self.run if isinstance(self.run, LogForward) else fast.run_log_forward(arrays)
        batch, n, k, c = arrays.shape
        return draw_by(
            path_kernels.sample_starts, starts.size * (c + k), starts,
            tuple(arrays), (run.alphas, run.gammas, run.steps), uniforms((n_samples, batch, 2 * n), generator),
        )  # fmt: skip


def _no_starts(arrays: SegmentArrays, *lead: int) -> Array:
    return np.full((*lead, *arrays.shape[:2]), -1)


class SegmentReference(Reference):
    """In plain torch."""

    def __init__(self, parts: Segments | Factored) -> None:
        super().__init__(structure, parts.double().whole())

    def best(self) -> Drawn:
        starts, scores = structure.viterbi(*self._parts)
        return starts, scores.detach() > -np.inf


def example(scores: Scores) -> dict[str, Any]:
    return {"segments": scores(2, 3, 2, 2), "transitions": scores(2, 2)}


STRUCTURE = Structure("segments", SegmentReference, Kernels, example)
