"""The interface of encoders of tokens."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from torch import Tensor, nn

from trelliswork.runtime.arrays import Bool, Float


class TokenEncoder(nn.Module):
    """Base class: maps vectors of tokens to vectors of width `dim` that depend on their context.

    Inputs where `mask` is False never affect the result; the output there is 0. Where such a position lies between
    others, an encoder may skip it, as the recurrent one does, or treat it as the outside, as a window does.

    A subclass takes the width of what comes in first, further settings as keyword-only arguments with the names of the
    settings of networks (`hidden`, `layers`, ...), and sets `dim`, the width of what goes out. It is traced for ONNX: a
    decision that depends on the numbers or lengths of a batch is not kept.
    """

    __call__: Callable[..., Tensor]

    dim: int

    @abstractmethod
    def forward(
        self, tokens: Float[Tensor, "batch n d"], mask: Bool[Tensor, "batch n"] | None = None
    ) -> Float[Tensor, "batch n dim"]: ...


# The identity: tokens without context.


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
