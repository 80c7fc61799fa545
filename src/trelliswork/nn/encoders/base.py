"""What every encoder of tokens is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from torch import Tensor, nn

from trelliswork.runtime.shapes import Bool, Float


class TokenEncoder(nn.Module):
    """Vectors of tokens in, vectors of `dim` that know their neighbours out.

    Values where `mask` is False never change a result; the output there is 0.
    """

    __call__: Callable[..., Tensor]

    dim: int

    @abstractmethod
    def forward(
        self, tokens: Float[Tensor, "batch n d"], mask: Bool[Tensor, "batch n"] | None = None
    ) -> Float[Tensor, "batch n dim"]: ...


# No encoder: tokens as they come in.


class IdentityEncoder(TokenEncoder):
    """The vectors that go in come out: a tag is scored by its own token alone.

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
