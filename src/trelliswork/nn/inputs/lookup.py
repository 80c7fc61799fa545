"""Lookup tables: discrete features of a token become one vector."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from trelliswork.errors import ScoreError
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


# Structured dropout: the same dimensions at all tokens of a sentence, whole tokens, whole rows of a table.


class VariationalDropout(nn.Module):
    """Variational dropout: one mask per sentence, shared by all its tokens.

    The loss under one draw is an unbiased estimate of -E_q log p(Y | X, ω), the part of KL(q || p(ω | X, Y)) that
    depends on the data (erratum 40); weight decay plays the role of KL(q || p(ω)).

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
    """Drops whole tokens: their vectors become 0, so that the others must do.

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
    """Embedding dropout: drops a row at every occurrence; the others are scaled by 1 / (1 - share)."""
    # [S4.780]
    keep = (torch.rand(n_rows, device=vectors.device) >= share).to(vectors.dtype).div_(1 - share)
    return vectors * keep[rows].unsqueeze(-1)
