"""Binary hidden units between a token's vector and its tags, summed out: the emissions of a hidden-unit CRF."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from trelliswork.nn.initialization import FanInScheme, initialize_fan_in

if TYPE_CHECKING:
    from jaxtyping import Bool, Float


class HiddenUnitScorer(nn.Module):
    """f_y = c_y + Σ_h ln(1 + exp(b_h + w_h · x + V_hy)): H binary units summed out [S4.141-144, 155, 192].

    The rest of the model is a chain: A are its transitions, π its start and τ its end scores. A has no share in the
    first token, while c has, and the recursions begin with α_1 = e^π ψ_1 and β_T = e^τ [S4.148-149] (erratum 24).

    >>> HiddenUnitScorer(300, num_tags=9, n_hidden=50)(torch.zeros(2, 7, 300)).shape
    torch.Size([2, 7, 9])
    """

    def __init__(self, dim: int, num_tags: int, n_hidden: int, *, initialization: FanInScheme = "uniform"):
        super().__init__()
        self.linear = nn.Linear(dim, n_hidden)  # W and b
        self.by_tag = nn.Parameter(torch.empty(n_hidden, num_tags))  # V
        self.bias = nn.Parameter(torch.zeros(num_tags))  # c
        initialize_fan_in(self.linear, initialization)
        nn.init.normal_(self.by_tag, std=n_hidden**-0.5)  # units that treat all tags alike would stay alike

    def forward(
        self, encoded: Float[Tensor, "batch n d"], mask: Bool[Tensor, "batch n"] | None = None
    ) -> Float[Tensor, "batch n c"]:
        """Scores per token; every scorer takes a `mask`, this one has no use for it."""
        return self.bias + F.softplus(self.linear(encoded)[..., None] + self.by_tag).sum(-2)
