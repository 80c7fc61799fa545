"""Generating symbol by symbol as a transition system: greedy, beams, samples, and what may be generated."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor, nn

from trelliswork.nn.decoders.base import Decoder, Step
from trelliswork.nn.decoders.constraints import Constraint
from trelliswork.runtime.shapes import Bool, Float, Int

State = tuple[Tensor, ...]
LAST, LENGTH, HIDDEN, WEIGHTS, COVERED, PREFIX = range(6)  # places of a state; those of the decoder follow

OVERTIME = 500  # symbols beyond the limit, where a constraint cannot end in time


class Generator(Protocol):
    """What generation asks of a model: a decoder, vectors of symbols, and the distribution over the next one."""

    decoder: Decoder
    n_outputs: int  # symbols that can be generated

    def embed(self, symbols: Int[Tensor, "batch beam"]) -> Float[Tensor, "batch beam e"]:
        """The vectors that the decoder reads."""

    def next_log_probs(
        self, hidden: Float[Tensor, "batch beam d"], weights: Float[Tensor, "batch beam n"]
    ) -> Float[Tensor, "batch beam v"]:
        """ln p(symbol | what was read so far); -inf for symbols that are never generated."""


class Generation:
    """All strings that a model may answer a batch of inputs with, symbol by symbol; `end` finishes one.

    The strings of row b have at most `limits[b]` symbols, the end included. Made for one search: `initial` begins it.

    >>> generation = Generation(model, memory, begin=1, end=2, limits=limits)                # doctest: +SKIP
    >>> found = beam_search(generation, generation.score, beam_size=5)                       # doctest: +SKIP
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
        """The state of each input that has read the symbol before all others."""
        batch, room = len(self.limits), int(self.limits.max()) + (1 if self.constraint is None else OVERTIME)
        last = torch.full((batch, 1), self.begin, device=self.limits.device)
        start = self.model.decoder.initial(self.memory, room)
        step = self.model.decoder.step(self.memory, start, self.model.embed(last))
        prefix = torch.zeros_like(last) if self.constraint is None else self.constraint.initial(batch).to(last.device)
        return self._joined(last, torch.zeros_like(last), step, torch.zeros_like(step.weights), prefix)

    def allowed(self, state: State) -> Bool[Tensor, "batch beam v"]:
        """All that the constraint allows; at the limit, where there is no constraint, only the end."""
        room = self.limits[:, None] - state[LENGTH]
        if self.constraint is not None:
            allowed = self.constraint.allowed(state[PREFIX], room)
            # Symbols beyond those that the constraint knows, such as unknown ones that would be copied, are not in it.
            return nn.functional.pad(allowed, (0, self.n_decisions - allowed.shape[-1]))
        last = room[:, :, None] <= 1
        if not bool(last.any()):
            return ~last  # the same for all symbols
        return ~last | (torch.arange(self.n_decisions, device=last.device) == self.end)

    def step(self, state: State, decisions: Int[Tensor, "batch beam"]) -> State:
        """Read what was decided."""  # [S4.22]
        prefix = state[PREFIX] if self.constraint is None else self.constraint.step(state[PREFIX], decisions)
        step = self.model.decoder.step(self.memory, state[PREFIX + 1 :], self.model.embed(decisions))
        return self._joined(decisions, state[LENGTH] + 1, step, state[COVERED] + state[WEIGHTS], prefix)

    def finished(self, state: State) -> Bool[Tensor, "batch beam"]:
        """Where the end was generated."""
        return state[LAST] == self.end

    def score(self, state: State) -> Float[Tensor, "batch beam v"]:
        """The scorer: ln p(y_t | y_1 ... y_{t-1}, x)."""
        return self.model.next_log_probs(state[HIDDEN], state[WEIGHTS])

    @staticmethod
    def _joined(last: Tensor, length: Tensor, step: Step, covered: Tensor, prefix: Tensor) -> State:
        return (last, length, step.hidden, step.weights, covered, prefix, *step.state)
