"""The log semiring (logaddexp, +, -inf, 0): its total is log Z."""

from __future__ import annotations

import torch
from torch import Tensor

from trelliswork.semirings.base import OverScores

INF = float("inf")


def logsumexp(scores: Tensor, dim: int) -> Tensor:
    """log Σ exp with real -inf: an all -inf row gives -inf and passes gradients of exactly 0, never NaN.

    The maximum is a constant shift: it cancels, so treating it as one leaves all derivatives exact.

    >>> logsumexp(torch.tensor([0.0, 0.0]), dim=-1)
    tensor(0.6931)
    """
    # [S2, softmax]
    highest = scores.detach().amax(dim, keepdim=True)
    shift = torch.where(highest > -INF, highest, torch.zeros_like(highest))
    total = (scores - shift).exp().sum(dim)
    empty = total == 0
    log_total = torch.where(empty, torch.ones_like(total), total).log() + shift.squeeze(dim)
    return torch.where(empty, torch.full_like(total, -INF), log_total)


def log_ratio(log_part: Tensor, log_whole: Tensor) -> Tensor:
    """log(part / whole) of a part of a whole: -inf for nothing, even of nothing; never above 0 by rounding."""
    something = log_part > -INF
    ratio = torch.where(something, log_part, 0.0) - torch.where(something, log_whole, 0.0)
    return torch.where(something, ratio - ratio.detach().clamp(min=0), -INF)


class Log(OverScores):
    """⊕ = logaddexp, ⊗ = +."""

    def sum(self, elements: Tensor, dim: int) -> Tensor:
        return logsumexp(elements, dim)

    def star(self, elements: Tensor) -> Tensor:
        """-log(1 - e^a) for a < 0; the geometric series diverges to +inf from a = 0 on."""
        converging = torch.where(elements < 0, elements, torch.full_like(elements, -1.0))
        closed = -torch.log(-torch.expm1(converging))
        return torch.where(elements < 0, closed, torch.full_like(elements, INF))
