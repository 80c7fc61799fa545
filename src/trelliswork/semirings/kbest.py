"""The k-best semiring: an element is the k highest scores, best first.

Goodman (1999), Semiring parsing; Huang and Chiang (2005), Better k-best parsing.
"""

from __future__ import annotations

import torch
from torch import Tensor

from trelliswork.runtime.arrays import INF
from trelliswork.semirings.base import Semiring


class KBest(Semiring):
    """Axis 0 holds k scores in descending order, padded with -inf where there are fewer.

    ⊕ merges lists and keeps the k highest scores, ⊗ adds every pair and keeps the k highest sums. Equal scores of
    different structures are all kept, and no structure is counted twice. The gradient of the r-th score is the
    indicator of the parts of the r-th best structure.

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
        candidates = elements.movedim(dim, 0).flatten(0, 1)
        return candidates.topk(self.k, dim=0).values

    def times(self, left: Tensor, right: Tensor) -> Tensor:
        pairs = (left.unsqueeze(0) + right.unsqueeze(1)).flatten(0, 1)
        return pairs.topk(self.k, dim=0).values

    def star(self, elements: Tensor) -> Tensor:
        """Return ⊕_{m<k} a^m, or +inf where the loop has a positive score."""
        # If no loop has a positive score, m rounds never beat fewer than m: the k best need at most k - 1 rounds.
        closure = power = self.one(tuple(elements.shape[1:]), elements)
        for _ in range(self.k - 1):
            power = self.times(power, elements)
            closure = self.plus(closure, power)
        return torch.where(elements[:1] <= 0, closure, torch.full_like(closure, INF))
