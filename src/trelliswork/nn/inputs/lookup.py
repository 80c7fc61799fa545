"""Lookup tables, which map discrete features of a token to a vector."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from trelliswork.errors import ScoreError
from trelliswork.nn.inputs.dropout import drop_rows
from trelliswork.runtime.arrays import Float, Int

PADDING = 0
UNKNOWN = 1


class LookupTables(nn.Module):
    """One table per feature; the vectors of all features are concatenated.

    Index 0 of each table is the padding outside a sentence, which has a trained vector of its own, and index 1 the
    unknown value. The first feature is the word.

    Args:
        sizes: Number of rows of each table.
        dims: Width of each table.
        unknown_dropout: Probability that a word is replaced by the unknown word in training, which trains its vector.
        embedding_dropout: Probability that the vector of a word is dropped in training, at all its occurrences in a
            batch.

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
        """Look up the features and concatenate their vectors."""
        self.check(features)
        columns = list(features.unbind(-1))
        if self.training and self.unknown_dropout > 0:
            columns[0] = self._drop_words(columns[0])
        vectors = [table(column) for table, column in zip(self.tables, columns, strict=True)]
        if self.training and self.embedding_dropout > 0:
            vectors[0] = drop_rows(vectors[0], columns[0], self.n_words, self.embedding_dropout)
        return torch.cat(vectors, dim=-1)

    def check(self, features: Int[Tensor, "batch n f"]) -> None:
        """Raise `ScoreError` if the features do not fit the tables."""
        if features.dim() != 3 or features.shape[-1] != len(self.tables):
            raise ScoreError(
                f"features must have shape (batch, n, {len(self.tables)}); got {tuple(features.shape)}; "
                "give one index per table and token"
            )

    def _drop_words(self, words: Int[Tensor, "batch n"]) -> Int[Tensor, "batch n"]:
        dropped = torch.rand(words.shape, device=words.device) < self.unknown_dropout
        return words.masked_fill(dropped & (words != PADDING), UNKNOWN)


def sum_of_rows(table: nn.EmbeddingBag, rows: Int[Tensor, "*any g"]) -> Float[Tensor, "*any dim"]:
    """Sum rows of a table over the last axis; row 0 is padding and counts as 0.

    >>> sum_of_rows(nn.EmbeddingBag(9, 4, mode="sum", padding_idx=0), torch.ones(2, 7, 3, dtype=torch.long)).shape
    torch.Size([2, 7, 4])
    """
    if torch.jit.is_tracing():  # record plain operations in the exported model
        vectors = nn.functional.embedding(rows, table.weight)
        return (vectors * (rows != PADDING).unsqueeze(-1)).sum(-2)
    return table(rows.flatten(0, -2)).unflatten(0, rows.shape[:-1])
