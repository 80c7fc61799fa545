"""The log semiring (logaddexp, +, -inf, 0): the total is log Z.

Goodman (1999), Semiring parsing.
"""

from __future__ import annotations

import torch
from torch import Tensor

from trelliswork.runtime.arrays import INF
from trelliswork.semirings.base import OverScores


def logsumexp(scores: Tensor, dim: int) -> Tensor:
    """Return log Σ exp(scores) over one axis; a row of only -inf gives -inf, with a gradient of 0 instead of NaN.

    >>> logsumexp(torch.tensor([0.0, 0.0]), dim=-1)
    tensor(0.6931)
    """
    # [S2, softmax]
    # The shift by the maximum cancels, so derivatives stay exact although it is detached.
    highest = scores.detach().amax(dim, keepdim=True)
    shift = torch.where(highest > -INF, highest, torch.zeros_like(highest))
    total = (scores - shift).exp().sum(dim)
    empty = total == 0
    log_total = torch.where(empty, torch.ones_like(total), total).log() + shift.squeeze(dim)
    return torch.where(empty, torch.full_like(total, -INF), log_total)


def log_ratio(log_part: Tensor, log_whole: Tensor) -> Tensor:
    """Return log(part / whole), which is at most 0; -inf where the part is -inf, even if the whole is -inf too.

    >>> log_ratio(torch.tensor([0.0, -torch.inf]), torch.tensor([0.0, -torch.inf]))
    tensor([0., -inf])
    """
    is_possible = log_part > -INF
    ratio = torch.where(is_possible, log_part, 0.0) - torch.where(is_possible, log_whole, 0.0)
    # Rounding can leave a ratio slightly above 0; subtracting the detached excess keeps the gradient.
    return torch.where(is_possible, ratio - ratio.detach().clamp(min=0), -INF)


class Log(OverScores):
    """(logaddexp, +, -inf, 0) on log scores: the total is log Z.

    >>> Log().sum(torch.tensor([0.0, 0.0]), dim=-1)
    tensor(0.6931)
    """

    def sum(self, elements: Tensor, dim: int) -> Tensor:
        return logsumexp(elements, dim)

    def star(self, elements: Tensor) -> Tensor:
        """Return -log(1 - e^a) for a < 0; from a = 0 on the geometric series diverges to +inf."""
        converging = torch.where(elements < 0, elements, torch.full_like(elements, -1.0))
        closed = -torch.log(-torch.expm1(converging))
        return torch.where(elements < 0, closed, torch.full_like(elements, INF))
