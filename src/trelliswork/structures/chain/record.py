"""Tag sequences: both solvers of the chain's queries, and the record that the distributions read."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from trelliswork.runtime.bridge import Array
from trelliswork.structures.chain import path_kernels, structure
from trelliswork.structures.chain.fast import (
    ChainArrays,
    Forward,
    run_backward,
    run_forward,
    run_path_scores,
    run_tangents,
)
from trelliswork.structures.chain.likelihood import log_likelihood
from trelliswork.structures.chain.structure import ArcsBy, Chain
from trelliswork.structures.kernel_solver import KernelSolver, best_by, draw_by, top_by, uniforms
from trelliswork.structures.record import Drawn, Scores, Structure
from trelliswork.structures.reference import Reference


class Kernels(KernelSolver):
    """By kernel."""

    refuses = True
    module = structure
    _parts: Chain

    @cached_property
    def arrays(self) -> ChainArrays:
        return ChainArrays.of(self._parts)

    @cached_property
    def run(self) -> Forward:
        return run_forward(self.arrays)

    def _gradients(self, grad: Array) -> tuple[Array, ...]:
        return run_backward(self.arrays, self.run, grad, "batch" if self._parts.transitions.dim() == 2 else "position")

    def log_prob(self, values: Tensor) -> Tensor | None:
        """score(tags) - log Z; None if a tag is out of range."""  # [S4.114]
        if self._is_first_answer():  # nothing has been summed yet: all in one kernel, if the batch is plain
            found = log_likelihood(self._parts.scores, values, lengths=self._parts.lengths)
            if found is not None:
                return found
        path_scores, bad = run_path_scores(self.arrays, values)
        if bad >= 0:
            return None

        def vjp(grad: Array) -> tuple[Array, ...]:
            by_part = self._gradients(-grad)
            path_kernels.add_path_gradients(values.numpy(), self.arrays.lengths, grad, *by_part)
            return by_part

        return self._log_probs(path_scores, values, vjp)

    def marginals(self, arcs_by: ArcsBy = "position") -> tuple[Tensor, Tensor]:
        """p(y_t | x) [batch, n, c] and arc posteriors, summed as `arcs_by` says."""  # [S4.106-107]
        unary, arcs, _, _ = run_backward(self.arrays, self.run, np.ones(len(self.arrays.lengths)), arcs_by)

        def vjp(*grads: Array) -> tuple[Array, ...]:
            return run_tangents(self.arrays, self.run, *grads)

        found: tuple[Tensor, Tensor] = self._posteriors((torch.from_numpy(unary), torch.from_numpy(arcs)), vjp, arcs_by)
        return found

    def best(self) -> Drawn:
        arrays = ChainArrays.of(self._parts, None)
        return best_by(path_kernels.best_paths, arrays.work, _no_tags(arrays), *arrays)

    def top_k(self, k: int) -> Drawn:
        return top_by(path_kernels.top_paths, self.arrays.work * k, _no_tags(self.arrays, k), *self.arrays)

    def sample(self, n_samples: int, generator: torch.Generator | None) -> Tensor:
        """By backward sampling."""
        arrays, run, tags = self.arrays, self.run, _no_tags(self.arrays, n_samples)
        with np.errstate(divide="ignore"):
            log_alphas = np.log(run.alphas)
        if len(run.wide_rows):
            log_alphas[run.wide_rows] = run.log_alphas
        work = tags.size * arrays.emissions.shape[2]
        given = log_alphas, arrays.transitions, arrays.end, arrays.lengths, uniforms(tags.shape, generator)
        return draw_by(path_kernels.sample_paths, work, tags, *given)


def _no_tags(arrays: ChainArrays, *lead: int) -> Array:
    return np.zeros((*lead, *arrays.emissions.shape[:2]), np.int64)


class ChainReference(Reference):
    """In plain torch."""

    def __init__(self, chain: Chain) -> None:
        super().__init__(structure, chain.double())

    def marginals(self, arcs_by: ArcsBy = "position") -> tuple[Tensor, Tensor]:
        return structure.marginals(self._parts[0], arcs_by)

    def best(self) -> Drawn:
        tags, scores = structure.viterbi(*self._parts)
        return tags, scores.detach() > -np.inf


def example(scores: Scores) -> dict[str, Any]:
    return {"emissions": scores(2, 3, 2), "transitions": scores(2, 2)}


STRUCTURE = Structure("chain", ChainReference, Kernels, example)
