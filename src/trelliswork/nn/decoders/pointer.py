"""Copying: the next symbol is generated from the vocabulary, or copied from a position of the source."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from trelliswork.runtime.shapes import Float, Int

TINY = 1e-20  # below it a probability is no longer distinguished from 0


class PointerMixture(nn.Module):
    """P(y) = g P_vocabulary(y) + (1 - g) Σ_{i: x_i = y} α_i with a gate g = σ(w · h + b).

    Symbols of the source have numbers too (`places`): those of the vocabulary 0..v-1, unknown ones v + position.

    See, Liu and Manning (2017), Get to the point: summarization with pointer-generator networks.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.gate = nn.Linear(dim, 1)

    def forward(
        self,
        log_vocabulary: Float[Tensor, "batch t v"],
        hidden: Float[Tensor, "batch t d"],
        weights: Float[Tensor, "batch t n"],
        places: Int[Tensor, "batch n"],
    ) -> Float[Tensor, "batch t v+n"]:
        """ln P of all symbols of the vocabulary and of those of the source."""
        gate = self.gate(hidden).sigmoid()
        n = places.shape[1]
        generated = nn.functional.pad(gate * log_vocabulary.exp(), (0, n))
        copied = (1 - gate) * weights
        total = generated.scatter_add(2, places[:, None].expand_as(copied), copied)
        return total.clamp(min=TINY).log()

    def target_log_probs(
        self,
        log_vocabulary: Float[Tensor, "batch t"],
        hidden: Float[Tensor, "batch t d"],
        weights: Float[Tensor, "batch t n"],
        places: Int[Tensor, "batch n"],
        targets: Int[Tensor, "batch t"],
    ) -> Float[Tensor, "batch t"]:
        """ln P of given targets; `log_vocabulary` is theirs, -inf for those outside the vocabulary."""
        gate = self.gate(hidden).sigmoid().squeeze(-1)
        copied = (weights * (places[:, None] == targets[:, :, None])).sum(-1)
        return (gate * log_vocabulary.exp() + (1 - gate) * copied).clamp(min=TINY).log()


def coverage_loss(weights: Float[Tensor, "batch t n"]) -> Float[Tensor, "batch t"]:
    """Σ_i min(α_t,i, Σ_{t' < t} α_t',i): what a step attends to again.

    See, Liu and Manning (2017), equation 12.
    """
    covered = weights.cumsum(1) - weights
    return torch.minimum(weights, covered).sum(-1)
