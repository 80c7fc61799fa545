"""The interface of encoders of tokens."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from torch import Tensor, nn

from trelliswork.runtime.shapes import Bool, Float


class TokenEncoder(nn.Module):
    """Base class: maps vectors of tokens to vectors of width `dim` that depend on their context.

    Inputs where `mask` is False never affect the result; the output there is 0.
    """

    __call__: Callable[..., Tensor]

    dim: int

    @abstractmethod
    def forward(
        self, tokens: Float[Tensor, "batch n d"], mask: Bool[Tensor, "batch n"] | None = None
    ) -> Float[Tensor, "batch n dim"]: ...
