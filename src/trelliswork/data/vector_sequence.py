"""A sequence of real-valued vectors with a label each: letters as pixels, frames of sound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trelliswork.errors import TrellisworkError
from trelliswork.runtime.shapes import Float

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, eq=False)
class VectorSequence:
    """One row per position, and its labels if they are known.

    >>> import torch
    >>> len(VectorSequence(torch.zeros(3, 128), ("a", "n", "d")))
    3
    """

    vectors: Float[Tensor, "n d"]
    labels: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.vectors.dim() != 2:
            raise TrellisworkError(f"vectors must be (n, d), one row per position; got {tuple(self.vectors.shape)}")
        if self.labels is not None and len(self.labels) != len(self.vectors):
            raise TrellisworkError(f"expected {len(self.vectors)} labels, one per vector; got {len(self.labels)}")

    def __len__(self) -> int:
        return len(self.vectors)
