"""Pointer-generator: the next symbol is generated from the vocabulary or copied from a position of the source."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from trelliswork.runtime.arrays import Bool, Float, Int

TINY = 1e-20  # lower bound of probabilities, so that logarithms and their gradients stay finite


class PointerMixture(nn.Module):
    """P(y) = g P_vocabulary(y) + (1 - g) Σ_{i: x_i = y} α_i with a gate g = σ(w · h + b).

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
        """Return ln P of all symbols of the vocabulary, then of unknown symbols at each source position.

        Args:
            log_vocabulary: ln P_vocabulary.
            hidden: The vectors h that the output layer reads.
            weights: Attention weights α.
            places: Number of each source symbol: 0..v-1 in the vocabulary, v + position if unknown.
        """
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
        """Return ln P of given targets.

        Args:
            log_vocabulary: ln P_vocabulary of the targets, -inf for those outside the vocabulary.
            hidden: The vectors h that the output layer reads.
            weights: Attention weights α.
            places: Number of each source symbol, as in `forward`.
            targets: Numbers of the targets.
        """
        gate = self.gate(hidden).sigmoid().squeeze(-1)
        copied = (weights * (places[:, None] == targets[:, :, None])).sum(-1)
        return (gate * log_vocabulary.exp() + (1 - gate) * copied).clamp(min=TINY).log()


def coverage_loss(weights: Float[Tensor, "batch t n"]) -> Float[Tensor, "batch t"]:
    """Return Σ_i min(α_t,i, Σ_{t' < t} α_t',i), the repeated attention of each step.

    See, Liu and Manning (2017), Get to the point: summarization with pointer-generator networks, equation 12.

    >>> coverage_loss(torch.tensor([[[1.0, 0.0], [0.5, 0.5]]]))  # half of the second step attends again
    tensor([[0.0000, 0.5000]])
    """
    covered = weights.cumsum(1) - weights
    return torch.minimum(weights, covered).sum(-1)


# The copying mechanism of CopyNet: generating a symbol and copying a source position compete in one softmax.


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
