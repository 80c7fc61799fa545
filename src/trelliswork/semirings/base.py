"""The interface that every recursion is written against: a semiring (R, ⊕, ⊗, 0, 1).

    (a ⊕ b) ⊕ c = a ⊕ (b ⊕ c)    a ⊕ b = b ⊕ a    a ⊕ 0 = a
    (a ⊗ b) ⊗ c = a ⊗ (b ⊗ c)    a ⊗ 1 = 1 ⊗ a = a    a ⊗ 0 = 0 ⊗ a = 0
    a ⊗ (b ⊕ c) = (a ⊗ b) ⊕ (a ⊗ c)    (a ⊕ b) ⊗ c = (a ⊗ c) ⊕ (b ⊗ c)

An element may consist of several numbers (k scores, a score and an expectation). They are stored in *leading* axes, so
recursions index positions, rows and labels from the right: every `dim` is negative.

Goodman (1999), Semiring parsing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor

from trelliswork.runtime.arrays import INF


class Semiring(ABC):
    """Abstract semiring: ⊕ is `sum` and `plus` (of two), ⊗ is `times`; `lift` turns log scores into elements."""

    # [S2, semiring axioms]

    @abstractmethod
    def lift(self, log_scores: Tensor) -> Tensor:
        """Return the element of each log score; a score of -inf always becomes the zero."""

    @abstractmethod
    def zero(self, shape: tuple[int, ...], like: Tensor) -> Tensor:
        """Return zeros of this shape, with the dtype and device of `lift(like)`."""

    @abstractmethod
    def one(self, shape: tuple[int, ...], like: Tensor) -> Tensor:
        """Return ones of this shape, with the dtype and device of `lift(like)`."""

    @abstractmethod
    def sum(self, elements: Tensor, dim: int) -> Tensor:
        """Sum (⊕) over one axis, given as a negative index."""

    @abstractmethod
    def times(self, left: Tensor, right: Tensor) -> Tensor:
        """Multiply (⊗) two broadcastable tensors of elements."""

    @abstractmethod
    def star(self, elements: Tensor) -> Tensor:
        """Return the closure a* = 1 ⊕ a ⊕ a⊗a ⊕ ..., element by element."""
        # [S2, closure]

    def plus(self, left: Tensor, right: Tensor) -> Tensor:
        """Add (⊕) two tensors of elements of the same shape."""
        # Stacking just before a new last axis keeps the payload axes in front.
        return self.sum(_stack_last(left, right), dim=-1)

    def matmul(self, left: Tensor, right: Tensor) -> Tensor:
        """Multiply matrices [..., i, k] and [..., k, j]: out_ij = ⊕_k left_ik ⊗ right_kj."""
        return self.sum(self.times(left.unsqueeze(-1), right.unsqueeze(-3)), dim=-2)


class OverScores(Semiring):
    """Base of semirings whose elements are log scores: the zero is -inf, the one is 0, and ⊗ is +."""

    def lift(self, log_scores: Tensor) -> Tensor:
        return log_scores

    def zero(self, shape: tuple[int, ...], like: Tensor) -> Tensor:
        return like.new_full(shape, -INF)

    def one(self, shape: tuple[int, ...], like: Tensor) -> Tensor:
        return like.new_zeros(shape)

    def times(self, left: Tensor, right: Tensor) -> Tensor:
        return left + right


def _stack_last(left: Tensor, right: Tensor) -> Tensor:
    import torch  # here, so that importing the interface does not import torch

    return torch.stack(torch.broadcast_tensors(left, right), dim=-1)
