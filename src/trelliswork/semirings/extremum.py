"""The two semirings of best paths: max-plus (scores) and min-plus (costs)."""

from __future__ import annotations

import torch
from torch import Tensor

from trelliswork.semirings.base import OverScores, Semiring

INF = float("inf")


class Max(OverScores):
    """(max, +, -inf, 0) on scores: its total is the best score, its gradient one best path.

    Among ties the gradient goes to the first label only, so that it always marks a single path.
    """

    # [S2, Viterbi semiring]

    def sum(self, elements: Tensor, dim: int) -> Tensor:
        return elements.max(dim).values

    def star(self, elements: Tensor) -> Tensor:
        """0 (the empty loop) unless going round gains: then there is no best path, +inf."""
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
        """0 (the empty loop) unless going round costs less than nothing: then -inf."""
        return torch.where(elements >= 0, torch.zeros_like(elements), torch.full_like(elements, -INF))
