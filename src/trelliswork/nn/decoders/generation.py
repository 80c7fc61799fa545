"""Generation symbol by symbol as a transition system, to which greedy search, beams and sampling apply.

Sutskever, Vinyals and Le (2014), Sequence to sequence learning with neural networks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from trelliswork.errors import ScoreError
from trelliswork.nn.decoders.base import Decoder, Step
from trelliswork.nn.decoders.constraints import Constraint, PrefixConstraint
from trelliswork.runtime.arrays import INF, Bool, Float, Int
from trelliswork.structures.grammar.prefixes import NEVER, Prefix, PrefixGrammar

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


# A constraint that allows only the strings of a context-free grammar, so that every generated string parses.


class GrammarConstraint(PrefixConstraint):
    """Allows only the strings of a grammar.

    Args:
        grammar: The grammar.
        symbols: Names of the output symbols by number.
        end: Number of the symbol that ends a string.
        classes: The word of the grammar that each symbol stands for; symbols without one are not allowed. By default
            each symbol stands for itself.

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


# Changes of a distribution before sampling: temperature, truncation to the k best symbols or to the nucleus.


def tempered(log_probs: Float[Tensor, "*batch v"], temperature: float) -> Float[Tensor, "*batch v"]:
    """Return p(k)^(1/T), normalised: T → 0 gives the best symbol, T → ∞ the uniform distribution.

    >>> tempered(torch.tensor([0.8, 0.2]).log(), 0.5).exp()
    tensor([0.9412, 0.0588])
    """  # [S2, softmax]
    if not temperature > 0:
        raise ScoreError(f"temperature must be above 0; got {temperature}; 1 leaves the distribution unchanged")
    return (log_probs / temperature).log_softmax(-1)


def keep_best(log_probs: Float[Tensor, "*batch v"], n_kept: int) -> Float[Tensor, "*batch v"]:
    """Restrict a distribution to its `n_kept` best symbols, and normalise it.

    >>> keep_best(torch.tensor([0.5, 0.3, 0.2]).log(), 2).exp()
    tensor([0.6250, 0.3750, 0.0000])

    Fan, Lewis and Dauphin (2018), Hierarchical neural story generation.
    """
    if n_kept < 1:
        raise ScoreError(f"at least 1 symbol must be kept; got {n_kept}")
    if n_kept >= log_probs.shape[-1]:
        return log_probs
    kept = log_probs.topk(n_kept, -1).indices  # indices, not a threshold: exactly n_kept symbols even with ties
    mask = torch.zeros_like(log_probs, dtype=torch.bool).scatter(-1, kept, True)
    return log_probs.masked_fill(~mask, -INF).log_softmax(-1)


def nucleus(log_probs: Float[Tensor, "*batch v"], mass: float) -> Float[Tensor, "*batch v"]:
    """Restrict a distribution to the smallest set of symbols with a probability of at least `mass`, and normalise it.

    >>> nucleus(torch.tensor([0.5, 0.3, 0.2]).log(), 0.7).exp()
    tensor([0.6250, 0.3750, 0.0000])

    Holtzman et al. (2020), The curious case of neural text degeneration.
    """  # [S4.426]
    if not 0 < mass <= 1:
        raise ScoreError(f"the mass of a nucleus must lie in (0, 1]; got {mass}; try 0.9")
    ordered, order = torch.sort(log_probs, dim=-1, descending=True, stable=True)
    probabilities = ordered.double().exp()
    before = probabilities.cumsum(-1) - probabilities
    kept = torch.zeros_like(log_probs, dtype=torch.bool).scatter(-1, order, before < mass)
    return log_probs.masked_fill(~kept, -INF).log_softmax(-1)
