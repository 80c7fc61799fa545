"""Vectors of words from their character n-grams, as in fastText."""

from __future__ import annotations

from torch import Tensor, nn

from trelliswork.nn.inputs.lookup import PADDING, sum_of_rows
from trelliswork.runtime.shapes import Float, Int


class NgramBag(nn.Module):
    """Sum of the vectors of a word's n-grams, which are hashed into `n_buckets` rows.

    Rows are numbered from 1; 0 is padding.

        >>> import torch
        >>> NgramBag(1000, dim=50)(torch.ones(8, 12, dtype=torch.long)).shape
        torch.Size([8, 50])

    Bojanowski et al. (2017), Enriching word vectors with subword information.
    """

    # [S4.463-464]

    def __init__(self, n_buckets: int, *, dim: int = 50) -> None:
        super().__init__()
        self.dim = dim
        self.table = nn.EmbeddingBag(n_buckets + 1, dim, mode="sum", padding_idx=PADDING)
        nn.init.uniform_(self.table.weight, -(dim**-0.5), dim**-0.5)
        self.table.weight.data[PADDING] = 0.0

    def forward(self, ngrams: Int[Tensor, "u g"]) -> Float[Tensor, "u dim"]:
        return sum_of_rows(self.table, ngrams)
