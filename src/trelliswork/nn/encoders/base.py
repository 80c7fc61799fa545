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
