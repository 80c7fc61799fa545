"""All that one source may become, with the questions that kernels answer about it; the lattice is made once for all.

Without pins a position is a place of the source. Where a pin says that places [start, end) become some symbols, there
is a position for each place inside and each number of symbols written since `start`: chunk pairs lead from one to the
next as far as they write what the pin has, and none crosses its borders.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from trelliswork.models.transducers.pair_ngram import lattice_kernels, search_kernels, trace_kernels
from trelliswork.models.transducers.pair_ngram.lattice_kernels import JointModel, Lattice
from trelliswork.models.transducers.transducer import SpanPin, Symbols
from trelliswork.runtime.arrays import Array

Range = tuple[int, int]
LatticeNode = tuple[int, int]  # a place, and how many symbols of the pin around it are written
Fitting = Callable[[int, int], Range]  # the chunk pairs for the source symbols [start, end)


class Positions(NamedTuple):
    """`spans[i, slot]` has a range of chunk pairs that fit at position i, and the position behind them."""

    spans: Array  # int32 [position, slot, 3]; the last position of all is not listed
    places: list[int]  # of each position, the last one included


def plain_positions(n: int, longest: int, fitting: Fitting) -> Positions:
    """Return the positions of a source of `n` symbols without pins; chunks have at most `longest` of them.

    Args:
        n: Number of symbols of the source.
        longest: Largest number of symbols of a chunk.
        fitting: Chunk pairs for a range of source symbols.

    Returns:
        The positions with their chunk pairs.
    """
    rows = plain_rows(n, longest, fitting)
    return Positions(np.array(rows, np.int32).reshape(n, longest, 3), list(range(n + 1)))


def plain_rows(n: int, longest: int, fitting: Fitting) -> list[list[tuple[int, int, int]]]:
    """Return the `spans` of such a source.

    Args:
        n: Number of symbols of the source.
        longest: Largest number of symbols of a chunk.
        fitting: Chunk pairs for a range of source symbols.

    Returns:
        For each position and length of a chunk the range of its pairs, and where it leads.
    """
    return [[(*fitting(i, i + a), i + a) if i + a <= n else (0, 0, 0) for a in range(1, longest + 1)] for i in range(n)]


def pinned_positions(
    n: int, longest: int, fitting: Fitting, pins: Sequence[SpanPin], written: Callable[[int], Symbols]
) -> Positions:
    """Return the positions that agree with pins, apart and sorted; `written` has the target of a chunk pair.

    Args:
        n: Number of symbols of the source.
        longest: Largest number of symbols of a chunk.
        fitting: Chunk pairs for a range of source symbols.
        pins: Pins, sorted and disjoint.
        written: Target of a chunk pair.
    """
    nodes = list(_nodes(n, pins))
    number = {node: i for i, node in enumerate(nodes)}
    rows = [
        [(low, high, number[to]) for low, high, to in _steps(node, n, longest, fitting, pins, written)]
        for node in nodes[:-1]
    ]
    spans = np.zeros((len(rows), max(1, *map(len, rows)), 3), np.int32)
    for i, row in enumerate(rows):
        for slot, step in enumerate(row):
            spans[i, slot] = step
    return Positions(spans, [place for place, _ in nodes])


def _nodes(n: int, pins: Sequence[SpanPin]) -> Iterator[LatticeNode]:
    for place in range(n + 1):
        around = next((pin for pin in pins if pin.start < place < pin.end), None)
        for k in range(1 if around is None else len(around.symbols) + 1):
            yield place, k


def _steps(
    node: LatticeNode,
    n: int,
    longest: int,
    fitting: Fitting,
    pins: Sequence[SpanPin],
    written: Callable[[int], Symbols],
) -> Iterator[tuple[int, int, LatticeNode]]:
    """Yield ranges of chunk pairs that may follow a node, with the node behind them."""
    place, k = node
    pin = next((each for each in pins if each.start <= place < each.end), None)
    end = pin.end if pin is not None else min((each.start for each in pins if each.start > place), default=n)
    for to in range(place + 1, min(place + longest, end) + 1):
        low, high = fitting(place, to)
        if pin is None:
            yield low, high, (to, 0)
            continue
        for pair in range(low, high):
            after = k + len(written(pair))
            if written(pair) != pin.symbols[k:after]:
                continue
            if to < end or after == len(pin.symbols):
                yield pair, pair + 1, (to, after if to < end else 0)


MOST_EXPANSIONS = 20_000  # beginnings that are continued for one source, whatever its length
LEAST_WIDTH = 2
MOST_CELLS = 4_000_000  # source times target symbols of pairs whose alignments are all summed

Chunks = list[tuple[int, int, int, int]]


class BestTargets(NamedTuple):
    """The k best, the best first, with log p(target | source)."""

    best: list[tuple[Symbols, float]]
    shares: list[float]  # of each symbol of the best, given those before it
    certain: bool


NOTHING_WRITTEN = BestTargets([((), 0.0)], [], True)  # of nothing


class ChunkAlignment(NamedTuple):
    """The best alignment of a source and a target: chunks as (source start, source end, target start, target end)."""

    chunks: Chunks
    log_prob: float  # of the target given the source, over all alignments


class Traced(NamedTuple):
    """All alignments with one target."""

    trace: trace_kernels.Trace
    log_sums: Array  # what follows each place, over all alignments
    choice: Array  # the arc of the best


class SourceLattice:
    """The targets and alignments of one source; `symbols` are those of targets, and `place` has their numbers.

    Args:
        joint: Model of chunk pairs for kernels.
        symbols: Symbols of targets.
        place: Number of each of them.
        positions: Positions of the source.
    """

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

    def top_k(self, k: int, widest: int) -> BestTargets:
        """Return the k best targets, exact if `certain`; none if no target agrees with the pins."""
        n = len(self._positions.spans)
        if not n:
            return NOTHING_WRITTEN
        if self.log_joint == -math.inf:
            return BestTargets([], [], True)
        widest = width_of(self._positions.places[-1], widest)
        answers = search_kernels.answer(self._joint, self._summed[0], k, widest)
        return targets_of(answers, self._symbols)[0]

    def align(self, target: Symbols) -> ChunkAlignment:
        """Return the best alignment with a target, and log p(target | source, pins), which is -inf if there is none.

        Of pairs of more than `MOST_CELLS` source times target symbols, the alignments near the diagonal count.
        """
        # [S2, transliteration]
        traced, places = self._traced(target), self._positions.places
        if traced is None:
            return ChunkAlignment([], -math.inf)
        path = np.empty((places[-1], 4), np.int64)
        count = trace_kernels.best_path(self._summed[0], traced.trace, traced.choice, path)
        chunks = [(places[a], places[b], first, last) for a, b, first, last in path[:count].tolist()]
        return ChunkAlignment(chunks, min(float(traced.log_sums[0]), 0.0))

    def posteriors(self, target: Symbols) -> Array:
        """Return the probability [n, m] that source symbol i and target symbol j belong together, given both."""
        traced, table = self._traced(target), np.zeros((self._positions.places[-1], len(target)))
        if traced is not None:
            trace_kernels.posteriors(self._summed[0], traced.trace, traced.log_sums, table)
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


def targets_of(answers: search_kernels.TargetArrays, symbols: Sequence[str]) -> list[BestTargets]:
    """Return the targets of each source of a search."""
    names, shares = [symbols[i] for i in answers.symbols.tolist()], answers.shares.tolist()
    offsets, first = answers.offsets.tolist(), answers.first.tolist()
    best = [(tuple(names[a:b]), p) for (a, b), p in zip(pairwise(offsets), answers.log_probs.tolist(), strict=True)]
    return [
        BestTargets(best[a:b], shares[offsets[a] : offsets[a + 1]] if a < b else [], certain)
        for (a, b), certain in zip(pairwise(first), answers.certain.tolist(), strict=True)
    ]


def sums_all(n: int, m: int) -> bool:
    """Return whether all alignments of `n` source and `m` target symbols are summed."""
    return n * m <= MOST_CELLS
