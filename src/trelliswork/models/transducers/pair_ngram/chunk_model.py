"""Chunk pairs and their n-grams."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from trelliswork.models.transducers.pair_ngram.alignment import AlignedPairs, ChunkPair
from trelliswork.models.transducers.pair_ngram.lattice_kernels import JointModel
from trelliswork.models.transducers.pair_ngram.search_kernels import answer_all
from trelliswork.models.transducers.pair_ngram.source_lattice import (
    NOTHING_WRITTEN,
    BestTargets,
    Chunks,
    Fitting,
    SourceLattice,
    pinned_positions,
    plain_positions,
    plain_rows,
    targets_of,
    width_of,
)
from trelliswork.models.transducers.transducer import SpanPin, Symbols
from trelliswork.runtime.arrays import Array
from trelliswork.structures.automata.ngram_arrays import NgramArrays, estimate, states_of


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
    def of(cls, aligned: AlignedPairs, order: int) -> ChunkModel:
        """Count the n-grams of alignments. Every source symbol may also vanish, so that every source has a target."""
        symbols = {symbol for source, _ in aligned.chunks for symbol in source}
        every: set[ChunkPair] = {((symbol,), ()) for symbol in symbols}
        vanishing = every - set(aligned.chunks)
        chunks = sorted([*aligned.chunks, *vanishing])
        place = {chunk: i for i, chunk in enumerate(chunks)}
        renumbered = np.array([place[chunk] for chunk in aligned.chunks])
        ngrams = estimate([renumbered[each] for each in aligned.sequences], len(chunks), order)
        kept = _rounded(ngrams)
        return cls(chunks, kept)

    @cached_property
    def joint(self) -> JointModel:
        """The same for kernels."""
        ngrams = self.ngrams
        links = [np.append(each, 0) for each in (ngrams.word, ngrams.suffix, states_of(ngrams))]
        nodes = np.stack([links[0], ngrams.first, links[1], links[2]], 1).astype(np.int32)
        sizes = [len(target) for _, target in self.chunks]
        first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        written = np.array([self.place[symbol] for _, target in self.chunks for symbol in target], np.int32)
        weights = np.exp(np.stack([ngrams.log_prob, ngrams.log_backoff], 1))
        return JointModel(nodes, weights, ngrams.starts, ngrams.begin, ngrams.end, first, written, len(self.symbols))

    def lattice(self, source: Symbols, pins: Sequence[SpanPin] = ()) -> SourceLattice:
        """Return all that a source whose symbols are all known may become, as far as it agrees with the pins."""
        fitting = self._fitting(source)
        if not pins:
            positions = plain_positions(len(source), self.longest, fitting)
        else:
            positions = pinned_positions(len(source), self.longest, fitting, pins, lambda pair: self.chunks[pair][1])
        return SourceLattice(self.joint, self.symbols, self.place, positions)

    def _fitting(self, source: Symbols) -> Fitting:
        """Return the chunk pairs that fit between two places of a source."""
        return lambda start, end: self.ranges.get(source[start:end], (0, 0))

    def targets(self, sources: Sequence[Symbols], k: int, widest: int) -> list[BestTargets]:
        """Return the k best targets of sources with known symbols, as `SourceLattice.top_k` has them, in one call.

        Args:
            sources: Symbols of each source.
            k: Number of targets of each source.
            widest: Largest number of prefixes of a length that are continued.

        Returns:
            The targets of each source, best first.
        """
        asked = [source for source in sources if source]
        rows = [row for source in asked for row in plain_rows(len(source), self.longest, self._fitting(source))]
        first = np.cumsum([0, *map(len, asked)])
        spans = np.array(rows, np.int32).reshape(len(rows), self.longest, 3)
        widths = np.array([width_of(len(source), widest) for source in asked], np.int64)
        answered = iter(targets_of(answer_all(self.joint, spans, first, k, widths), self.symbols))
        return [next(answered) if source else NOTHING_WRITTEN for source in sources]

    # Disk

    def arrays(self) -> dict[str, Array]:
        """Return the arrays that a folder keeps; all others are computed from them."""
        ngrams = self.ngrams
        return {
            "word": ngrams.word, "first": ngrams.first, "suffix": ngrams.suffix,
            "prob": _prob(ngrams.log_prob), "backoff": _prob(ngrams.log_backoff),
        }  # fmt: skip

    @classmethod
    def from_arrays(cls, chunks: Sequence[ChunkPair], arrays: Mapping[str, Array]) -> ChunkModel:
        """Invert `arrays`; what does not fit together is a ValueError."""
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
        return cls(chunks, NgramArrays(word, first, suffix, _log(prob), _log(backoff), len(chunks)))


def _rounded(ngrams: NgramArrays) -> NgramArrays:
    """Return n-grams rounded as they are written."""
    return ngrams._replace(log_prob=_log(_prob(ngrams.log_prob)), log_backoff=_log(_prob(ngrams.log_backoff)))


def _prob(logs: Array) -> Array:
    return np.exp(logs).astype(np.float32)


def _log(values: Array) -> Array:
    with np.errstate(divide="ignore"):
        logs: Array = np.log(values.astype(np.float64))
    return logs


# Choices for each piece of a source, with the exact probability of each target of the piece.


MOST_TRIED = 60  # targets of a piece, by their chunk pairs alone; all the others together are the rest


class PieceChoices(NamedTuple):
    """Source symbols [start, end), and what they may become with the probability of each, the most probable first.

    The pieces are those of the best alignment of the best target. That a piece becomes some symbols is a pin, so that
    its probability is the sum over all alignments that agree with the pin, as a share of the sum over all of them.
    """

    start: int
    end: int
    shares: list[tuple[Symbols, float]]


def piece_choices(
    model: ChunkModel, source: Symbols, pins: Sequence[SpanPin], lattice: SourceLattice, target: Symbols
) -> list[PieceChoices]:
    """Return the choices of each piece given the pins; `lattice` is that of both, cut as the `target`; what is missing
    to 1 is that the source is cut elsewhere.

    Args:
        model: Chunk pairs and their n-grams.
        source: Source symbols, all of them known.
        pins: Pins of the source.
        lattice: Lattice of the source and the pins.
        target: Best target.
    """
    pinned, choices = {(pin.start, pin.end): pin.symbols for pin in pins}, []
    for start, end, written in _pieces(lattice.align(target).chunks, target, pins):
        shares = dict.fromkeys([written, *_targets(model, source[start:end])], 0.0)
        if (start, end) in pinned:
            shares[pinned[start, end]] = 1.0
        else:
            for symbols in shares:
                known = sorted([*pins, SpanPin(start, end, symbols)])
                shares[symbols] = min(math.exp(model.lattice(source, known).log_joint - lattice.log_joint), 1.0)
        choices.append(PieceChoices(start, end, sorted(shares.items(), key=lambda each: -each[1])))
    return choices


def _pieces(chunks: Chunks, target: Symbols, pins: Sequence[SpanPin]) -> Iterator[tuple[int, int, Symbols]]:
    """Yield the source of each chunk and what it becomes; what is pinned together is one piece."""
    for start, end, first, last in chunks:
        pin = next((each for each in pins if each.start <= start and end <= each.end), None)
        if pin is None:
            yield start, end, target[first:last]
        elif pin.start == start:
            yield pin.start, pin.end, pin.symbols


def _targets(model: ChunkModel, source: Symbols) -> list[Symbols]:
    """Return the targets that chunk pairs make of a piece with the highest probability without a context."""
    made: list[dict[Symbols, float]] = [{(): 1.0}]  # of its first symbols, as many as the place in the list
    for end in range(1, len(source) + 1):
        here: dict[Symbols, float] = {}
        for start in range(max(0, end - model.longest), end):
            for pair in range(*model.ranges.get(source[start:end], (0, 0))):
                weight = math.exp(model.ngrams.log_prob[pair + 1])
                for before, share in made[start].items():
                    symbols = before + model.chunks[pair][1]
                    here[symbols] = max(here.get(symbols, 0.0), share * weight)
        made.append(dict(sorted(here.items(), key=lambda each: -each[1])[:MOST_TRIED]))
    return list(made[-1])
