"""Scores that remember: which labels have been given before in the sentence, one token after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional as F

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


def given_before(labels: Int[Tensor, "batch n"], n_labels: int) -> Float[Tensor, "batch n c"]:
    """G_(i-1): 1 for each label that a token before i has; the labels of masked tokens are negative, and none.

    >>> given_before(torch.tensor([[2, 0, 2]]), 3).tolist()
    [[[0.0, 0.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 1.0]]]
    """
    own = F.one_hot(labels.clamp(min=0), n_labels) * (labels >= 0).unsqueeze(-1)
    return F.pad(own.cummax(1).values[:, :-1], (0, 0, 1, 0)).to(torch.get_default_dtype())


class MemoryScorer(nn.Module):
    """log P_i = log softmax F(R_i), R_i = [h_i; L_i; G_(i-1)]: state, words around, memory of labels [S4.232-233].

    With the states of trigger and entity side by side as `states`, the words around both and what is known of the pair
    as `local`, it scores the role of an entity at one trigger after the other, and remembers those it has had [S4.234].

    >>> scorer = MemoryScorer(8, local_dim=6, num_labels=3)
    >>> scorer(torch.zeros(2, 5, 8), torch.zeros(2, 5, 6), torch.zeros(2, 5, dtype=torch.long)).shape
    torch.Size([2, 5, 3])
    """

    def __init__(self, dim: int, local_dim: int, num_labels: int) -> None:
        super().__init__()
        self.num_labels = num_labels
        self.linear = nn.Linear(dim + local_dim + num_labels, num_labels)

    def forward(
        self,
        states: Float[Tensor, "batch n d"],
        local: Float[Tensor, "batch n w"],
        labels: Int[Tensor, "batch n"],
    ) -> Float[Tensor, "batch n c"]:
        """log P of every label at every token, given the labels before it."""
        memory = given_before(labels, self.num_labels).to(states.dtype)
        return self.linear(torch.cat([states, local, memory], -1)).log_softmax(-1)

    @torch.no_grad()
    def decode(
        self,
        states: Float[Tensor, "batch n d"],
        local: Float[Tensor, "batch n w"],
        mask: Bool[Tensor, "batch n"] | None = None,
    ) -> Int[Tensor, "batch n"]:
        """t_i = argmax P_i from the first token to the last, remembered on the way; -1 where there is no token."""
        labels = torch.full(states.shape[:2], -1, device=states.device)
        for i in range(states.shape[1]):
            best = self(states[:, : i + 1], local[:, : i + 1], labels[:, : i + 1])[:, i].argmax(-1)
            labels[:, i] = best if mask is None else best.where(mask[:, i], -1)
        return labels
