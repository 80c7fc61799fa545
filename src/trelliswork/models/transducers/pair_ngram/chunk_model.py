"""Chunk pairs and their n-grams, with the questions that kernels answer about one source."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from trelliswork.models.transducers.pair_ngram import lattice_kernels, search_kernels, trace_kernels
from trelliswork.models.transducers.pair_ngram.alignment import Aligned, ChunkPair, Symbols
from trelliswork.models.transducers.pair_ngram.lattice_kernels import JointModel
from trelliswork.models.transducers.pair_ngram.positions import Positions, pinned_positions, plain_positions
from trelliswork.models.transducers.pins import SpanPin
from trelliswork.structures.automata.ngram_arrays import NgramArrays, estimate, states_of

Array = np.ndarray[Any, Any]
MOST_EXPANSIONS = 20_000  # beginnings that are continued for one source, whatever its length
LEAST_WIDTH = 2
MOST_CELLS = 4_000_000  # source times target symbols of pairs whose alignments are all summed


Chunks = list[tuple[int, int, int, int]]


class Targets(NamedTuple):
    """The k best, the best first, with log p(target | source)."""

    best: list[tuple[Symbols, float]]
    shares: list[float]  # of each symbol of the best, given those before it
    log_z: float
    certain: bool


class Alignment(NamedTuple):
    """The best alignment of a source and a target: chunks as (source start, source end, target start, target end)."""

    chunks: Chunks
    log_prob: float  # of the target given the source, over all alignments


class ChunkModel:
    """p(source, target) as the sum over their alignments of the n-gram probabilities of chunk pairs."""

    def __init__(self, chunks: Sequence[ChunkPair], ngrams: NgramArrays) -> None:
        self.chunks, self.ngrams = list(chunks), ngrams
        self.symbols = sorted({symbol for _, target in chunks for symbol in target})
        self.place = {symbol: i for i, symbol in enumerate(self.symbols)}
        self.ranges: dict[Symbols, tuple[int, int]] = {}
        for i, (source, _) in enumerate(self.chunks):
            self.ranges[source] = (self.ranges.get(source, (i, i))[0], i + 1)
        self.longest = max(len(source) for source, _ in self.chunks)
        self.known = {symbol for source, _ in self.chunks for symbol in source}

    @classmethod
    def of(cls, aligned: Aligned, order: int) -> ChunkModel:
        """Count the n-grams of alignments. Every source symbol may also vanish, so that every source has a target."""
        symbols = {symbol for source, _ in aligned.chunks for symbol in source}
        every: set[ChunkPair] = {((symbol,), ()) for symbol in symbols}
        vanishing = every - set(aligned.chunks)
        chunks = sorted([*aligned.chunks, *vanishing])
        place = {chunk: i for i, chunk in enumerate(chunks)}
        renumbered = np.array([place[chunk] for chunk in aligned.chunks])
        ngrams = estimate([renumbered[each] for each in aligned.sequences], len(chunks), order)
        kept = ngrams._replace(prob=_rounded(ngrams.prob), backoff=_rounded(ngrams.backoff))
        return cls(chunks, kept)

    @cached_property
    def joint(self) -> JointModel:
        """The same for kernels."""
        ngrams = self.ngrams
        links = [np.append(each, 0) for each in (ngrams.word, ngrams.suffix, ngrams.state)]
        nodes = np.stack([links[0], ngrams.first, links[1], links[2]], 1).astype(np.int32)
        sizes = [len(target) for _, target in self.chunks]
        first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        written = np.array([self.place[symbol] for _, target in self.chunks for symbol in target], np.int32)
        weights = np.stack([ngrams.prob, ngrams.backoff], 1)
        return JointModel(
            nodes, weights, level_starts(ngrams), ngrams.begin, ngrams.end, first, written, len(self.symbols)
        )

    # Sources

    def positions(self, source: Symbols, pins: Sequence[SpanPin] = ()) -> Positions:
        """What alignments pass, and the chunk pairs that fit there."""

        def fitting(start: int, end: int) -> tuple[int, int]:
            return self.ranges.get(source[start:end], (0, 0))

        if not pins:
            return plain_positions(len(source), self.longest, fitting)
        return pinned_positions(len(source), self.longest, fitting, pins, lambda pair: self.chunks[pair][1])

    def top_k(self, source: Symbols, k: int, widest: int, pins: Sequence[SpanPin] = ()) -> Targets:
        """The k best targets of a source whose symbols are all known, exact if `certain`; none if no target agrees
        with the pins."""
        if not source:
            return Targets([((), 0.0)], [], 0.0, True)
        widest = max(LEAST_WIDTH, min(widest, MOST_EXPANSIONS // len(source)))
        found = search_kernels.answer(self.joint, self.positions(source, pins).spans, k, widest)
        names = [self.symbols[i] for i in found.symbols.tolist()]
        offsets = found.offsets.tolist()
        best = [(tuple(names[a:b]), p) for a, b, p in zip(offsets, offsets[1:], found.log_probs.tolist(), strict=False)]
        return Targets(best, found.shares.tolist(), found.log_z, found.certain)

    def log_joint(self, source: Symbols, pins: Sequence[SpanPin] = ()) -> float:
        """log p(source, pins): the sum over all targets and alignments that agree with the pins."""
        return self._lattice(self.positions(source, pins))[1]

    def align(self, source: Symbols, target: Symbols, pins: Sequence[SpanPin] = ()) -> Alignment:
        """The best alignment with a target, and log p(target | source, pins) by all of them; -inf if there is none.

        Of pairs of more than `MOST_CELLS` source times target symbols, the alignments near the diagonal count.
        """
        # [S2, transliteration]
        positions = self.positions(source, pins)
        trace, lattice, sums, choice = self._traced(positions, target)
        if trace is None or sums[0] == -math.inf:
            return Alignment([], -math.inf)
        path, places = np.empty((len(source), 4), np.int64), positions.places
        count = trace_kernels.best_path(lattice, trace, choice, path)
        chunks = [(places[a], places[b], first, last) for a, b, first, last in path[:count].tolist()]
        return Alignment(chunks, min(float(sums[0]), 0.0))

    def posteriors(self, source: Symbols, target: Symbols) -> Array:
        """The probability that source symbol i and target symbol j belong together, given both strings [n, m]."""
        trace, lattice, sums, _ = self._traced(self.positions(source), target)
        table = np.zeros((len(source), len(target)))
        if trace is not None and sums[0] > -math.inf:
            trace_kernels.posteriors(lattice, trace, sums, table)
        return table

    def _lattice(self, positions: Positions) -> tuple[Any, float]:
        lattice = lattice_kernels.explore(self.joint, positions.spans)
        return lattice, lattice_kernels.sum_up(self.joint, lattice)

    def _traced(self, positions: Positions, target: Symbols) -> tuple[Any, Any, Array, Array]:
        numbers, n_positions = [self.place.get(symbol, -1) for symbol in target], len(positions.spans)
        if not n_positions or -1 in numbers:
            return None, None, np.array([-math.inf]), np.empty(0)
        lattice, log_z = self._lattice(positions)
        if log_z == -math.inf:
            return None, None, np.array([-math.inf]), np.empty(0)
        band = len(target)  # all alignments; of longer pairs those near the diagonal
        if not sums_all(n_positions, len(target)):
            band = MOST_CELLS // (2 * n_positions)
        trace = trace_kernels.trace(self.joint, lattice, np.array(numbers, np.int32), band)
        n = len(trace.state)
        sums, best, choice = np.empty(n), np.empty(n), np.empty(n, np.int64)
        trace_kernels.follow(lattice, trace, len(target), sums, best, choice)
        return trace, lattice, sums, choice

    # Disk

    def arrays(self) -> dict[str, Array]:
        """What cannot be made again."""
        ngrams = self.ngrams
        return {
            "word": ngrams.word, "first": ngrams.first, "suffix": ngrams.suffix,
            "prob": ngrams.prob.astype(np.float32), "backoff": ngrams.backoff.astype(np.float32),
        }  # fmt: skip

    @classmethod
    def from_arrays(cls, chunks: Sequence[ChunkPair], arrays: Mapping[str, Array]) -> ChunkModel:
        """The inverse of `arrays`; what does not fit together is a ValueError."""
        word, first, suffix = (np.ascontiguousarray(arrays[name], np.int32) for name in ("word", "first", "suffix"))
        prob, backoff = (arrays[name].astype(np.float64) for name in ("prob", "backoff"))
        n = len(word)
        if not len(suffix) == len(prob) == len(backoff) == len(first) - 1 == n or n < len(chunks) + 3:
            raise ValueError(
                f"{len(chunks)} chunk pairs and n-gram arrays of {n}, {len(first)} and {len(prob)} numbers"
            )
        if (np.diff(first) < 0).any() or first[0] != 1 or first[-1] != n or (first[:-1] <= np.arange(n)).any():
            raise ValueError("children of n-grams that do not follow them")
        if suffix.min() < 0 or (suffix[1:] >= np.arange(1, n)).any() or word[1:].min() < 0:
            raise ValueError("suffixes of n-grams that are not before them")
        if word.max() > len(chunks) + 1 or prob.min() < 0 or prob.max() > 1 or backoff.min() < 0:
            raise ValueError("n-grams of chunk pairs that are not there, or weights that are not probabilities")
        return cls(chunks, NgramArrays(word, first, suffix, prob, backoff, states_of(first, suffix), len(chunks) + 2,
                                       len(chunks)))  # fmt: skip


def sums_all(n: int, m: int) -> bool:
    """Whether all alignments of so many source and target symbols are summed."""
    return n * m <= MOST_CELLS


def _rounded(values: Array) -> Array:
    """As they are written."""
    return values.astype(np.float32).astype(np.float64)


def level_starts(ngrams: NgramArrays) -> Array:
    """The first node of each length, and one beyond the last: the children of a length are the next one."""
    found = [0, 1]
    while found[-1] < len(ngrams.word):
        found.append(int(ngrams.first[found[-1]]))
    return np.array(found, np.int64)
