"""The k best: an element is the k highest scores, best first."""

from __future__ import annotations

import torch
from torch import Tensor

from trelliswork.semirings.base import Semiring

INF = float("inf")


class KBest(Semiring):
    """Axis 0 holds k scores in descending order, filled up with -inf where there are fewer.

    ⊕ merges lists and keeps the k highest, ⊗ adds every pair and keeps the k highest. Scores that stand
    for different structures are kept even when equal; none is counted twice. The gradient of score r
    marks the parts of the r-th best structure.

    >>> semiring = KBest(2)
    >>> semiring.sum(semiring.lift(torch.tensor([1.0, 3.0, 2.0])), dim=-1)
    tensor([3., 2.])
    """

    def __init__(self, k: int):
        self.k = k

    def lift(self, log_scores: Tensor) -> Tensor:
        rest = log_scores.new_full((self.k - 1, *log_scores.shape), -INF)
        return torch.cat([log_scores.unsqueeze(0), rest])

    def zero(self, shape: tuple[int, ...], like: Tensor) -> Tensor:
        return like.new_full((self.k, *shape), -INF)

    def one(self, shape: tuple[int, ...], like: Tensor) -> Tensor:
        return self.lift(like.new_zeros(shape))

    def sum(self, elements: Tensor, dim: int) -> Tensor:
        together = elements.movedim(dim, 0).flatten(0, 1)
        return together.topk(self.k, dim=0).values

    def times(self, left: Tensor, right: Tensor) -> Tensor:
        pairs = (left.unsqueeze(0) + right.unsqueeze(1)).flatten(0, 1)
        return pairs.topk(self.k, dim=0).values

    def star(self, elements: Tensor) -> Tensor:
        """Σ_{m<k} a^m: while no loop gains, longer ones cannot enter the k best; a gaining loop is +inf."""
        closure = power = self.one(tuple(elements.shape[1:]), elements)
        for _ in range(self.k - 1):
            power = self.times(power, elements)
            closure = self.plus(closure, power)
        return torch.where(elements[:1] <= 0, closure, torch.full_like(closure, INF))
