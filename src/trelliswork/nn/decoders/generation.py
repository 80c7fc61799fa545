"""Generation symbol by symbol as a transition system, to which greedy search, beams and sampling apply.

Sutskever, Vinyals and Le (2014), Sequence to sequence learning with neural networks.
"""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor, nn

from trelliswork.nn.decoders.base import Decoder, Step
from trelliswork.nn.decoders.constraints import Constraint
from trelliswork.runtime.shapes import Bool, Float, Int

State = tuple[Tensor, ...]
LAST, LENGTH, HIDDEN, WEIGHTS, COVERED, PREFIX = range(6)  # fields of a state; those of the decoder follow

OVERTIME = 500  # symbols beyond the limit if a constraint does not let a string end in time


class Generator(Protocol):
    """Interface of models that generate: a decoder, vectors of symbols, and the distribution of the next symbol."""

    decoder: Decoder
    n_outputs: int  # symbols that can be generated

    def embed(self, symbols: Int[Tensor, "batch beam"]) -> Float[Tensor, "batch beam e"]:
        """Return the vectors that the decoder reads."""

    def next_log_probs(
        self, hidden: Float[Tensor, "batch beam d"], weights: Float[Tensor, "batch beam n"]
    ) -> Float[Tensor, "batch beam v"]:
        """Return ln p(symbol | all symbols so far); -inf for symbols that are never generated."""


class Generation:
    """Transition system of the strings that a model can generate for a batch of inputs.

    An instance serves one search, which calls `initial` first.

    Args:
        model: The model.
        memory: Encoded inputs, from `Decoder.remember`.
        begin: Number of the symbol that is read before all others.
        end: Number of the symbol that ends a string.
        limits: Largest number of symbols of each string, including the end.
        constraint: Restriction of the strings.

    >>> generation = Generation(model, memory, begin=1, end=2, limits=limits)                # doctest: +SKIP
    >>> strings = beam_search(generation, generation.score, beam_size=5)                     # doctest: +SKIP
    """

    # [S4.20-21, 24]

    def __init__(
        self,
        model: Generator,
        memory: Any,
        *,
        begin: int,
        end: int,
        limits: Int[Tensor, " batch"],
        constraint: Constraint | None = None,
    ) -> None:
        self.model, self.memory, self.begin, self.end = model, memory, begin, end
        self.limits, self.constraint = limits, constraint
        self.n_decisions = model.n_outputs

    def initial(self) -> State:
        """Return the state of each input after reading `begin`."""
        batch, room = len(self.limits), int(self.limits.max()) + (1 if self.constraint is None else OVERTIME)
        last = torch.full((batch, 1), self.begin, device=self.limits.device)
        start = self.model.decoder.initial(self.memory, room)
        step = self.model.decoder.step(self.memory, start, self.model.embed(last))
        prefix = torch.zeros_like(last) if self.constraint is None else self.constraint.initial(batch).to(last.device)
        return self._make_state(last, torch.zeros_like(last), step, torch.zeros_like(step.weights), prefix)

    def allowed(self, state: State) -> Bool[Tensor, "batch beam v"]:
        """Return the symbols that the constraint allows; without a constraint all, but at the limit only the end."""
        room = self.limits[:, None] - state[LENGTH]
        if self.constraint is not None:
            allowed = self.constraint.allowed(state[PREFIX], room)
            # Unknown symbols that could be copied are numbered after those of the constraint and are not allowed.
            return nn.functional.pad(allowed, (0, self.n_decisions - allowed.shape[-1]))
        last = room[:, :, None] <= 1
        if not bool(last.any()):
            return ~last  # [batch, beam, 1]: broadcast over all symbols
        return ~last | (torch.arange(self.n_decisions, device=last.device) == self.end)

    def step(self, state: State, decisions: Int[Tensor, "batch beam"]) -> State:
        """Read the symbols that were chosen."""  # [S4.22]
        prefix = state[PREFIX] if self.constraint is None else self.constraint.step(state[PREFIX], decisions)
        step = self.model.decoder.step(self.memory, state[PREFIX + 1 :], self.model.embed(decisions))
        return self._make_state(decisions, state[LENGTH] + 1, step, state[COVERED] + state[WEIGHTS], prefix)

    def finished(self, state: State) -> Bool[Tensor, "batch beam"]:
        """Return True where the end has been generated."""
        return state[LAST] == self.end

    def score(self, state: State) -> Float[Tensor, "batch beam v"]:
        """Return ln p(y_t | y_1 ... y_{t-1}, x), the scorer of searches."""
        return self.model.next_log_probs(state[HIDDEN], state[WEIGHTS])

    @staticmethod
    def _make_state(last: Tensor, length: Tensor, step: Step, covered: Tensor, prefix: Tensor) -> State:
        return (last, length, step.hidden, step.weights, covered, prefix, *step.state)
