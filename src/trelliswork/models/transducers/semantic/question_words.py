"""The words of questions as vectors: learned ones for words of the training data, pretrained ones for any word."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from trelliswork.data import Vocabulary, WordVectors
from trelliswork.models.transducers.network import UNKNOWN
from trelliswork.runtime.shapes import Float, Int


def words_of(questions: Sequence[Sequence[str]], min_count: int, vectors: WordVectors | None) -> tuple[Vocabulary, int]:
    """The words with learned vectors, behind them the others with pretrained ones; and how many the former are."""
    known = Vocabulary.from_items(
        (word for words in questions for word in words), min_count=min_count, unknown=UNKNOWN
    ).to_list()
    others = [] if vectors is None else [word for word in vectors.words if word not in set(known)]
    return Vocabulary.from_list([*known, *others], unknown=UNKNOWN), len(known)


class QuestionWords(nn.Module):
    """A learned vector for the first `n_known` words, that of the unknown word for the others; behind it, if
    `vector_dim` is not 0, the pretrained vector of the word."""

    def __init__(self, n_words: int, n_known: int, dim: int, vector_dim: int = 0, *, tune: bool = False) -> None:
        super().__init__()
        self.n_known, self.dim = n_known, dim + vector_dim
        self.learned = nn.Embedding(n_known, dim)
        self.pretrained = nn.Embedding(n_words, vector_dim).requires_grad_(tune) if vector_dim else None

    def load(self, words: Vocabulary, vectors: WordVectors) -> None:
        """Take the pretrained vectors of some words; words without one have the mean of all."""
        assert self.pretrained is not None
        rows = {word: row for row, word in enumerate(vectors.words)}
        matrix = torch.from_numpy(vectors.matrix)
        with torch.no_grad():
            self.pretrained.weight.copy_(matrix.mean(0).expand_as(self.pretrained.weight))
            found = [(i, rows[word]) for i, word in enumerate(words) if word in rows]
            self.pretrained.weight[[i for i, _ in found]] = matrix[[row for _, row in found]]

    def coverage(self, questions: Iterable[Int[Tensor, " n"]]) -> float:
        """The share of the words that have a pretrained vector: another one than the unknown word."""
        assert self.pretrained is not None
        words = torch.cat(list(questions)).to(self.pretrained.weight.device)
        table = self.pretrained.weight.detach()
        return float((table[words] != table[0]).any(-1).float().mean())

    def forward(self, words: Int[Tensor, "batch n"], dropped: float = 0.0) -> Float[Tensor, "batch n d"]:
        """The vectors of words; a share `dropped` of them is learned as unknown."""
        known = words.where(words < self.n_known, 0)
        if dropped:
            known = known.masked_fill(torch.rand(words.shape, device=words.device) < dropped, 0)
        learned = self.learned(known)
        return learned if self.pretrained is None else torch.cat([learned, self.pretrained(words)], -1)
