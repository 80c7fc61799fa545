"""Language models that look at a limited number of units: a window of words, and a transformer with a memory.

>>> model = WindowLanguageModel.from_text(["the cat sat", "the dog sat"], WindowConfig(word_dim=8, hidden=8))
>>> len(model.next_log_probs(["the"])) == len(model.names) + 1
True
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from trelliswork.models.language.config import TransformerConfig, WindowConfig
from trelliswork.models.language.corpus import TextReading
from trelliswork.models.language.network import NeuralLanguageModel
from trelliswork.nn.dropout import Dropout
from trelliswork.nn.encoders.forward import State
from trelliswork.nn.encoders.transformer import CausalTransformer
from trelliswork.nn.output_layers import SoftmaxLayer
from trelliswork.runtime.arrays import Float, Int

FIRST_VALUES = 0.1  # the largest of the first embeddings


class WindowLanguageModel(NeuralLanguageModel):
    """p(w | window) = softmax(b + W x + U tanh(d + H x)), x being the embeddings of the units in the window.

    Its state are the last units that it has read. Bengio et al. (2003), A neural probabilistic language model.

    Args:
        config: Settings.
        format: How text is cut into units.
        names: Units by number, without the end of a sentence, whose number comes after theirs.
    """

    CONFIG, STRUCTURE = WindowConfig, "feed-forward language model of a window"
    config: WindowConfig

    def __init__(self, config: WindowConfig, format: TextReading, names: Sequence[str]) -> None:
        super().__init__(config, format, names)
        n, width = len(self.names) + 1, config.window * config.word_dim
        self.embedding = nn.Embedding(n, config.word_dim)
        nn.init.uniform_(self.embedding.weight, -FIRST_VALUES, FIRST_VALUES)
        self.hidden = nn.Linear(width, config.hidden)
        self.dropout = Dropout(config.dropout)
        self.output = SoftmaxLayer(config.hidden + (width if config.direct else 0), n)

    def first_state(self, batch: int) -> State:
        ends = self.unit_counts.new_full((self.config.window - 1, batch), len(self.names))
        return (ends,)

    def read(self, inputs: Int[Tensor, "n batch"], state: State) -> tuple[Float[Tensor, "n batch d"], State]:
        known = torch.cat([state[0], inputs])
        vectors = self.embedding(known).unfold(0, self.config.window, 1).flatten(2)  # n batch (dim window)
        hidden = self.hidden(vectors).tanh()  # [S2, NNLM]
        both = torch.cat([hidden, vectors], -1) if self.config.direct else hidden
        return self.dropout(both), (known[len(inputs) :],)


class TransformerLanguageModel(NeuralLanguageModel):
    """A causal transformer with relative positions; its state is the memory of its layers (Transformer-XL).

    Args:
        config: Settings.
        format: How text is cut into units.
        names: Units by number, without the end of a sentence, whose number comes after theirs.
    """

    CONFIG, STRUCTURE = TransformerConfig, "transformer language model"
    config: TransformerConfig

    def __init__(self, config: TransformerConfig, format: TextReading, names: Sequence[str]) -> None:
        super().__init__(config, format, names)
        n, dim = len(self.names) + 1, config.word_dim
        self.embedding = nn.Embedding(n, dim)
        nn.init.normal_(self.embedding.weight, 0, dim**-0.5)
        self.dropout = Dropout(config.dropout)
        self.reader = CausalTransformer(
            dim, layers=config.layers, heads=config.heads, span=config.span, dropout=config.dropout,
            pattern=config.pattern, stride=config.stride,
        )  # fmt: skip
        self.output = SoftmaxLayer(dim, n, tied=self.embedding.weight)

    def first_state(self, batch: int) -> State:
        return self.reader.first_memory(batch)

    def read(self, inputs: Int[Tensor, "n batch"], state: State) -> tuple[Float[Tensor, "n batch d"], State]:
        vectors = self.dropout(self.embedding(inputs) * math.sqrt(self.config.word_dim))
        hidden, memory = self.reader(vectors, state)
        return self.dropout(hidden), memory
