"""Semirings of plain numbers: probabilities, counts and truth values."""

from __future__ import annotations

import torch
from torch import Tensor

from trelliswork.semirings.base import Semiring

INF = float("inf")


class Real(Semiring):
    """(+, ×, 0, 1): its total is Z itself. Small inputs and closures; use `Log` for long ones."""

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
        """1 / (1 - a) inside the unit circle; outside the series diverges, +inf."""
        inside = elements.abs() < 1
        safe = torch.where(inside, elements, torch.zeros_like(elements))
        return torch.where(inside, 1 / (1 - safe), torch.full_like(elements, INF))


class Counting(Semiring):
    """(+, ×, 0, 1) on whole numbers: its total is how many structures have a score above -inf.

    Counts are float64: exact to 2^53, and large ones keep 15 digits instead of wrapping round.
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
        return torch.where((left == 0) | (right == 0), 0.0, left * right)  # a count past 1e308 times 0 is 0

    def star(self, elements: Tensor) -> Tensor:
        """1 if there is no way round; with one there are infinitely many."""
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
