"""Lookup tables: discrete features of a token become one vector."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from trelliswork.errors import ScoreError
from trelliswork.nn.inputs.dropout import drop_rows
from trelliswork.runtime.shapes import Float, Int

PADDING = 0
UNKNOWN = 1


class LookupTables(nn.Module):
    """One table per feature; their vectors are concatenated.

    Index 0 of each table is the padding outside a sentence (it has a trained vector of its own),
    index 1 is the unknown value. While training, the first feature (the word) is replaced by unknown with
    probability `unknown_dropout`, which is how the unknown vector learns; with probability `embedding_dropout` its row
    is dropped, in the whole batch at once.

        >>> tables = LookupTables(sizes=[5000, 6], dims=[50, 5])
        >>> tables(torch.zeros(2, 7, 2, dtype=torch.long)).shape
        torch.Size([2, 7, 55])

    Collobert et al. (2011), Natural language processing (almost) from scratch.
    """

    # [S3, Lookup Table Layer]

    def __init__(
        self,
        sizes: Sequence[int],
        dims: Sequence[int],
        *,
        unknown_dropout: float = 0.0,
        embedding_dropout: float = 0.0,
    ):
        super().__init__()
        if len(sizes) != len(dims) or not sizes:
            raise ScoreError(
                f"expected one dimension per table; got {len(sizes)} sizes and {len(dims)} dims; "
                "give two lists of the same length, at least 1"
            )
        self.tables = nn.ModuleList(nn.Embedding(size, dim) for size, dim in zip(sizes, dims, strict=True))
        self.unknown_dropout, self.embedding_dropout = unknown_dropout, embedding_dropout
        self.n_words, self.dims, self.dim = sizes[0], tuple(dims), sum(dims)

    def forward(self, features: Int[Tensor, "batch n f"]) -> Float[Tensor, "batch n d"]:
        """Look up and concatenate."""
        self.check(features)
        columns = list(features.unbind(-1))
        if self.training and self.unknown_dropout > 0:
            columns[0] = self._drop_words(columns[0])
        found = [table(column) for table, column in zip(self.tables, columns, strict=True)]
        if self.training and self.embedding_dropout > 0:
            found[0] = drop_rows(found[0], columns[0], self.n_words, self.embedding_dropout)
        return torch.cat(found, dim=-1)

    def check(self, features: Int[Tensor, "batch n f"]) -> None:
        """Refuse features that do not fit the tables."""
        if features.dim() != 3 or features.shape[-1] != len(self.tables):
            raise ScoreError(
                f"features must have shape (batch, n, {len(self.tables)}); got {tuple(features.shape)}; "
                "give one index per table and token"
            )

    def _drop_words(self, words: Int[Tensor, "batch n"]) -> Int[Tensor, "batch n"]:
        dropped = torch.rand(words.shape, device=words.device) < self.unknown_dropout
        return words.masked_fill(dropped & (words != PADDING), UNKNOWN)
