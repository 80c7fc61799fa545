"""Arithmetic of scores, costs and posteriors, where -inf forbids and stays so."""

from __future__ import annotations

import torch
from torch import Tensor

from trelliswork.runtime.arrays import INF


def gap(mine: Tensor | None, other: Tensor | None) -> Tensor | None:
    """Return mine - other, 0 where one forbids; scores that are not given are 0."""
    if other is None:
        return mine
    mine = torch.zeros_like(other) if mine is None else mine
    one_forbids = (mine == -INF) | (other == -INF)
    return torch.where(one_forbids, 0.0, mine) - torch.where(one_forbids, 0.0, other)


def moved_along(score: Tensor, cost: Tensor, t: Tensor) -> Tensor:
    """Return score + t[row] * cost; costs of what is forbidden are not read.

    Args:
        score: scores [rows, ...].
        cost: costs of the same shape.
        t: the step of each row [rows].

    Returns:
        Scores of the same shape; -inf stays -inf.
    """
    by = torch.where(score > -INF, cost.to(score.dtype), 0.0)
    return score + t.reshape(t.shape + (1,) * (by.dim() - t.dim())) * by


def forbidden_marks(mine: Tensor | None, other: Tensor | None) -> Tensor | None:
    """Return 1 where `other` forbids what `mine` allows, 0 elsewhere; scores that are not given are 0."""
    if other is None:
        return None if mine is None else torch.zeros_like(mine)
    forbids = other == -INF if mine is None else (other == -INF) & (mine > -INF)
    return forbids.to(other.dtype)


def not_negative(amount: Tensor) -> Tensor:
    """Replace what rounding took below 0 by 0, with the derivatives as they are; -inf (no structures at all) stays."""
    below = amount.detach().clamp(max=0)
    return amount - torch.where(below > -INF, below, 0.0)


def weighted_sum(weights: Tensor, costs: Tensor, n_batch_axes: int) -> Tensor:
    """Sum weights * costs over all but the batch axes, where a weight of 0 silences any cost, infinite ones too.

    Args:
        weights: probabilities [*batch, ...].
        costs: costs that broadcast to the same shape.
        n_batch_axes: the number of first axes that stay.

    Returns:
        Sums [*batch].
    """
    heard = torch.where(weights > 0, costs, 0.0)
    return (weights * heard).flatten(n_batch_axes).sum(-1)
