"""The input vector of a token: the concatenated vectors of its features."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from trelliswork.errors import ScoreError
from trelliswork.nn.inputs.batch import TokenBatch
from trelliswork.nn.inputs.characters import CharacterCNN, CharacterLSTM
from trelliswork.nn.inputs.dropout import WordDropout
from trelliswork.nn.inputs.lookup import LookupTables
from trelliswork.nn.inputs.ngrams import NgramBag
from trelliswork.runtime.shapes import Float

if TYPE_CHECKING:
    from trelliswork.nn.encoders.pretrained import PretrainedEncoder


class TokenInputs(nn.Module):
    """Concatenates vectors of lookup tables and, if given, of characters, n-grams and a pretrained encoder.

    Args:
        lookup: Tables of words and of further columns, such as entity types.
        characters: Vectors of words from their characters.
        ngrams: Vectors of words from their n-grams.
        pretrained: A pretrained transformer.
        word_dropout: Probability that a token is dropped in training.

    >>> tokens = TokenBatch(torch.zeros(2, 7, 1, dtype=torch.long), torch.ones(2, 7, dtype=torch.bool))
    >>> TokenInputs(LookupTables([100], [50]))(tokens).shape
    torch.Size([2, 7, 50])
    """

    # [S4.231]

    def __init__(
        self,
        lookup: LookupTables,
        characters: CharacterCNN | CharacterLSTM | None = None,
        ngrams: NgramBag | None = None,
        pretrained: PretrainedEncoder | None = None,
        *,
        word_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.lookup, self.characters, self.ngrams, self.pretrained = lookup, characters, ngrams, pretrained
        self.word_dropout = WordDropout(word_dropout)
        self.dim = lookup.dim + sum(part.dim for part in (characters, ngrams, pretrained) if part is not None)

    def forward(self, batch: TokenBatch) -> Float[Tensor, "batch n d"]:
        parts, scales = [self.lookup(batch.features)], batch.scales
        if self.characters is not None:
            if batch.forms is None or batch.spellings is None:
                raise ScoreError("a batch for a network that reads characters must have forms and spellings; got none")
            parts.append(self.characters(batch.spellings)[batch.forms])
        if self.ngrams is not None:
            if batch.forms is None or batch.ngrams is None:
                raise ScoreError("a batch for a network that reads n-grams must have forms and ngrams; got none")
            parts.append(self.ngrams(batch.ngrams)[batch.forms])
        if self.pretrained is not None:
            if batch.words is None:
                raise ScoreError("a batch for a network with a pretrained encoder must have words; got none")
            of_words = None if scales is None else scales[..., len(self.widths) - 1]
            parts.append(self.pretrained(batch.words, of_words))
        vectors = torch.cat(parts, -1)
        return self.word_dropout(vectors if scales is None else vectors * self._by_dimension(scales))

    @property
    def widths(self) -> list[int]:
        """Return the width of each part: lookup tables, characters, n-grams and the pretrained encoder."""
        others = (self.characters, self.ngrams, self.pretrained)
        return [*self.lookup.dims, *(part.dim for part in others if part is not None)]

    def _by_dimension(self, scales: Float[Tensor, "batch n parts"]) -> Float[Tensor, "batch n d"]:
        """Return the factor of each dimension; it is 1 for a pretrained encoder, which scales its own input."""
        widths = self.widths
        factors = scales[..., : len(widths)].repeat_interleave(torch.tensor(widths, device=scales.device), -1)
        if self.pretrained is None:
            return factors
        return torch.cat([factors[..., : -widths[-1]], torch.ones_like(factors[..., -widths[-1] :])], -1)
