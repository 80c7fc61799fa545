"""The input vector of a token: the vectors of its features, concatenated."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn

from trelliswork.errors import ScoreError
from trelliswork.nn.inputs.dropout import WordDropout
from trelliswork.nn.inputs.lookup import PADDING, LookupTables
from trelliswork.runtime.shapes import Bool, Float, Int

if TYPE_CHECKING:
    from trelliswork.nn.encoders.pretrained import PretrainedEncoder


class TokenInputs(nn.Module):
    """Vectors of lookup tables and, if there are parts for them, of characters, n-grams and a pretrained encoder.

    They are concatenated: pretrained word vectors, and those of further columns such as entity types.
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
        found, scales = [self.lookup(batch.features)], batch.scales
        if self.characters is not None:
            if batch.forms is None or batch.spellings is None:
                raise ScoreError("a batch for a network that reads characters must have forms and spellings; got none")
            found.append(self.characters(batch.spellings)[batch.forms])
        if self.ngrams is not None:
            if batch.forms is None or batch.ngrams is None:
                raise ScoreError("a batch for a network that reads n-grams must have forms and ngrams; got none")
            found.append(self.ngrams(batch.ngrams)[batch.forms])
        if self.pretrained is not None:
            if batch.words is None:
                raise ScoreError("a batch for a network with a pretrained encoder must have words; got none")
            of_words = None if scales is None else scales[..., len(self.widths) - 1]
            found.append(self.pretrained(batch.words, of_words))
        vectors = torch.cat(found, -1)
        return self.word_dropout(vectors if scales is None else vectors * self._by_dimension(scales))

    @property
    def widths(self) -> list[int]:
        """The dimensions of each part: of the lookup tables, characters, n-grams and the pretrained encoder."""
        others = (self.characters, self.ngrams, self.pretrained)
        return [*self.lookup.dims, *(part.dim for part in others if part is not None)]

    def _by_dimension(self, scales: Float[Tensor, "batch n parts"]) -> Float[Tensor, "batch n d"]:
        """The factor of each dimension; a pretrained encoder has scaled what it reads, not what it writes."""
        widths = self.widths
        found = scales[..., : len(widths)].repeat_interleave(torch.tensor(widths, device=scales.device), -1)
        if self.pretrained is None:
            return found
        return torch.cat([found[..., : -widths[-1]], torch.ones_like(found[..., -widths[-1] :])], -1)


# Sums of some rows of a table.


def sum_of_rows(table: nn.EmbeddingBag, rows: Int[Tensor, "*any g"]) -> Float[Tensor, "*any dim"]:
    """The sum over the last axis; row 0 fills up and counts nothing. Plain operations where they are recorded.

    >>> sum_of_rows(nn.EmbeddingBag(9, 4, mode="sum", padding_idx=0), torch.ones(2, 7, 3, dtype=torch.long)).shape
    torch.Size([2, 7, 4])
    """
    if torch.jit.is_tracing():
        found = nn.functional.embedding(rows, table.weight)
        return (found * (rows != PADDING).unsqueeze(-1)).sum(-2)
    return table(rows.flatten(0, -2)).unflatten(0, rows.shape[:-1])


# What a network reads: the tokens of some sentences as indices.


class TokenBatch(NamedTuple):
    """Sentences side by side; where `mask` is False there is no token.

    A form that comes more than once is spelled out once: token [b, i] is written with the characters of row
    forms[b, i] of `spellings`, which 0 fills up, and has the n-grams of the same row of `ngrams`. `attributes` are
    those of a token, one for each template; 0 is none. `words` are for encoders that split them by themselves.

    `scales` multiply what each token brings, one factor for each part (`TokenInputs.parts`, then attributes): 1 is the
    token as it is, 0 nothing. Gradients with respect to them say which tokens a score is due to.
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
        """The same batch on another device."""
        return TokenBatch(*(each.to(device) if isinstance(each, Tensor) else each for each in self))  # type: ignore[arg-type]


# Attributes of tokens that score labels directly, past the encoder.


class DirectConnections(nn.Module):
    """Scores that a token's attributes give to each label, to be added to the emissions.

    Attribute 0 means none. All weights start at 0, so that adding the layer does not change the network.

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
        found = sum_of_rows(self.table, batch.attributes)
        return found if batch.scales is None else found * batch.scales[..., -1:]


# Vectors of words from their character n-grams, as fastText has them.


class NgramBag(nn.Module):
    """The sum of the vectors of a word's n-grams, which share `n_buckets` rows by their hashes.

    Rows are numbered from 1; 0 fills up and counts nothing.

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


# Vectors of words from their characters: a convolution with a maximum over time, or an LSTM from both ends.


class CharacterCNN(nn.Module):
    """`hidden` filters over `width` characters each, the maximum of each over the word.

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
        vectors = self.table(spellings) * present  # no character is as good as the border of the word
        found = self.convolution(vectors.transpose(1, 2)).transpose(1, 2)[:, : spellings.shape[1]]
        return found.masked_fill(~present, -torch.inf).amax(1).tanh()


class CharacterLSTM(nn.Module):
    """The last states of an LSTM that reads the word forwards and of one that reads it backwards, side by side.

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
        turned = (last[:, None] - torch.arange(spellings.shape[1], device=spellings.device)).clamp(min=0)
        ends = []
        for lstm, read in ((self.forwards, spellings), (self.backwards, spellings.gather(1, turned))):
            states, _ = lstm(self.table(read))
            ends.append(states.gather(1, last[:, None, None].expand(-1, 1, states.shape[2])).squeeze(1))
        return torch.cat(ends, 1)
