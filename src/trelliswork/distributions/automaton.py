"""Base of machines: the queries of a distribution over paths, and over the strings that they spell."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from trelliswork.distributions.automaton_inputs import Spelling, names_of
from trelliswork.distributions.base import Backend, StructuredDistribution
from trelliswork.distributions.centring import centred
from trelliswork.distributions.checks import check_tensor
from trelliswork.distributions.costs import weighted_sum
from trelliswork.distributions.segment_values import nested
from trelliswork.draw import automaton as draw_automaton
from trelliswork.draw.notebook import Piece
from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import INF, Array, Bool, Float
from trelliswork.semirings import Semiring
from trelliswork.semirings.log import log_ratio
from trelliswork.structures.automata import passes, structure
from trelliswork.structures.automata.solver import STRUCTURE
from trelliswork.structures.automata.structure import Machine
from trelliswork.structures.automata.symbols import Symbols

MOST_DRAWN = 40  # states of a machine that a notebook draws


class Path(NamedTuple):
    """A way through a machine: the state it begins in, its arcs, and what they read and write."""

    first: int
    arcs: tuple[int, ...]
    input: Spelling
    output: Spelling


class Automaton(StructuredDistribution[Any]):
    """p(path) = exp(score) / Z over the paths of a machine; the base of `Acceptor` and `Transducer`.

    Ambiguity: several paths may spell one string. Queries about paths count them apart, queries about strings add them
    up.

    Args:
        machine: states, arcs and weights.
        tables: symbol tables of inputs and outputs; None where labels are plain numbers.
        backend: "kernel", "torch" or "auto".
    """  # [S2, WFST distribution]

    _validate_args = False
    _structure = STRUCTURE
    _noun = "path"
    _advice = "connect a first to a last state"
    _same = "the same states and arcs; only weights may differ"

    def __init__(self, machine: Machine, tables: tuple[Symbols | None, Symbols | None], backend: Backend = "auto"):
        self.machine, self._tables = machine, tables
        super().__init__(machine.weights, (), (), backend)

    def _like(self, machine: Machine) -> Self:
        """Return another machine with the same symbols."""
        made = object.__new__(type(self))
        Automaton.__init__(made, machine, self._tables, self.backend)
        return made

    @property
    def n_states(self) -> int:
        return self.machine.n_states

    @property
    def n_arcs(self) -> int:
        return self.machine.n_arcs

    @property
    def weights(self) -> Float[Tensor, "arcs"]:
        return self.machine.weights

    @property
    def initial_states(self) -> list[int]:
        """States in which a path may begin."""
        return [int(q) for q in np.flatnonzero(self._precise.arrays[1] > -INF)]

    @property
    def final_states(self) -> list[int]:
        """States in which a path may end."""
        return [int(q) for q in np.flatnonzero(self._precise.arrays[2] > -INF)]

    def arc_texts(self, values: Tensor | None = None) -> list[tuple[int, int, str]]:
        """Return (source, target, "a:x value") of every arc, to print or draw; without values the weights."""
        machine, numbers = self.machine, (self.weights if values is None else values).tolist()
        read, written = (
            [names_of([label], table) or ("ε",) for label in labels]
            for labels, table in zip((machine.input, machine.output), self._tables, strict=True)
        )
        texts = [f"{x}" if x == y else f"{x}:{y}" for (x,), (y,) in zip(read, written, strict=True)]
        places = zip(machine.source.tolist(), machine.target.tolist(), texts, numbers, strict=True)
        return [(source, target, f"{text} {value:.2f}") for source, target, text, value in places]

    @cached_property
    def _precise(self) -> Machine:
        return self.machine.double()

    @property
    def _solved(self) -> tuple[Machine]:
        return (self._precise,)

    def _batched(self, result: Tensor, *lead: int) -> Tensor:
        return (result.reshape(lead) if lead else result).to(self.dtype)

    # --- sums over paths -------------------------------------------------------------------------------------

    def total(self, semiring: Semiring) -> Tensor:
        """Return ⊕ over paths of the ⊗ of their weights, in any semiring of `trelliswork.semirings`."""
        return structure.total(self._precise, semiring)

    @property
    def marginals(self) -> Float[Tensor, "arcs"]:
        """Return the expected number of times a path takes each arc: without cycles, the probability that it does."""
        return self._batched(self._posteriors[0])

    def arc_probability(self, arc: int) -> Tensor:
        """Return P(a path takes this arc at least once), with cycles as well."""
        if not 0 <= arc < self.n_arcs:
            raise ScoreError(f"arcs are numbered 0..{self.n_arcs - 1}; got {arc}")
        allowed = torch.ones(self.n_arcs, dtype=torch.bool)
        allowed[arc] = False
        return -torch.expm1(self.log_prob_of_set(allowed))

    def expected(
        self, costs: Float[Tensor, "arcs"], initial: Tensor | None = None, final: Tensor | None = None
    ) -> Tensor:
        """Return E[Σ costs of the arcs of a path + initial[first state] + final[last state]].

        Args:
            costs: [arcs].
            initial: [states], the cost of beginning in each; 0 if not given.
            final: [states], the cost of ending in each; 0 if not given.

        Returns:
            A number.
        """
        return self._batched(self._expected(self._costs(costs, initial, final)))

    def _costs(
        self, costs: Tensor | None = None, initial: Tensor | None = None, final: Tensor | None = None
    ) -> tuple[Tensor | None, ...]:
        for given, scores in zip((costs, initial, final), self.machine.scores, strict=True):
            if given is not None:
                check_tensor("costs", given)
            if given is not None and given.shape != scores.shape:
                raise ScoreError(
                    f"costs must be shaped as the weights are, {tuple(scores.shape)}; got {tuple(given.shape)}"
                )
        return costs, initial, final

    def _expected(self, costs: tuple[Tensor | None, ...]) -> Tensor:
        parts = [weighted_sum(p, c.double(), 0) for p, c in zip(self._posteriors, costs, strict=True) if c is not None]
        return torch.stack(parts).sum()

    @property
    def _scores(self) -> tuple[Tensor, Tensor, Tensor]:
        return self._precise.scores

    def _divided(self, t: float) -> Self:
        return self._like(self.machine.with_scores(*(each / t for each in self.machine.scores)))

    def _comparable(self, other: Automaton) -> bool:
        """Return whether the machines differ in weights only."""
        mine, its = self._precise, other._precise
        same = all(np.array_equal(getattr(mine, x), getattr(its, x)) for x in ("source", "target", "input", "output"))
        return same and mine.n_states == its.n_states

    def _allows(self, marks: tuple[Tensor | None, ...]) -> Tensor:
        """Any part of a live state or arc is one of a path; with cycles there may be no best path to look for."""
        arcs, initial, final = (mark > 0 for mark in marks if mark is not None)
        live = torch.from_numpy(self._precise.live)
        live_arcs = arcs[torch.from_numpy(self._precise.live_arcs)]
        return live_arcs.any() | (initial & live).any() | (final & live).any()

    def _centred(self) -> Self:
        """Return the same distribution with weights moved along paths.

        The best way ahead of each state then scores 0.

        With cycles there may be no best way: then only what begins and ends paths is centred.
        """
        machine = self._precise
        if not machine.live.any():
            return self
        if not machine.acyclic:
            weights, initial, final = machine.scores
            return self._like(machine.with_scores(weights, centred(initial, 1), centred(final, 1)))
        best = np.rint(np.nan_to_num(passes.best_ahead(machine), neginf=0.0))  # whole: no rounding
        ahead = torch.from_numpy(best).to(machine.weights.device)
        source, target = torch.from_numpy(machine.source), torch.from_numpy(machine.target)
        weights, initial, final = machine.scores
        moved = weights + (ahead[target] - ahead[source]), centred(initial + ahead, 1), final - ahead
        return self._like(machine.with_scores(*moved))

    # --- single paths ----------------------------------------------------------------------------------------

    def path(self, first: int, arcs: Array | Sequence[int]) -> Path:
        """Return a path with what it reads and writes; an error if its arcs do not join."""
        arcs = np.asarray(arcs, np.int64).reshape(-1)
        if (len(arcs) and not 0 <= arcs.min() <= arcs.max() < self.n_arcs) or not 0 <= first < self.n_states:
            raise ScoreError(f"paths have arcs in 0..{self.n_arcs - 1}; got {arcs.tolist()} from state {first}")
        machine = self.machine
        begins = np.concatenate([[first], machine.target[arcs]])[: len(arcs)]
        if not np.array_equal(begins, machine.source[arcs]):
            raise ScoreError(f"the arcs of a path must follow one another; got {arcs.tolist()} from state {first}")
        read, written = (
            names_of(side[arcs], t) for side, t in zip((machine.input, machine.output), self._tables, strict=True)
        )
        return Path(int(first), tuple(arcs.tolist()), read, written)

    def _in_batch(self, values: Tensor, lead: Sequence[int]) -> Tensor:
        return values.reshape((*lead, values.shape[-1]))

    def _written(self, values: Tensor) -> Any:
        paths = [self.path(int(row[0]), row[1:][row[1:] >= 0]) for row in values.reshape(-1, values.shape[-1]).numpy()]
        return nested(paths, values.shape[:-1])

    def _n_best(self, k: int) -> int:
        return k  # the search ends by itself

    # --- values: paths, or strings with all their paths ------------------------------------------------------

    @abstractmethod
    def _with_value(self, value: Any) -> Self:
        """Return only the paths that spell this string (or pair of strings)."""

    def score(self, value: Any) -> Tensor:
        """Return the score of a `Path`; of a string (or pair), the log of the summed weights of its paths."""
        return self._batched(self._score(value))

    def _score(self, value: Any) -> Tensor:
        if not isinstance(value, Path):
            return self._with_value(value)._log_z
        checked = self.path(value.first, value.arcs)
        return structure.path_score(self._precise, checked.first, np.array(checked.arcs, np.int64))

    def log_prob(self, value: Any) -> Tensor:
        """Return log p of a `Path`, or of a string (or pair) with all its paths."""  # [S2, WFST distribution]
        return self._batched(log_ratio(self._score(value), self._log_z))

    # --- constraints -----------------------------------------------------------------------------------------

    def constrain(self, partial: Bool[Tensor, "arcs"] | Any = None) -> Self:
        """Return only paths of allowed arcs (True), or only those that spell a string of a language.

        See the subclass.
        """
        if partial is None:
            return self
        if not isinstance(partial, Tensor):
            return self._with_language(partial)
        if partial.dtype != torch.bool or partial.shape != self.weights.shape:
            raise ScoreError(f"allowed arcs must be bool [{self.n_arcs}]; got {partial.dtype} {tuple(partial.shape)}")
        machine = self.machine
        weights = torch.where(partial, machine.weights, -INF)
        return self._like(machine.with_scores(weights, machine.initial, machine.final))

    @abstractmethod
    def _with_language(self, language: Any) -> Self:
        """Return only the paths that spell a string of this language."""

    def _shown(self) -> Sequence[Piece]:
        if self.n_states > MOST_DRAWN or not self.n_arcs:
            return super()._shown()
        picture = draw_automaton(self.arc_texts(), self.initial_states, self.final_states, self.n_states)
        return [*super()._shown(), picture]

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_states={self.n_states}, n_arcs={self.n_arcs}, backend={self.backend!r})"
