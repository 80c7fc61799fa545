"""The two semirings of best paths: max-plus for scores and min-plus for costs.

Goodman (1999), Semiring parsing; Mohri (2002), Semiring frameworks and algorithms for shortest-distance problems.
"""

from __future__ import annotations

import torch
from torch import Tensor

from trelliswork.runtime.arrays import INF
from trelliswork.semirings.base import OverScores, Semiring


class Max(OverScores):
    """(max, +, -inf, 0) on scores: the total is the best score, its gradient the indicator of one best path.

    >>> Max().sum(torch.tensor([1.0, 3.0, 2.0]), dim=-1)
    tensor(3.)
    """

    # [S2, Viterbi semiring]

    def sum(self, elements: Tensor, dim: int) -> Tensor:
        # Unlike `amax`, `max` sends the gradient of a tie to one entry only, so that it always marks a single path.
        return elements.max(dim).values

    def star(self, elements: Tensor) -> Tensor:
        """Return 0 (the empty loop), or +inf where the loop has a positive score and there is no best path."""
        return torch.where(elements <= 0, torch.zeros_like(elements), torch.full_like(elements, INF))


class Tropical(Semiring):
    """(min, +, +inf, 0) on costs; the cost of a log score is its negative."""

    # [S2, tropical semiring]

    def lift(self, log_scores: Tensor) -> Tensor:
        return -log_scores

    def zero(self, shape: tuple[int, ...], like: Tensor) -> Tensor:
        return like.new_full(shape, INF)

    def one(self, shape: tuple[int, ...], like: Tensor) -> Tensor:
        return like.new_zeros(shape)

    def sum(self, elements: Tensor, dim: int) -> Tensor:
        return elements.min(dim).values

    def times(self, left: Tensor, right: Tensor) -> Tensor:
        return left + right

    def star(self, elements: Tensor) -> Tensor:
        """Return 0 (the empty loop), or -inf where the loop has a negative cost and there is no cheapest path."""
        return torch.where(elements >= 0, torch.zeros_like(elements), torch.full_like(elements, -INF))
