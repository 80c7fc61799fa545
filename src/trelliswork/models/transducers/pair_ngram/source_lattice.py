"""All that one source may become, with the questions that kernels answer about it; the lattice is made once for all."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from trelliswork.models.transducers.pair_ngram import lattice_kernels, search_kernels, trace_kernels
from trelliswork.models.transducers.pair_ngram.lattice_kernels import JointModel, Lattice
from trelliswork.models.transducers.pair_ngram.positions import Positions
from trelliswork.models.transducers.pins import Symbols

Array = np.ndarray[Any, Any]
MOST_EXPANSIONS = 20_000  # beginnings that are continued for one source, whatever its length
LEAST_WIDTH = 2
MOST_CELLS = 4_000_000  # source times target symbols of pairs whose alignments are all summed

Chunks = list[tuple[int, int, int, int]]


class Targets(NamedTuple):
    """The k best, the best first, with log p(target | source)."""

    best: list[tuple[Symbols, float]]
    shares: list[float]  # of each symbol of the best, given those before it
    certain: bool


NOTHING_WRITTEN = Targets([((), 0.0)], [], True)  # of nothing


class Alignment(NamedTuple):
    """The best alignment of a source and a target: chunks as (source start, source end, target start, target end)."""

    chunks: Chunks
    log_prob: float  # of the target given the source, over all alignments


class Traced(NamedTuple):
    """All alignments with one target."""

    trace: trace_kernels.Trace
    log_sums: Array  # what follows each place, over all alignments
    choice: Array  # the arc of the best


class SourceLattice:
    """The targets and alignments of one source; `symbols` are those of targets, and `place` has their numbers."""

    def __init__(
        self, joint: JointModel, symbols: Sequence[str], place: Mapping[str, int], positions: Positions
    ) -> None:
        self._joint, self._symbols, self._place, self._positions = joint, symbols, place, positions

    @cached_property
    def _summed(self) -> tuple[Lattice, float]:
        lattice = lattice_kernels.explore(self._joint, self._positions.spans)
        return lattice, lattice_kernels.sum_up(self._joint, lattice)

    @property
    def log_joint(self) -> float:
        """log p(source, pins): the sum over all targets and alignments that agree with the pins."""
        return self._summed[1]

    def top_k(self, k: int, widest: int) -> Targets:
        """The k best targets, exact if `certain`; none if no target agrees with the pins."""
        n = len(self._positions.spans)
        if not n:
            return NOTHING_WRITTEN
        if self.log_joint == -math.inf:
            return Targets([], [], True)
        widest = width_of(self._positions.places[-1], widest)
        answers = search_kernels.answer(self._joint, self._summed[0], k, widest)
        return targets_of(answers, self._symbols)[0]

    def align(self, target: Symbols) -> Alignment:
        """The best alignment with a target, and log p(target | source, pins) by all of them; -inf if there is none.

        Of pairs of more than `MOST_CELLS` source times target symbols, the alignments near the diagonal count.
        """
        # [S2, transliteration]
        found, places = self._traced(target), self._positions.places
        if found is None:
            return Alignment([], -math.inf)
        path = np.empty((places[-1], 4), np.int64)
        count = trace_kernels.best_path(self._summed[0], found.trace, found.choice, path)
        chunks = [(places[a], places[b], first, last) for a, b, first, last in path[:count].tolist()]
        return Alignment(chunks, min(float(found.log_sums[0]), 0.0))

    def posteriors(self, target: Symbols) -> Array:
        """The probability that source symbol i and target symbol j belong together, given both strings [n, m]."""
        found, table = self._traced(target), np.zeros((self._positions.places[-1], len(target)))
        if found is not None:
            trace_kernels.posteriors(self._summed[0], found.trace, found.log_sums, table)
        return table

    def _traced(self, target: Symbols) -> Traced | None:
        numbers, n_positions = [self._place.get(symbol, -1) for symbol in target], len(self._positions.spans)
        if not n_positions or -1 in numbers or self.log_joint == -math.inf:
            return None
        band = len(target)  # all alignments; of longer pairs those near the diagonal
        if not sums_all(n_positions, len(target)):
            band = MOST_CELLS // (2 * n_positions)
        lattice = self._summed[0]
        trace = trace_kernels.trace(self._joint, lattice, np.array(numbers, np.int32), band)
        n = len(trace.state)
        log_sums, best, choice = np.empty(n), np.empty(n), np.empty(n, np.int64)
        trace_kernels.follow(lattice, trace, len(target), log_sums, best, choice)
        return None if log_sums[0] == -math.inf else Traced(trace, log_sums, choice)


def width_of(n: int, widest: int) -> int:
    """Return how many beginnings of one length are continued for a source of `n` symbols."""
    return max(LEAST_WIDTH, min(widest, MOST_EXPANSIONS // n))


def targets_of(answers: search_kernels.Found, symbols: Sequence[str]) -> list[Targets]:
    """Return the targets of each source of a search."""
    names, shares = [symbols[i] for i in answers.symbols.tolist()], answers.shares.tolist()
    offsets, first = answers.offsets.tolist(), answers.first.tolist()
    best = [(tuple(names[a:b]), p) for (a, b), p in zip(pairwise(offsets), answers.log_probs.tolist(), strict=True)]
    return [
        Targets(best[a:b], shares[offsets[a] : offsets[a + 1]] if a < b else [], certain)
        for (a, b), certain in zip(pairwise(first), answers.certain.tolist(), strict=True)
    ]


def sums_all(n: int, m: int) -> bool:
    """Whether all alignments of so many source and target symbols are summed."""
    return n * m <= MOST_CELLS
