"""Semirings of plain numbers: probabilities, counts and truth values.

Goodman (1999), Semiring parsing.
"""

from __future__ import annotations

import torch
from torch import Tensor

from trelliswork.runtime.arrays import INF
from trelliswork.semirings.base import Semiring


class Real(Semiring):
    """(+, ×, 0, 1): the total is Z itself. For short inputs and closures; Z of long inputs overflows: use `Log`."""

    # [S2, inside semiring]

    def lift(self, log_scores: Tensor) -> Tensor:
        return log_scores.exp()

    def zero(self, shape: tuple[int, ...], like: Tensor) -> Tensor:
        return like.new_zeros(shape)

    def one(self, shape: tuple[int, ...], like: Tensor) -> Tensor:
        return like.new_ones(shape)

    def sum(self, elements: Tensor, dim: int) -> Tensor:
        return elements.sum(dim)

    def times(self, left: Tensor, right: Tensor) -> Tensor:
        return left * right

    def matmul(self, left: Tensor, right: Tensor) -> Tensor:
        return left @ right

    def star(self, elements: Tensor) -> Tensor:
        """Return 1 / (1 - a) for |a| < 1 and +inf elsewhere, where the geometric series diverges."""
        inside = elements.abs() < 1
        # Both branches of `where` are differentiated: 1 / (1 - a) must be finite in the one that is not taken too.
        safe = torch.where(inside, elements, torch.zeros_like(elements))
        return torch.where(inside, 1 / (1 - safe), torch.full_like(elements, INF))


class Counting(Semiring):
    """(+, ×, 0, 1) on whole numbers: the total is the number of structures with a score above -inf.

    Counts are float64: exact up to 2^53; larger ones keep 15 digits instead of overflowing.
    """

    def lift(self, log_scores: Tensor) -> Tensor:
        return (log_scores > -INF).to(torch.float64)

    def zero(self, shape: tuple[int, ...], like: Tensor) -> Tensor:
        return torch.zeros(shape, dtype=torch.float64, device=like.device)

    def one(self, shape: tuple[int, ...], like: Tensor) -> Tensor:
        return torch.ones(shape, dtype=torch.float64, device=like.device)

    def sum(self, elements: Tensor, dim: int) -> Tensor:
        return elements.sum(dim)

    def times(self, left: Tensor, right: Tensor) -> Tensor:
        # A count above 1e308 is +inf; times 0 it must be 0, not NaN.
        return torch.where((left == 0) | (right == 0), 0.0, left * right)

    def star(self, elements: Tensor) -> Tensor:
        """Return 1 where there is no loop and +inf elsewhere: a loop can be taken any number of times."""
        return torch.where(elements == 0, torch.ones_like(elements), torch.full_like(elements, INF))


class Boolean(Semiring):
    """(or, and, false, true): is there any structure at all?"""

    # [S2, boolean semiring]

    def lift(self, log_scores: Tensor) -> Tensor:
        return log_scores > -INF

    def zero(self, shape: tuple[int, ...], like: Tensor) -> Tensor:
        return torch.zeros(shape, dtype=torch.bool, device=like.device)

    def one(self, shape: tuple[int, ...], like: Tensor) -> Tensor:
        return torch.ones(shape, dtype=torch.bool, device=like.device)

    def sum(self, elements: Tensor, dim: int) -> Tensor:
        return elements.any(dim)

    def times(self, left: Tensor, right: Tensor) -> Tensor:
        return left & right

    def star(self, elements: Tensor) -> Tensor:
        return torch.ones_like(elements)
