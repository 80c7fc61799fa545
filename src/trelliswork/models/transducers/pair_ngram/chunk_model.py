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
from trelliswork.structures.automata.ngram_arrays import NgramArrays, estimate, states_of

Array = np.ndarray[Any, Any]
MOST_EXPANSIONS = 100_000  # beginnings that are continued for one source, whatever its length
LEAST_WIDTH = 10
MOST_CELLS = 4_000_000  # source times target symbols of pairs whose alignments are all summed


class Targets(NamedTuple):
    """The k best, the best first, with log p(target | source)."""

    best: list[tuple[Symbols, float]]
    shares: list[float]  # of each symbol of the best, given those before it
    log_z: float
    certain: bool


class Alignment(NamedTuple):
    """The best alignment of a source and a target: chunks as (source start, source end, target start, target end)."""

    chunks: list[tuple[int, int, int, int]]
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
        return JointModel(nodes, weights, _levels(ngrams), ngrams.begin, ngrams.end, first, written, len(self.symbols))

    # Sources

    def spans(self, source: Symbols) -> Array:
        """The chunk pairs that fit at each position, by the number of source symbols [n, longest, 2]."""
        found = np.zeros((len(source), self.longest, 2), np.int32)
        for i in range(len(source)):
            for a in range(1, min(self.longest, len(source) - i) + 1):
                span = self.ranges.get(source[i : i + a])
                if span is not None:
                    found[i, a - 1] = span
        return found

    def top_k(self, source: Symbols, k: int, widest: int) -> Targets:
        """The k best targets of a source whose symbols are all known, exact if `certain`."""
        if not source:
            return Targets([((), 0.0)], [], 0.0, True)
        widest = max(LEAST_WIDTH, min(widest, MOST_EXPANSIONS // len(source)))
        found = search_kernels.answer(self.joint, self.spans(source), k, widest)
        names = [self.symbols[i] for i in found.symbols.tolist()]
        offsets = found.offsets.tolist()
        best = [(tuple(names[a:b]), p) for a, b, p in zip(offsets, offsets[1:], found.log_probs.tolist(), strict=False)]
        return Targets(best, found.shares.tolist(), found.log_z, found.certain)

    def log_joint(self, source: Symbols) -> float:
        """log p(source): the sum over all targets and alignments."""
        _, log_z = self._lattice(source)
        return log_z

    def align(self, source: Symbols, target: Symbols) -> Alignment:
        """The best alignment with a target, and log p(target | source) by all of them; -inf if there is none.

        Of pairs of more than `MOST_CELLS` source times target symbols, the alignments near the diagonal count.
        """
        # [S2, transliteration]
        trace, lattice, sums, choice = self._traced(source, target)
        if trace is None or sums[0] == -math.inf:
            return Alignment([], -math.inf)
        path = np.empty((len(source), 4), np.int64)
        count = trace_kernels.best_path(lattice, trace, choice, path)
        return Alignment([tuple(row) for row in path[:count].tolist()], min(float(sums[0]), 0.0))

    def posteriors(self, source: Symbols, target: Symbols) -> Array:
        """The probability that source symbol i and target symbol j belong together, given both strings [n, m]."""
        trace, lattice, sums, _ = self._traced(source, target)
        table = np.zeros((len(source), len(target)))
        if trace is not None and sums[0] > -math.inf:
            trace_kernels.posteriors(lattice, trace, sums, table)
        return table

    def _lattice(self, source: Symbols) -> tuple[Any, float]:
        lattice = lattice_kernels.explore(self.joint, self.spans(source))
        return lattice, lattice_kernels.sum_up(self.joint, lattice)

    def _traced(self, source: Symbols, target: Symbols) -> tuple[Any, Any, Array, Array]:
        numbers = [self.place.get(symbol, -1) for symbol in target]
        if not source or -1 in numbers:
            return None, None, np.array([-math.inf]), np.empty(0)
        lattice, _ = self._lattice(source)
        band = len(target)  # all alignments; of longer pairs those near the diagonal
        if len(source) * len(target) > MOST_CELLS:
            band = MOST_CELLS // (2 * len(source))
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


def _rounded(values: Array) -> Array:
    """As they are written."""
    return values.astype(np.float32).astype(np.float64)


def _levels(ngrams: NgramArrays) -> Array:
    """The first node of each length, and one beyond the last: the children of a length are the next one."""
    found = [0, 1]
    while found[-1] < len(ngrams.word):
        found.append(int(ngrams.first[found[-1]]))
    return np.array(found, np.int64)
