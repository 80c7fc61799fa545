"""What a structure is to the distributions above it: two solvers of the same queries, one by kernel, one in torch."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal

import torch
from torch import Tensor

from trelliswork.semirings.log import log_ratio

Drawn = tuple[Tensor, Tensor]


class Solver:
    """The queries of one batch of parts. Values are [rows, *event] in their tensor form."""

    arrays: Any = None  # what kernels read; the reference has none
    refuses = False  # whether `log_prob` notices what is not a value and returns None; else it is checked before

    @abstractmethod
    def log_partition(self) -> Tensor:
        """log Z [rows] in the precision of the computation."""

    @abstractmethod
    def marginals(self) -> Any:
        """Posteriors of the parts: a tensor, or one for each kind of part."""

    @abstractmethod
    def score(self, values: Tensor) -> Tensor:
        """The score of one value for each row."""

    def log_prob(self, values: Tensor) -> Tensor | None:
        """score - log Z, never above 0; None where a value is not one, which its reader then explains."""
        return log_ratio(self.score(values), self.log_partition())

    @abstractmethod
    def best(self) -> Drawn:
        """The best values [rows, *event], and whether each row has any."""

    @abstractmethod
    def top_k(self, k: int) -> Drawn:
        """The k best values [k, rows, *event] and their scores [k, rows], -inf where a row has fewer."""

    @abstractmethod
    def sample(self, n_samples: int, generator: torch.Generator | None) -> Tensor:
        """Exact samples [samples, rows, *event]."""


class Reference(Solver):
    """The functions of a structure's `structure.py`, in plain torch: log_partition, marginals, best, top_k, sample."""

    def __init__(self, module: ModuleType, *parts: Any) -> None:
        self._module, self._parts = module, parts

    def log_partition(self) -> Tensor:
        log_z: Tensor = self._module.log_partition(*self._parts)
        return log_z

    def marginals(self) -> Any:
        return self._module.marginals(*self._parts)

    def score(self, values: Tensor) -> Tensor:
        score: Tensor = self._module.path_score(self._parts[0], values)
        return score

    def best(self) -> Drawn:
        found: Drawn = self._module.best(*self._parts)
        return found

    def top_k(self, k: int) -> Drawn:
        found: Drawn = self._module.top_k(*self._parts, k)
        return found

    def sample(self, n_samples: int, generator: torch.Generator | None) -> Tensor:
        drawn: Tensor = self._module.sample(*self._parts, n_samples, generator)
        return drawn


@dataclass(frozen=True)
class Structure:
    """A family of y. Both solvers are made from the same parts."""

    name: str
    reference: Callable[..., Solver]
    kernels: Callable[..., Solver]

    def solver(self, backend: Literal["kernel", "torch"], *parts: Any) -> Solver:
        return (self.kernels if backend == "kernel" else self.reference)(*parts)
