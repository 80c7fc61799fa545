"""The final linear layer, from the vector of a token to the scores of its tags."""

from __future__ import annotations

from torch import Tensor, nn

from trelliswork.nn.initialization import FanInScheme, initialize_fan_in
from trelliswork.runtime.shapes import Bool, Float


class LinearScorer(nn.Module):
    """Scores f = W h + b at each token.

    Args:
        dim: Width of the vectors of tokens.
        num_tags: Number of tags.
        initialization: See `initialize_fan_in`.

    >>> import torch
    >>> LinearScorer(300, num_tags=9)(torch.zeros(2, 7, 300)).shape
    torch.Size([2, 7, 9])
    """

    # [S3.13; S4.80]

    def __init__(self, dim: int, num_tags: int, *, initialization: FanInScheme = "uniform"):
        super().__init__()
        self.linear = nn.Linear(dim, num_tags)
        initialize_fan_in(self, initialization)

    def forward(
        self, encoded: Float[Tensor, "batch n d"], mask: Bool[Tensor, "batch n"] | None = None
    ) -> Float[Tensor, "batch n c"]:
        """Return the scores of tags at each token; `mask` is ignored."""
        return self.linear(encoded)
