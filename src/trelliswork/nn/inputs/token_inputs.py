"""The input vector of a token: the concatenated vectors of its features."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn

from trelliswork.errors import ScoreError
from trelliswork.nn.inputs.dropout import WordDropout
from trelliswork.nn.inputs.lookup import PADDING, LookupTables, sum_of_rows
from trelliswork.runtime.arrays import Bool, Float, Int

if TYPE_CHECKING:
    from trelliswork.nn.encoders.pretrained import PretrainedWords


class TokenInputs(nn.Module):
    """Concatenates vectors of lookup tables and, if given, of characters, n-grams and a pretrained encoder.

    Args:
        lookup: Tables of words and of further columns, such as entity types.
        characters: Vectors of words from their characters.
        ngrams: Vectors of words from their n-grams.
        pretrained: A pretrained encoder.
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
        pretrained: PretrainedWords | None = None,
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


# The input of a network: the tokens of some sentences as indices.


class TokenBatch(NamedTuple):
    """A batch of sentences.

    Each distinct form is spelled once: token [b, i] has the characters and n-grams in row forms[b, i] of `spellings`
    and `ngrams`.

    Attributes:
        features: Index of each of f discrete features of a token.
        mask: True at tokens, False at padding.
        forms: Row of the form of each token.
        spellings: Characters of each of u forms, padded with 0.
        ngrams: Character n-grams of each form, padded with 0.
        attributes: Attributes of each token, one for each of t templates; 0 for none.
        words: The words themselves, for encoders that split them.
        scales: Factors of the inputs of each token, one for each part of `TokenInputs.widths` and one for attributes;
            1 leaves a token unchanged, 0 removes it. Their gradients attribute a score to tokens.
    """

    features: Int[Tensor, "batch n f"]
    mask: Bool[Tensor, "batch n"]
    forms: Int[Tensor, "batch n"] | None = None
    spellings: Int[Tensor, "u m"] | None = None
    ngrams: Int[Tensor, "u g"] | None = None
    attributes: Int[Tensor, "batch n t"] | None = None
    words: tuple[tuple[str, ...], ...] | None = None
    scales: Float[Tensor, "batch n parts"] | None = None

    def to(self, device: torch.device) -> TokenBatch:
        """Move the batch to a device."""
        return TokenBatch(*(field.to(device) if isinstance(field, Tensor) else field for field in self))  # type: ignore[arg-type]


# Vectors of words from their characters: a convolution with maximum over time, or a bidirectional LSTM.


class CharacterCNN(nn.Module):
    """Convolution over the characters of a word, and the maximum of each filter over the word.

    Args:
        n_characters: Number of characters, including padding.
        dim: Width of the vectors of characters.
        hidden: Number of filters.
        width: Number of characters under a filter.

    >>> CharacterCNN(100, dim=25, hidden=30)(torch.ones(8, 12, dtype=torch.long)).shape
    torch.Size([8, 30])

    dos Santos and Zadrozny (2014), Learning character-level representations for part-of-speech tagging. The initial
    vectors are those of Ma and Hovy (2016), End-to-end sequence labeling via bi-directional LSTM-CNNs-CRF.
    """

    # [S3, Max Layer]

    def __init__(self, n_characters: int, *, dim: int = 25, hidden: int = 30, width: int = 3) -> None:
        super().__init__()
        self.dim = hidden
        self.table = nn.Embedding(n_characters, dim)
        self.convolution = nn.Conv1d(dim, hidden, width, padding=width // 2)
        nn.init.uniform_(self.table.weight, -((3 / dim) ** 0.5), (3 / dim) ** 0.5)

    def forward(self, spellings: Int[Tensor, "u m"]) -> Float[Tensor, "u hidden"]:
        present = (spellings != PADDING).unsqueeze(-1)
        vectors = self.table(spellings) * present  # padding after a word must look like its border, which is 0
        filtered = self.convolution(vectors.transpose(1, 2)).transpose(1, 2)[:, : spellings.shape[1]]
        return filtered.masked_fill(~present, -torch.inf).amax(1).tanh()


class CharacterLSTM(nn.Module):
    """Final states of an LSTM that reads the word forwards and of one that reads it backwards, side by side.

    Args:
        n_characters: Number of characters, including padding.
        dim: Width of the vectors of characters.
        hidden: Width of the result; each direction has half of it.

    Lample et al. (2016), Neural architectures for named entity recognition.

    >>> CharacterLSTM(100, dim=25, hidden=50)(torch.ones(8, 12, dtype=torch.long)).shape
    torch.Size([8, 50])
    """

    def __init__(self, n_characters: int, *, dim: int = 25, hidden: int = 50) -> None:
        super().__init__()
        self.dim = 2 * (hidden // 2)
        self.table = nn.Embedding(n_characters, dim)
        self.forwards = nn.LSTM(dim, hidden // 2, batch_first=True)
        self.backwards = nn.LSTM(dim, hidden // 2, batch_first=True)
        nn.init.uniform_(self.table.weight, -((3 / dim) ** 0.5), (3 / dim) ** 0.5)

    def forward(self, spellings: Int[Tensor, "u m"]) -> Float[Tensor, "u hidden"]:
        lengths = (spellings != PADDING).sum(1)
        last = (lengths - 1).clamp(min=0)
        reversed_order = (last[:, None] - torch.arange(spellings.shape[1], device=spellings.device)).clamp(min=0)
        final_states = []
        for lstm, characters in ((self.forwards, spellings), (self.backwards, spellings.gather(1, reversed_order))):
            states, _ = lstm(self.table(characters))
            final_states.append(states.gather(1, last[:, None, None].expand(-1, 1, states.shape[2])).squeeze(1))
        return torch.cat(final_states, 1)


# Attributes of tokens that score labels directly, bypassing the encoder.


class DirectConnections(nn.Module):
    """Scores of each label from the attributes of a token, to be added to the emissions.

    Attribute 0 means none. All weights start at 0, so that adding the layer does not change a network.

    >>> import torch
    >>> attributes = torch.tensor([[[1, 2], [3, 0]]])  # two templates
    >>> batch = TokenBatch(torch.zeros(1, 2, 1), torch.ones(1, 2, dtype=torch.bool), attributes=attributes)
    >>> DirectConnections(4, num_labels=9)(batch).shape
    torch.Size([1, 2, 9])

    Huang, Xu and Yu (2015), Bidirectional LSTM-CRF models for sequence tagging.
    """

    # [S4, direct connections]

    def __init__(self, n_attributes: int, num_labels: int) -> None:
        super().__init__()
        self.table = nn.EmbeddingBag(n_attributes, num_labels, mode="sum", padding_idx=PADDING)
        nn.init.zeros_(self.table.weight)

    def forward(self, batch: TokenBatch) -> Float[Tensor, "batch n c"]:
        if batch.attributes is None:
            raise ScoreError("a batch for a network with direct connections must have attributes; got none")
        scores = sum_of_rows(self.table, batch.attributes)
        return scores if batch.scales is None else scores * batch.scales[..., -1:]


# Vectors of words from their character n-grams, as in fastText.


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
