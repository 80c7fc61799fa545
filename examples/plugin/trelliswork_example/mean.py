"""An encoder: each token beside the mean of its sentence."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from trelliswork.nn.encoders import TokenEncoder


class MeanEncoder(TokenEncoder):
    """The vector of a token and the mean of all tokens side by side, then linear, then tanh."""

    def __init__(self, dim: int, *, hidden: int = 300) -> None:
        super().__init__()
        self.dim = hidden
        self.linear = nn.Linear(2 * dim, hidden)

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        """From [batch, n, dim] to [batch, n, hidden]; masked tokens are not in the mean, and come back as zeros."""
        if mask is None:
            mask = torch.ones(tokens.shape[:2], dtype=torch.bool, device=tokens.device)
        kept = torch.where(mask[..., None], tokens, 0.0)
        mean = kept.sum(1, keepdim=True) / mask.sum(1).clamp(min=1)[:, None, None]
        found = torch.tanh(self.linear(torch.cat([kept, mean.expand_as(kept)], -1)))
        return found * mask[..., None]
