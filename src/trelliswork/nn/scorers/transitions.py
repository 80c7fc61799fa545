"""Transition scores that depend on the input, E_trans(x, t, y', y) of a neural CRF."""

from __future__ import annotations

from torch import Tensor, nn

from trelliswork.runtime.shapes import Float


class TransitionScorer(nn.Module):
    """Scores -E_trans = ⟨w^(y', y), Φ(x, t)⟩ of each pair of tags at tokens t - 1 and t, t ≥ 2.

    All weights start at 0, so that transitions do not depend on the input at first; `CRF.transitions` is the part that
    never does.

    >>> import torch
    >>> TransitionScorer(200, num_tags=9)(torch.zeros(2, 7, 200)).shape
    torch.Size([2, 6, 9, 9])

    Do and Artières (2010), Neural conditional random fields.
    """

    # [S4.213-215]

    def __init__(self, dim: int, num_tags: int) -> None:
        super().__init__()
        self.num_tags = num_tags
        self.linear = nn.Linear(dim, num_tags * num_tags, bias=False)
        nn.init.zeros_(self.linear.weight)

    def forward(self, encoded: Float[Tensor, "batch n d"]) -> Float[Tensor, "batch n-1 c c"]:
        scores = self.linear(encoded[:, 1:])
        return scores.view(*scores.shape[:-1], self.num_tags, self.num_tags)
