"""Base of the solvers by kernel: gradients that are analytic once and exact to every order, and values in arrays.

Values and first derivatives come from kernels on float64 arrays. When a gradient is itself differentiated, the
reference of `structure.py` takes over.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from trelliswork.runtime.arrays import Array
from trelliswork.runtime.autograd import differentiable
from trelliswork.runtime.bridge import as_tensor
from trelliswork.runtime.compilation import Kernel
from trelliswork.runtime.threads import over_rows
from trelliswork.structures.record import Decoded, Solver

Vjp = Callable[..., tuple[Array, ...]]


class KernelSolver(Solver):
    """By kernel; what the queries of one batch share is computed once, in `run`."""

    module: ModuleType  # the reference: log_partition, marginals, log_prob and path_score
    run: Any  # what one pass over the parts leaves behind, its `log_z` [rows] included

    def __init__(self, *parts: Any) -> None:
        self._parts, self._others = parts[0], parts[1:]

    @property
    def _scores(self) -> tuple[Tensor | None, ...]:
        """The tensors to differentiate by."""
        scores = self._parts.scores
        return scores if isinstance(scores, tuple) else (scores,)

    def _moved(self, scores: tuple[Tensor | None, ...]) -> tuple[Any, ...]:
        """The same parts with other scores, for the reference."""
        return self._parts.with_scores(*scores), *self._others

    @abstractmethod
    def _gradients(self, grad: Array) -> tuple[Array, ...]:
        """Of Σ_b grad[b] log Z[b] by each of the scores."""

    def log_partition(self) -> Tensor:
        log_z = torch.from_numpy(self.run.log_z.copy())  # `run` is used again: its numbers are not handed out
        log_partition: Tensor = differentiable(
            log_z, self._scores, self._gradients, lambda *scores: self.module.log_partition(*self._moved(scores))
        )
        return log_partition

    def marginals(self) -> Any:
        (expected,) = self._gradients(np.ones(len(self.run.log_z)))
        return self._posteriors(torch.from_numpy(expected))

    def _posteriors(self, expected: Tensor | tuple[Tensor, ...], vjp: Vjp | None = None, *options: object) -> Any:
        """Return the results of the kernels for `marginals(..., *options)`, differentiable."""
        return differentiable(
            expected, self._scores, vjp, lambda *scores: self.module.marginals(*self._moved(scores), *options)
        )

    def score(self, values: Tensor) -> Tensor:
        score: Tensor = self.module.path_score(self._parts, values)
        return score

    def _log_probs(self, path_scores: Array, values: Tensor, vjp: Vjp) -> Tensor:
        """score - log Z in one node, in the dtype of the scores and at most 0: rounding must not pass certainty."""
        scores, possible = self._scores, path_scores > -np.inf
        log_ratios = np.subtract(path_scores, self.run.log_z, out=path_scores, where=possible)
        dtype = next(each for each in scores if each is not None).dtype
        log_probs: Tensor = differentiable(
            as_tensor(np.minimum(log_ratios, 0.0), dtype),
            scores,
            vjp,
            lambda *scores: self.module.log_prob(*self._moved(scores), values),
        )
        return log_probs


def best_by(kernel: Kernel, work: int, values: Array, *arrays: object) -> Decoded:
    """Find the best value of each row by kernel(first, last, *arrays, values, possible).

    Args:
        kernel: fills in the values [rows, *event] and whether each row has any.
        work: about how many operations all rows take; decides how many threads share them.
        values: an array [rows, *event] to fill.
        arrays: what the kernel reads.

    Returns:
        The values and which rows have one.
    """
    possible = np.empty(len(values), np.bool_)
    over_rows(kernel, len(values), work, *arrays, values, possible)
    return torch.from_numpy(values), torch.from_numpy(possible)


def top_by(kernel: Kernel, work: int, values: Array, *arrays: object) -> Decoded:
    """Find the k best values of each row by kernel(first, last, *arrays, values, scores).

    Args:
        kernel: fills in the values and their scores [k, rows].
        work: about how many operations all rows take; decides how many threads share them.
        values: an array [k, rows, *event] to fill.
        arrays: what the kernel reads.

    Returns:
        The values and their scores, -inf where a row has fewer.
    """
    scores = np.empty(values.shape[:2])
    over_rows(kernel, values.shape[1], work, *arrays, values, scores)
    return torch.from_numpy(values), torch.from_numpy(scores)


def draw_by(kernel: Kernel, work: int, values: Array, *arrays: object) -> Tensor:
    """Draw samples of each row by kernel(first, last, *arrays, values).

    Args:
        kernel: fills in the values.
        work: about how many operations all rows take; decides how many threads share them.
        values: an array [samples, rows, *event] to fill.
        arrays: what the kernel reads.

    Returns:
        The values.
    """
    over_rows(kernel, values.shape[1], work, *arrays, values)
    return torch.from_numpy(values)


def uniforms(shape: tuple[int, ...], generator: torch.Generator | None) -> Array:
    return torch.rand(shape, generator=generator, dtype=torch.float64).numpy()


def seeds(n_samples: int, rows: int, generator: torch.Generator | None) -> Array:
    """Draw a seed for each sample of each row, for kernels that make their own random numbers.

    Args:
        n_samples: number of samples.
        rows: number of rows.
        generator: source of random numbers; None for torch's own.

    Returns:
        Whole numbers [n_samples, rows].
    """
    return torch.randint(2**62, (n_samples, rows), generator=generator).numpy()
