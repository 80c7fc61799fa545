"""First-order expectations: entropy and risk from one pass over the structure."""

from __future__ import annotations

import torch
from torch import Tensor

from trelliswork.semirings.base import Semiring
from trelliswork.semirings.log import Log

INF = float("inf")
LOG = Log()


class Expectation(Semiring):
    """Axis 0 holds (log p, r): a log weight and the mean of an additive value under that weight.

    ⊕ pools the weights and averages the values, ⊗ adds both. The total's r is E[value]:
    with value = score, entropy = log Z - r; with value = cost, r is the risk.
    """

    def lift(self, log_scores: Tensor, values: Tensor | None = None) -> Tensor:
        """Pair log scores with their values (0 if not given); a value at -inf does not count."""
        mean = torch.zeros_like(log_scores) if values is None else values
        return torch.stack([log_scores, _without_empty(log_scores, mean)])

    def zero(self, shape: tuple[int, ...], like: Tensor) -> Tensor:
        return self.lift(like.new_full(shape, -INF))

    def one(self, shape: tuple[int, ...], like: Tensor) -> Tensor:
        return self.lift(like.new_zeros(shape))

    def sum(self, elements: Tensor, dim: int) -> Tensor:
        log_weights, means = elements[0], elements[1]
        log_total = LOG.sum(log_weights, dim)
        reference = torch.where(log_total > -INF, log_total, torch.zeros_like(log_total)).unsqueeze(dim)
        return torch.stack([log_total, ((log_weights - reference).exp() * means).sum(dim)])

    def times(self, left: Tensor, right: Tensor) -> Tensor:
        log_weights = left[0] + right[0]
        return torch.stack([log_weights, _without_empty(log_weights, left[1] + right[1])])

    def star(self, elements: Tensor) -> Tensor:
        """(p, r)* = (p*, p* r p*) on sums; as a mean that is p* p r, the expected number of rounds times r."""
        log_star = LOG.star(elements[0])
        rounds = (log_star + elements[0]).exp()
        mean = torch.where(elements[1] == 0, torch.zeros_like(rounds), rounds * elements[1])
        return torch.stack([log_star, mean])


def _without_empty(log_weights: Tensor, means: Tensor) -> Tensor:
    return torch.where(log_weights > -INF, means, torch.zeros_like(means))
