"""What every decoder is: it reads the symbols so far and an encoded input, and says what the output layer needs."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from trelliswork.runtime.shapes import Bool, Float

State = tuple[Tensor, ...]


class Step(NamedTuple):
    """One step of a decoder: what the output layer reads, the attention to each source position, the next state."""

    hidden: Float[Tensor, "batch beam d"]
    weights: Float[Tensor, "batch beam n"]
    state: State


class Unrolled(NamedTuple):
    """All steps of given symbols at once."""

    hidden: Float[Tensor, "batch t d"]
    weights: Float[Tensor, "batch t n"]


class Decoder(nn.Module):
    """Reads symbols one by one, or all at once where they are known, and attends to an encoded input.

    States are tuples of tensors [batch, beam, ...], several hypotheses for each input; what depends on the input alone
    is computed once, by `remember`. Symbols are vectors: the caller embeds them.

    >>> memory = decoder.remember(encoded, mask)                     # doctest: +SKIP
    >>> step = decoder.step(memory, decoder.initial(memory), begin)  # doctest: +SKIP
    """

    dim: int

    @abstractmethod
    def remember(self, encoded: Float[Tensor, "batch n d"], mask: Bool[Tensor, "batch n"]) -> Any:
        """What is computed once for each input."""

    @abstractmethod
    def initial(self, memory: Any, room: int = 1) -> State:
        """The state before the first symbol, [batch, 1, ...]; `room` is the number of steps that may follow."""

    @abstractmethod
    def step(self, memory: Any, state: State, symbols: Float[Tensor, "batch beam e"]) -> Step:
        """Read one more symbol."""

    def forward(self, memory: Any, symbols: Float[Tensor, "batch t e"]) -> Unrolled:
        """Read given symbols, as in training (teacher forcing)."""
        state, steps = self.initial(memory, symbols.shape[1]), []
        for t in range(symbols.shape[1]):
            step = self.step(memory, state, symbols[:, t : t + 1])
            steps.append(step)
            state = step.state
        return Unrolled(torch.cat([each.hidden for each in steps], 1), torch.cat([each.weights for each in steps], 1))
