"""Recurrent language models: an Elman network, a GRU or an LSTM that reads a text and predicts the next unit.

>>> model = RecurrentLanguageModel.from_text(["the cat sat", "the dog sat"], RecurrentConfig(word_dim=8, hidden=8))
>>> round(float(np.exp(model.next_log_probs(["the"])).sum()), 4)
1.0
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from trelliswork.models.language.config import RecurrentConfig
from trelliswork.models.language.corpus import TextReading
from trelliswork.models.language.network import NeuralLanguageModel
from trelliswork.nn.encoders.forward import ForwardReader, ForwardShares, State
from trelliswork.nn.inputs.dropout import drop_rows
from trelliswork.nn.output_layers import SoftmaxLayer
from trelliswork.runtime.shapes import Float, Int

FIRST_VALUES = 0.1  # the largest of the first embeddings


class RecurrentLanguageModel(NeuralLanguageModel):
    """Layers of recurrent cells under a softmax over all units, whose weights may be those of the embeddings."""

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
        self.output = SoftmaxLayer(sizes[-1], n, tied=self.embedding.weight if config.tied else None)

    def first_state(self, batch: int) -> State:
        return self.reader.first_state(batch)

    def read(self, inputs: Int[Tensor, "n batch"], state: State) -> tuple[Float[Tensor, "n batch d"], State]:
        vectors = self.embedding(inputs)
        if self.training and self.config.embedding_dropout:
            vectors = drop_rows(vectors, inputs, self.embedding.num_embeddings, self.config.embedding_dropout)
        states: tuple[Float[Tensor, "n batch d"], State] = self.reader(vectors, state)
        return states
