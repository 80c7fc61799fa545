"""The k best values in order, and as many as were asked for."""

from __future__ import annotations

from typing import TypeVar

import torch
from torch import Tensor

from trelliswork.runtime.arrays import INF

Values = TypeVar("Values", Tensor, list[object])


def in_order(values: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
    """Return values [k, rows, *event] and scores [k, rows], best first: scores that are added up in another order than
    when they were compared may differ in the last digit."""
    if not bool((scores[1:] > scores[:-1]).any()):
        return values, scores
    ranks = scores.detach().sort(dim=0, descending=True, stable=True).indices
    rows = torch.arange(scores.shape[1], device=scores.device)
    return values[ranks, rows], scores[ranks, rows]


def padded(ranked: tuple[Values, Tensor], k: int) -> tuple[Values, Tensor]:
    """Return values and scores of the best, filled up to k: the best again, with a score of -inf."""
    values: Values = ranked[0]
    scores: Tensor = ranked[1]
    missing = k - len(scores)
    if missing <= 0:
        return ranked
    if isinstance(values, Tensor):
        values = torch.cat([values, values[:1].expand(missing, *values.shape[1:])])
    else:
        values = values + values[:1] * missing
    return values, torch.cat([scores, scores.new_full((missing, *scores.shape[1:]), -INF)])
