"""The identity: tokens without context."""

from __future__ import annotations

from torch import Tensor

from trelliswork.nn.encoders.base import TokenEncoder
from trelliswork.runtime.shapes import Bool, Float


class IdentityEncoder(TokenEncoder):
    """Returns its input: each tag is scored by its own token alone.

    >>> import torch
    >>> IdentityEncoder(55)(torch.zeros(2, 7, 55)).shape
    torch.Size([2, 7, 55])
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(
        self, tokens: Float[Tensor, "batch n d"], mask: Bool[Tensor, "batch n"] | None = None
    ) -> Float[Tensor, "batch n d"]:
        return tokens if mask is None else tokens.masked_fill(~mask.unsqueeze(-1), 0.0)
