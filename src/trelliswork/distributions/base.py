"""What every structured distribution answers, under the same names.

A subclass brings a structure and its queries; what follows from them is written here once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Literal, Self

import torch
from torch import Tensor
from torch.distributions import Distribution

from trelliswork.errors import ScoreError
from trelliswork.runtime import bridge
from trelliswork.semirings.log import log_ratio

Backend = Literal["auto", "kernel", "torch"]
INF = float("inf")
FEW = 64


class StructuredDistribution(Distribution):
    """p(y | x) = exp(score(x, y)) / Z(x) over the structures y of one input, batched."""

    arg_constraints: dict[str, Any] = {}  # noqa: RUF012 - torch's own convention; scores are checked with sentences

    @property
    @abstractmethod
    def _log_z(self) -> Tensor:
        """log Z of each row, flat, in the precision of the computation: differences are rounded once, at the end."""

    @abstractmethod
    def _batched(self, result: Tensor) -> Tensor:
        """A result [rows, ...] in the caller's batch shape and dtype."""

    @property
    def log_partition(self) -> Tensor:
        """log Z, the log of the summed exp scores of all structures. -inf if there is none."""
        return self._batched(self._log_z)

    @abstractmethod
    def score(self, value: Any) -> Tensor:
        """The unnormalised log score of a structure."""

    @property
    @abstractmethod
    def marginals(self) -> Tensor:
        """The posterior probability of each part."""

    @property
    @abstractmethod
    def argmax(self) -> Any:
        """The structure with the highest score."""

    @abstractmethod
    def top_k(self, k: int) -> tuple[Any, Tensor]:
        """The k best structures, best first, and their scores; exact, without duplicates."""

    @property
    @abstractmethod
    def count(self) -> Tensor:
        """How many structures have a score above -inf."""

    def _n_best(self, k: int) -> int:
        """k, or how many structures the largest row has if they are fewer. Only where k is large are they counted."""
        if k <= FEW:
            return k
        most = float(self.count.detach().max()) if self.batch_shape.numel() else 1.0
        return min(k, max(1, int(most * (1 + 1e-9)))) if most < k else k

    @abstractmethod
    def constrain(self, partial: Any = None) -> Self:
        """The same distribution restricted to the structures that agree with partial knowledge."""

    @abstractmethod
    def expected(self, costs: Tensor) -> Tensor:
        """E[Σ cost of the parts of y]: the risk when costs are losses."""

    @property
    def mode(self) -> Any:
        return self.argmax

    @abstractmethod
    def log_prob(self, value: Any) -> Tensor:
        """log p(value | x) = score(value) - log Z; -inf for a forbidden structure, never above 0."""

    def log_prob_of_set(self, partial: Any) -> Tensor:
        """log p(y agrees with `partial` | x) = log Z(constrained) - log Z [S4.131]: the loss for partial labels."""
        return self._batched(log_ratio(self.constrain(partial)._log_z, self._log_z))


def weighted_sum(weights: Tensor, costs: Tensor, n_batch_axes: int) -> Tensor:
    """Σ weights * costs over all but the batch axes, where a weight of 0 silences any cost, infinite ones too."""
    heard = torch.where(weights > 0, costs, 0.0)
    return (weights * heard).flatten(n_batch_axes).sum(-1)


def require_finite_totals(log_z: Tensor, count: Callable[[], Tensor] | None = None) -> None:
    """What is drawn or searched by shares of the total needs one that is a number.

    With `count`, so does a row that has structures, but a total of -inf: overflow can look like this.
    """
    totals = log_z.detach().reshape(-1)
    wrong = ~(totals < INF)
    if count is not None and bool((totals == -INF).any()):
        wrong |= (totals == -INF) & (count().reshape(-1) > 0)
    if bool(wrong.any()):
        row = int(wrong.nonzero()[0])
        raise ScoreError(
            f"the scores of row {row} must have a finite total; got {totals[row].item()}; scale them down so that "
            "their sums stay within ±1.8e308, and look for NaN and +inf among them"
        )


def padded(found: tuple[Any, Tensor], k: int) -> tuple[Any, Tensor]:
    """Values and scores of the best, filled up to k: the best again, with a score of -inf."""
    values, scores = found
    missing = k - len(scores)
    if missing <= 0:
        return found
    if isinstance(values, Tensor):
        values = torch.cat([values, values[:1].expand(missing, *values.shape[1:])])
    else:
        values = values + values[:1] * missing
    return values, torch.cat([scores, scores.new_full((missing, *scores.shape[1:]), -INF)])


def check_tensor(name: str, value: Any) -> None:
    """A tensor, not a list or an array that only looks like one."""
    if not isinstance(value, Tensor):
        raise ScoreError(f"{name} must be a tensor; got {type(value).__name__}; call torch.tensor() on it")


def resolve_backend(backend: Backend, device: torch.device) -> Literal["kernel", "torch"]:
    if backend not in ("auto", "kernel", "torch"):
        raise ScoreError(f'backend must be "auto", "kernel" or "torch"; got {backend!r}')
    if backend == "kernel" and device.type != "cpu":
        raise ScoreError(f'backend "kernel" runs on the CPU; the scores are on {device}; use "auto" or "torch"')
    if backend == "auto" and (device.type != "cpu" or bridge.out_of_reach()):
        return "torch"
    return "torch" if backend == "torch" else "kernel"
