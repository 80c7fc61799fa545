"""Records of structures, for the distributions above them: two solvers of the same queries, by kernel and in torch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from trelliswork.semirings.log import log_ratio

Decoded = tuple[Tensor, Tensor]
"""Values, and whether each row has one (`best`) or what each scores (`top_k`)."""
Example = dict[str, Any]
"""The arguments of a small distribution, by name."""
Scores = Callable[..., Tensor]
"""Makes a tensor of scores of a shape, `torch.randn` for one."""


class Solver(ABC):
    """The queries of one batch of parts. Values are [rows, *event] in their tensor form.

    A query takes the same path whatever was asked before; what several queries need is computed once and kept.
    """

    arrays: Any = None  # what kernels read; the reference has none
    validates_values = False  # whether `log_prob` returns None for what is not a value; else it is checked before
    finds_fewer = False  # whether `top_k` ends where there are no more values, so that a large k costs nothing

    @abstractmethod
    def log_partition(self) -> Tensor:
        """Return log Z [rows] in the precision of the computation."""

    @abstractmethod
    def marginals(self) -> Any:
        """Return posteriors of the parts: a tensor, or one for each kind of part."""

    @abstractmethod
    def score(self, values: Tensor) -> Tensor:
        """Return the score of one value for each row."""

    def log_prob(self, values: Tensor) -> Tensor | None:
        """Return score - log Z, never above 0; None where a value is not one, which its reader then explains."""
        return log_ratio(self.score(values), self.log_partition())

    @abstractmethod
    def best(self) -> Decoded:
        """Return the best values [rows, *event], and whether each row has any."""

    @abstractmethod
    def top_k(self, k: int) -> Decoded:
        """Return the k best values [k, rows, *event] and their scores [k, rows], -inf where a row has fewer; fewer
        than k if `finds_fewer` and no row has more."""

    @abstractmethod
    def sample(self, n_samples: int, generator: torch.Generator | None) -> Tensor:
        """Return exact samples [samples, rows, *event]."""


class CountingSolver(Solver):
    """The reference of a structure, which can also count."""

    @abstractmethod
    def count(self) -> Tensor:
        """Return the number of values with a score above -inf [rows], in float64."""


@dataclass(frozen=True)
class Structure:
    """A family of y. Both solvers are made from the same parts.

    `example(scores)` gives the arguments of a small distribution of the family, by name: every tensor of scores comes
    from `scores(*shape)`, so that a caller chooses the numbers. Tests, `warmup` and benchmarks ask for it.
    """

    name: str
    reference: Callable[..., CountingSolver]
    kernels: Callable[..., Solver]
    example: Callable[[Scores], Example]

    scores_by_kernel: bool = False
    """True if `score` is a sum of its own, which kernels compute, and not a few parts that are added up."""

    def solver(self, backend: Literal["kernel", "torch"], *parts: object) -> Solver:
        return (self.kernels if backend == "kernel" else self.reference)(*parts)
