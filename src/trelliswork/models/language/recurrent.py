"""Recurrent language models: an Elman network, a GRU or an LSTM that reads a text and predicts the next unit.

>>> model = RecurrentLanguageModel.from_text(["the cat sat", "the dog sat"], RecurrentConfig(word_dim=8, hidden=8))
>>> model.names, model.next_log_probs(["the"]).shape
(['the', 'sat', 'cat', 'dog', '<unk>'], (6,))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from trelliswork.errors import TrellisworkError
from trelliswork.models.language.config import RecurrentConfig
from trelliswork.models.language.corpus import TextReading
from trelliswork.models.language.network import Batch, NeuralLanguageModel
from trelliswork.models.storage import StoredConfig
from trelliswork.nn.encoders.forward import ForwardReader, ForwardShares, State
from trelliswork.nn.encoders.pretrained import LayerChoice, PretrainedWords
from trelliswork.nn.inputs.dropout import drop_rows
from trelliswork.nn.output_layers import SoftmaxLayer
from trelliswork.runtime.arrays import Float, Int

FIRST_VALUES = 0.1  # the largest of the first embeddings


class RecurrentLanguageModel(NeuralLanguageModel):
    """Layers of recurrent cells under a softmax over all units, whose weights may be those of the embeddings.

    Args:
        config: Settings.
        format: How text is cut into units.
        names: Units by number, without the end of a sentence, whose number comes after theirs.
    """

    CONFIG, STRUCTURE = RecurrentConfig, "recurrent language model"
    config: RecurrentConfig

    def __init__(self, config: RecurrentConfig, format: TextReading, names: Sequence[str]) -> None:
        super().__init__(config, format, names)
        n, dim = len(self.names) + 1, config.word_dim
        self.embedding = nn.Embedding(n, dim)
        nn.init.uniform_(self.embedding.weight, -FIRST_VALUES, FIRST_VALUES)
        sizes = [config.hidden] * (config.layers - 1) + [dim if config.tied else config.hidden]
        shares = ForwardShares(config.input_dropout, config.hidden_dropout, config.dropout, config.recurrent_dropout)
        self.reader = ForwardReader(dim, sizes, config.cell, shares)
        both = config.directions == "both"
        self.backwards = ForwardReader(dim, sizes, config.cell, shares) if both else None
        self.output = SoftmaxLayer(sizes[-1], n, tied=self.embedding.weight if config.tied else None)

    def first_state(self, batch: int) -> State:
        return self.reader.first_state(batch)

    @property
    def carries(self) -> bool:
        return super().carries and self.backwards is None

    def read(self, inputs: Int[Tensor, "n batch"], state: State) -> tuple[Float[Tensor, "n batch d"], State]:
        states: tuple[Float[Tensor, "n batch d"], State] = self.reader(self._embedded(inputs), state)
        return states

    def _embedded(self, inputs: Int[Tensor, "n batch"]) -> Float[Tensor, "n batch d"]:
        vectors: Tensor = self.embedding(inputs)
        if not self.training or not self.config.embedding_dropout:
            return vectors
        return drop_rows(vectors, inputs, self.embedding.num_embeddings, self.config.embedding_dropout)

    def loss(self, batch: Batch) -> Float[Tensor, ""]:
        """Return -log p of all units, the mean of both directions if there are two."""  # [S4.465-466]
        forwards = super().loss(batch)
        if self.backwards is None:
            return forwards
        piece = self._padded([backwards_of(row) for row in self._rows(batch)])
        hidden, _ = self.backwards(self._embedded(piece.inputs.to(self.device)))
        return (forwards + self._output_loss(hidden, piece.targets.to(self.device))) / 2

    def word_layers(
        self, sentences: Sequence[Sequence[str]], scales: Float[Tensor, "batch n"] | None = None
    ) -> Float[Tensor, "batch n layers d"]:
        """Return the embedding and the states of each layer at each word, both directions side by side.

        Args:
            sentences: Words.
            scales: Factors of the embeddings.
        """
        rows = [torch.tensor(self.numbers(words)) for words in sentences]
        lengths = [len(words) for words in sentences]
        ahead = self._layers_at_words(self.reader, rows, scales)
        if self.backwards is None:
            return ahead
        flipped = None if scales is None else reversed_rows(scales, lengths)
        back = self._layers_at_words(self.backwards, [backwards_of(row) for row in rows], flipped)
        return torch.cat([ahead, reversed_rows(back, lengths)], -1)

    def _layers_at_words(
        self, reader: ForwardReader, rows: Sequence[Tensor], scales: Tensor | None
    ) -> Float[Tensor, "batch n layers d"]:
        vectors = self._embedded(self._padded(rows).inputs.to(self.device))
        if scales is not None:
            vectors = torch.cat([vectors[:1], vectors[1:] * scales.T[..., None]])
        layers, _ = reader.all_layers(vectors)
        return torch.stack([vectors, *layers], 2)[1:].transpose(0, 1)  # the first place is the end of a sentence


def backwards_of(row: Int[Tensor, " n"]) -> Int[Tensor, " n"]:
    """Return the numbers of units in reverse, the end remaining the last.

    >>> backwards_of(torch.tensor([3, 4, 9])).tolist()
    [4, 3, 9]
    """
    return torch.cat([row[:-1].flip(0), row[-1:]])


def reversed_rows(values: Tensor, lengths: Sequence[int]) -> Tensor:
    """Return rows whose first `lengths` places are in reverse; the others are 0.

    >>> reversed_rows(torch.tensor([[1, 2, 7], [3, 4, 5]]), [2, 3]).tolist()
    [[2, 1, 0], [5, 4, 3]]
    """
    return pad_sequence([row[:n].flip(0) for row, n in zip(values, lengths, strict=True)], batch_first=True)


class LanguageModelWords(PretrainedWords):
    """Vectors of words in a recurrent language model: those of the top layer, or a learned mix of all layers.

    Args:
        model: A language model of words.
        layers: "last" or "mix".

    Peters et al. (2018), Deep contextualized word representations.
    """

    model: RecurrentLanguageModel

    def __init__(self, model: RecurrentLanguageModel, layers: LayerChoice = "last") -> None:
        if model.format.units != "words":
            raise TrellisworkError(f"expected a language model of words to read with, got one of {model.format.units}")
        if len({model.config.word_dim, *model.reader.sizes}) > 1:
            sizes = f"word_dim {model.config.word_dim} and hidden {model.config.hidden}"
            raise TrellisworkError(f"expected a language model whose layers have one width, got {sizes}; train another")
        width = model.config.word_dim * (1 if model.backwards is None else 2)
        super().__init__(model, width, layers, model.config.layers + 1)
        model.output = nn.Identity()  # type: ignore[assignment]

    @classmethod
    def from_folder(cls, directory: str, *, layers: LayerChoice = "last") -> Self:
        """Read the folder of a language model."""
        return cls(RecurrentLanguageModel.load(directory), layers)

    def layers_from_below(self) -> list[list[nn.Parameter]]:
        readers = [each for each in (self.model.reader, self.model.backwards) if each is not None]
        layers = [
            [part[i] for reader in readers for part in (reader.w_in, reader.w_on, reader.biases)]
            for i in range(self.model.config.layers)
        ]
        return [[self.model.embedding.weight], *layers]

    def vectors_of(self, sentences: Sequence[Sequence[str]], scales: Tensor | None = None) -> list[Tensor]:
        if not any(map(len, sentences)):
            return [torch.zeros(0, self.n_layers, self.dim) for _ in sentences]
        layers = self.model.word_layers(sentences, scales)
        layers = layers if self.mix is not None else layers[:, :, -1:]
        return [row[: len(words)] for row, words in zip(layers, sentences, strict=True)]  # [S4.467]

    def to_dict(self) -> dict[str, object]:
        return {"language_model": self.model.stored_config(), "layers": self.layers}

    @classmethod
    def from_dict(cls, stored: StoredConfig) -> Self:
        return cls(RecurrentLanguageModel.from_stored(stored["language_model"]), stored["layers"])
