"""First-order expectations: entropy and risk from one pass over the structure.

Eisner (2002), Parameter estimation for probabilistic finite-state transducers; Li and Eisner (2009), First- and
second-order expectation semirings with applications to minimum-risk training on translation forests.
"""

from __future__ import annotations

import torch
from torch import Tensor

from trelliswork.runtime.arrays import INF
from trelliswork.semirings.base import Semiring
from trelliswork.semirings.log import Log

LOG = Log()


class Expectation(Semiring):
    """Axis 0 holds (log p, r): a log weight and the mean of an additive value under that weight.

    ⊕ adds the weights and averages the values, ⊗ adds both log weights and values. The r of the total is E[value]:
    with value = score, entropy = log Z - r; with value = cost, r is the risk.

    >>> semiring = Expectation()
    >>> elements = semiring.lift(torch.tensor([0.0, 0.0]), torch.tensor([1.0, 3.0]))
    >>> semiring.sum(elements, dim=-1)  # log 2, and the mean of 1 and 3
    tensor([0.6931, 2.0000])
    """

    def lift(self, log_scores: Tensor, values: Tensor | None = None) -> Tensor:
        """Pair log scores with their values (default 0); the value of a score of -inf is ignored."""
        mean = torch.zeros_like(log_scores) if values is None else values
        return torch.stack([log_scores, _without_empty(log_scores, mean)])

    def zero(self, shape: tuple[int, ...], like: Tensor) -> Tensor:
        return self.lift(like.new_full(shape, -INF))

    def one(self, shape: tuple[int, ...], like: Tensor) -> Tensor:
        return self.lift(like.new_zeros(shape))

    def sum(self, elements: Tensor, dim: int) -> Tensor:
        log_weights, means = elements[0], elements[1]
        log_total = LOG.sum(log_weights, dim)
        # Where nothing has any weight, log_total is -inf and -inf - -inf would be NaN: subtract 0 instead.
        reference = torch.where(log_total > -INF, log_total, torch.zeros_like(log_total)).unsqueeze(dim)
        return torch.stack([log_total, ((log_weights - reference).exp() * means).sum(dim)])

    def times(self, left: Tensor, right: Tensor) -> Tensor:
        log_weights = left[0] + right[0]
        return torch.stack([log_weights, _without_empty(log_weights, left[1] + right[1])])

    def star(self, elements: Tensor) -> Tensor:
        """Return (p, r)* = (p*, p* p r): the mean value is the expected number of rounds of the loop, p* p, times r."""
        log_star = LOG.star(elements[0])
        rounds = (log_star + elements[0]).exp()
        # A diverging loop has infinitely many rounds; rounds of value 0 still add up to 0, not NaN.
        mean = torch.where(elements[1] == 0, torch.zeros_like(rounds), rounds * elements[1])
        return torch.stack([log_star, mean])


def _without_empty(log_weights: Tensor, means: Tensor) -> Tensor:
    return torch.where(log_weights > -INF, means, torch.zeros_like(means))
