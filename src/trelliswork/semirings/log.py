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
    limits, highest = torch.finfo(scores.dtype), scores.detach().amax(dim, keepdim=True)
    total = (scores - highest.clamp(min=limits.min)).exp().sum(dim)
    # The highest score adds 1 to the sum, which an eighth of the smallest step from 1 leaves as it is. Of a row of only
    # -inf the sum is 0, which the logarithm must not see; -inf comes from the shift. As few operations as possible,
    # forwards and backwards: a GPU takes as long to start each as to compute it.
    return (total + limits.eps / 8).log() + highest.squeeze(dim)


def log_ratio(log_part: Tensor, log_whole: Tensor) -> Tensor:
    """Return log(part / whole), which is at most 0; -inf where the part is -inf, even if the whole is -inf too.

    >>> log_ratio(torch.tensor([0.0, -torch.inf]), torch.tensor([0.0, -torch.inf]))
    tensor([0., -inf])
    """
    is_possible = log_part > -INF
    ratio = log_part - log_whole  # NaN where both are -inf: not taken below, and no derivative of a difference reads it
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
