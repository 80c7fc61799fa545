"""Generating symbol by symbol as a transition system: greedy, beams, samples, and what may be generated."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from trelliswork.errors import ScoreError
from trelliswork.nn.decoders.base import Decoder, Step
from trelliswork.nn.decoders.constraints import Constraint, PrefixConstraint
from trelliswork.runtime.shapes import Bool, Float, Int
from trelliswork.structures.grammar.prefixes import NEVER, Prefix, PrefixGrammar

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


# What to sample from: a softmax with a temperature, its k best symbols, its nucleus.

INF = float("inf")


def tempered(log_probs: Float[Tensor, "*batch v"], temperature: float) -> Float[Tensor, "*batch v"]:
    """p(k)^(1/T), normalised: T → 0 is the best symbol, T → ∞ the uniform distribution."""  # [S2, softmax]
    if not temperature > 0:
        raise ScoreError(f"temperature must be above 0; got {temperature}; 1 leaves the distribution as it is")
    return (log_probs / temperature).log_softmax(-1)


def keep_best(log_probs: Float[Tensor, "*batch v"], n_kept: int) -> Float[Tensor, "*batch v"]:
    """The n best symbols, normalised; the others are never drawn.

    Fan, Lewis and Dauphin (2018), Hierarchical neural story generation.
    """
    if n_kept < 1:
        raise ScoreError(f"at least 1 symbol must be kept; got {n_kept}")
    if n_kept >= log_probs.shape[-1]:
        return log_probs
    kept = log_probs.topk(n_kept, -1).indices  # exactly n, whatever the ties
    mask = torch.zeros_like(log_probs, dtype=torch.bool).scatter(-1, kept, True)
    return log_probs.masked_fill(~mask, -INF).log_softmax(-1)


def nucleus(log_probs: Float[Tensor, "*batch v"], mass: float) -> Float[Tensor, "*batch v"]:
    """The smallest set of symbols whose probabilities sum to at least `mass`, normalised.

    Holtzman et al. (2020), The curious case of neural text degeneration.
    """  # [S4.426]
    if not 0 < mass <= 1:
        raise ScoreError(f"the mass of a nucleus must lie in (0, 1]; got {mass}; try 0.9")
    ordered, order = torch.sort(log_probs, dim=-1, descending=True, stable=True)
    probabilities = ordered.double().exp()
    before = probabilities.cumsum(-1) - probabilities
    kept = torch.zeros_like(log_probs, dtype=torch.bool).scatter(-1, order, before < mass)
    return log_probs.masked_fill(~kept, -INF).log_softmax(-1)


# Only the strings of a context-free grammar: what comes out always parses.


class GrammarConstraint(PrefixConstraint):
    """Only the strings of a grammar; `symbols` are the names of the symbols by number.

    `classes` say which word of the grammar a symbol stands for, if not for itself; with them, others are not written.

    >>> import torch
    >>> grammar = PrefixGrammar("S -> 'a' S 'b' | 'a' 'b'")
    >>> only = GrammarConstraint(grammar, ["<end>", "a", "b"], end=0)
    >>> only.allowed(only.initial(1), torch.tensor([[3]]))
    tensor([[[False,  True, False]]])
    """

    def __init__(
        self, grammar: PrefixGrammar, symbols: Sequence[str], end: int, classes: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(len(symbols), end)
        self.grammar, self.numbers = grammar, defaultdict[str, list[int]](list)
        for i, name in enumerate(symbols):
            word = name if classes is None else classes.get(name)
            if i != end and word is not None:
                self.numbers[word].append(i)

    def start(self, row: int) -> Hashable:
        return self.grammar.start

    def successors(self, state: Hashable) -> Mapping[int, Hashable]:
        assert isinstance(state, Prefix)
        after = {word: self.grammar.step(state, word) for word in self.grammar.following(state)}
        return {number: state for word, state in after.items() for number in self.numbers.get(word, ())}

    def distance(self, state: Hashable) -> int | None:
        assert isinstance(state, Prefix)
        fewest = self.grammar.distance(state)
        return None if fewest == NEVER else int(fewest) + 1
