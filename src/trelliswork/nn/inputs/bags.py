"""Sums of some rows of a table."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from trelliswork.nn.inputs.lookup import PADDING
from trelliswork.runtime.shapes import Float, Int


def sum_of_rows(table: nn.EmbeddingBag, rows: Int[Tensor, "*any g"]) -> Float[Tensor, "*any dim"]:
    """The sum over the last axis; row 0 fills up and counts nothing. Plain operations where they are recorded.

    >>> sum_of_rows(nn.EmbeddingBag(9, 4, mode="sum", padding_idx=0), torch.ones(2, 7, 3, dtype=torch.long)).shape
    torch.Size([2, 7, 4])
    """
    if torch.jit.is_tracing():
        found = nn.functional.embedding(rows, table.weight)
        return (found * (rows != PADDING).unsqueeze(-1)).sum(-2)
    return table(rows.flatten(0, -2)).unflatten(0, rows.shape[:-1])
