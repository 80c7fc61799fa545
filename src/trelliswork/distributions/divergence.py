"""The Kullback-Leibler divergence of two structured distributions of one kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from trelliswork.distributions.costs import forbidden_marks, gap, not_negative
from trelliswork.errors import ScoreError
from trelliswork.runtime import bridge
from trelliswork.runtime.arrays import INF

if TYPE_CHECKING:
    from trelliswork.distributions.base import StructuredDistribution


def divergence(p: StructuredDistribution, q: StructuredDistribution) -> Tensor:
    """Return KL(p || q) = E_p[score_p - score_q] - log Z_p + log Z_q; +inf where p allows what q forbids."""
    same_kind = isinstance(q, type(p)) or isinstance(p, type(q))
    if not same_kind or not p._comparable(q):
        raise ScoreError(f"KL needs {p._same}; got {p!r} and {q!r}")
    mine, other = p._centred(), q._centred()
    pairs = list(zip(mine._scores, other._scores, strict=True))
    log_z = other._log_z
    some = log_z > -INF  # where nothing is left of q, it forbids all that p allows
    expected = mine._expected(tuple(gap(*pair) for pair in pairs)) - mine._log_z + torch.where(some, log_z, 0.0)
    marks = tuple(forbidden_marks(*pair) for pair in pairs)
    return p._batched(torch.where(some & ~_uses(mine, marks), not_negative(expected), INF))


def _uses(p: StructuredDistribution, marks: tuple[Tensor | None, ...]) -> Tensor:
    """Return whether p allows a marked part [rows]; where values cannot be looked at, whether it has a probability."""
    if bridge.out_of_reach():
        return p._expected(marks) > 0
    if any(bool(mark.any()) for mark in marks if mark is not None):
        return p._allows(marks)
    return torch.zeros_like(p._log_z, dtype=torch.bool)
