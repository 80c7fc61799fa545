"""Structured dropout: of the same dimensions at all tokens of a sentence, of whole tokens, of rows of a table.

Gal and Ghahramani (2016), A theoretically grounded application of dropout in recurrent neural networks.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import Float, Int


class VariationalDropout(nn.Module):
    """Variational dropout: one mask per sentence, shared by all its tokens.

    The loss under one mask is an unbiased estimate of -E_q log p(Y | X, ω), the part of KL(q || p(ω | X, Y)) that
    depends on the data (erratum 40); weight decay plays the role of KL(q || p(ω)).

    Args:
        share: Probability that a dimension is dropped.

    >>> dropped = VariationalDropout(0.5)(torch.ones(1, 3, 4))
    >>> bool((dropped[0, 0] == dropped[0, 2]).all())
    True

    Gal and Ghahramani (2016), A theoretically grounded application of dropout in recurrent neural networks.
    """

    # [S4.779; S4.777-778]

    def __init__(self, share: float) -> None:
        super().__init__()
        if not 0 <= share < 1:
            raise ScoreError(f"dropout must lie in [0, 1); got {share}; try 0.3")
        self.share = share

    def forward(self, tokens: Float[Tensor, "batch n d"]) -> Float[Tensor, "batch n d"]:
        if not self.training or self.share == 0:
            return tokens
        keep = torch.empty(tokens.shape[0], 1, tokens.shape[2], dtype=tokens.dtype, device=tokens.device)
        return tokens * keep.bernoulli_(1 - self.share).div_(1 - self.share)

    def extra_repr(self) -> str:
        return f"{self.share}"


class WordDropout(nn.Module):
    """Drops whole tokens, whose vectors become 0, so that a network learns to rely on their context.

    >>> sorted(WordDropout(0.5)(torch.ones(1, 100, 4)).sum(-1).unique().tolist())
    [0.0, 4.0]
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        if not 0 <= share < 1:
            raise ScoreError(f"word_dropout must lie in [0, 1); got {share}; try 0.05")
        self.share = share

    def forward(self, tokens: Float[Tensor, "batch n d"]) -> Float[Tensor, "batch n d"]:
        if not self.training or self.share == 0:
            return tokens
        return tokens.masked_fill(torch.rand(tokens.shape[:2], device=tokens.device).unsqueeze(-1) < self.share, 0.0)

    def extra_repr(self) -> str:
        return f"{self.share}"


def drop_rows(
    vectors: Float[Tensor, "batch n d"], rows: Int[Tensor, "batch n"], n_rows: int, share: float
) -> Float[Tensor, "batch n d"]:
    """Drop rows of a lookup table at all their occurrences, and scale the others by 1 / (1 - share).

    Args:
        vectors: Vectors of the tokens.
        rows: The row of the table that each of them comes from.
        n_rows: Number of rows of the table.
        share: Probability that a row is dropped.
    """
    # [S4.780]
    keep = (torch.rand(n_rows, device=vectors.device) >= share).to(vectors.dtype).div_(1 - share)
    return vectors * keep[rows].unsqueeze(-1)
