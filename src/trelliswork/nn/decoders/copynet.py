"""The copying mechanism of CopyNet: generating a symbol and copying a source position compete in one softmax."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from trelliswork.nn.decoders.pointer import TINY
from trelliswork.runtime.shapes import Bool, Float, Int


class JointCopy(nn.Module):
    """P(y) = (exp ψ_g(y) + Σ_{j: x_j = y} exp ψ_c(x_j)) / Z with ψ_c(x_j) = tanh(W_c h_j) · s, and one Z for both.

    ψ_g are the scores of the output layer and s is the vector that it reads. CopyNet's selective reading is not
    included: the input of the decoder is the same as without copying.

    Gu, Lu, Li and Li (2016), Incorporating copying mechanism in sequence-to-sequence learning, equations 5 to 8.
    """

    def __init__(self, dim: int, source_dim: int) -> None:
        super().__init__()
        self.product = nn.Linear(source_dim, dim, bias=False)  # W_c

    def keys(self, values: Float[Tensor, "batch n d"]) -> Float[Tensor, "batch n h"]:
        """Return tanh(W_c h_j), the part that depends on the source alone."""
        return self.product(values).tanh()

    def forward(
        self,
        scores: Float[Tensor, "batch t v"],
        hidden: Float[Tensor, "batch t h"],
        keys: Float[Tensor, "batch n h"],
        mask: Bool[Tensor, "batch n"],
        places: Int[Tensor, "batch n"],
    ) -> Float[Tensor, "batch t v+n"]:
        """Return ln P of all symbols of the vocabulary, then of unknown symbols at each source position.

        Args:
            scores: Scores of the output layer, ψ_g.
            hidden: The vectors s that it reads.
            keys: tanh(W_c h_j), from `keys`.
            mask: True at source positions that exist.
            places: Number of each source symbol: 0..v-1 in the vocabulary, v + position if unknown.
        """
        v, n = scores.shape[-1], places.shape[1]
        copied = torch.bmm(hidden, keys.transpose(1, 2)).masked_fill(~mask[:, None], -torch.inf)
        shares = torch.cat([scores, copied], -1).softmax(-1)
        generated = nn.functional.pad(shares[..., :v], (0, n))
        total = generated.scatter_add(2, places[:, None].expand_as(copied), shares[..., v:])
        return total.clamp(min=TINY).log()
