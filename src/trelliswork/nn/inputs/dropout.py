"""Dropout with the same mask at every token of a sentence [S4, variational dropout]."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from trelliswork.errors import ScoreError

if TYPE_CHECKING:
    from jaxtyping import Float


class VariationalDropout(nn.Module):
    """Drops whole dimensions of a sentence: what is dropped at one token is dropped at all [S4, variational dropout].

    >>> dropped = VariationalDropout(0.5)(torch.ones(1, 3, 4))
    >>> bool((dropped[0, 0] == dropped[0, 2]).all())
    True
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        if not 0 <= share < 1:
            raise ScoreError(f"dropout must lie in [0, 1); got {share}; try 0.3")
        self.share = share

    def forward(self, tokens: Float[Tensor, "batch n d"]) -> Float[Tensor, "batch n d"]:
        if not self.training or self.share == 0:
            return tokens
        keep = torch.empty(tokens.shape[0], 1, tokens.shape[2], dtype=tokens.dtype, device=tokens.device)
        return tokens * keep.bernoulli_(1 - self.share).div_(1 - self.share)

    def extra_repr(self) -> str:
        return f"{self.share}"
