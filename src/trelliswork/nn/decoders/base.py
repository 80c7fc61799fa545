"""The interface of decoders, which read an encoded input and the symbols so far, and feed the output layer."""

from __future__ import annotations

from abc import abstractmethod
from typing import Generic, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from trelliswork.runtime.arrays import Bool, Float

State = tuple[Tensor, ...]
Remembered = TypeVar("Remembered")  # what a decoder computes once of an encoded input


class Step(NamedTuple):
    """One step of a decoder.

    Attributes:
        hidden: The vector that the output layer reads.
        weights: Attention to each source position.
        state: The next state.
    """

    hidden: Float[Tensor, "batch beam d"]
    weights: Float[Tensor, "batch beam n"]
    state: State


class Unrolled(NamedTuple):
    """All steps of a decoder over given symbols; see `Step`."""

    hidden: Float[Tensor, "batch t d"]
    weights: Float[Tensor, "batch t n"]


class Decoder(nn.Module, Generic[Remembered]):
    """Base class: reads symbols one by one, or all at once if they are known, and attends to an encoded input.

    States are tuples of tensors [batch, beam, ...], with several hypotheses for each input. `remember` computes once
    what depends on the input alone. Symbols are given as vectors: the caller embeds them.

    >>> memory = decoder.remember(encoded, mask)                     # doctest: +SKIP
    >>> step = decoder.step(memory, decoder.initial(memory), begin)  # doctest: +SKIP
    """

    dim: int

    @abstractmethod
    def remember(self, encoded: Float[Tensor, "batch n d"], mask: Bool[Tensor, "batch n"]) -> Remembered:
        """Compute what all steps need of an encoded input."""

    @abstractmethod
    def initial(self, memory: Remembered, room: int = 1) -> State:
        """Return the state before the first symbol, [batch, 1, ...]; at most `room` steps may follow."""

    @abstractmethod
    def step(self, memory: Remembered, state: State, symbols: Float[Tensor, "batch beam e"]) -> Step:
        """Read one more symbol.

        Args:
            memory: What `remember` has made of the input.
            state: Tensors [batch, beam, ...], one state for each hypothesis.
            symbols: Vector of the last symbol of each hypothesis.

        Returns:
            The vector that the output layer reads [batch, beam, d], attention [batch, beam, n] and the next state.
        """

    def forward(self, memory: Remembered, symbols: Float[Tensor, "batch t e"]) -> Unrolled:
        """Read given symbols, as in training (teacher forcing)."""
        state, steps = self.initial(memory, symbols.shape[1]), []
        for t in range(symbols.shape[1]):
            step = self.step(memory, state, symbols[:, t : t + 1])
            steps.append(step)
            state = step.state
        return Unrolled(torch.cat([step.hidden for step in steps], 1), torch.cat([step.weights for step in steps], 1))
