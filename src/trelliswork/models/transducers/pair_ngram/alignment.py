"""From pairs of strings to sequences of chunk pairs: many-to-many alignment by expectation maximisation.

Jiampojamarn, Kondrak and Sherif (2007), Applying many-to-many alignments and hidden Markov models to letter-to-phoneme
conversion. Unlike there, no target symbol stands alone: it belongs to a chunk that has a source symbol.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from trelliswork.models.transducers.pair_ngram import alignment_kernels as kernels
from trelliswork.models.transducers.pair_ngram.alignment_kernels import EMPTY, ChunkedPairs
from trelliswork.models.transducers.transducer import Symbols
from trelliswork.runtime.arrays import Array

StringPair = tuple[Symbols, Symbols]
ChunkPair = tuple[Symbols, Symbols]
LEAST_GAIN = 1e-4  # of the mean log-likelihood, for a further iteration


class ChunkLimits(NamedTuple):
    """Maximum sizes of chunks."""

    source: int = 2
    target: int = 2
    both: bool = False  # whether both sides of a chunk pair may have several symbols

    def covers(self, pair: StringPair) -> bool:
        """Return whether a pair can be aligned: source symbols may vanish, target symbols must come from somewhere."""
        return 0 < len(pair[1]) <= self.target * len(pair[0])


class AlignedPairs(NamedTuple):
    """Sequences of numbers of chunk pairs, and the chunk pairs."""

    sequences: list[Array]
    chunks: list[ChunkPair]
    log_likelihoods: list[float]  # mean of a pair, after each iteration


def align(pairs: Sequence[StringPair], limits: ChunkLimits, iterations: int, penalty: float) -> AlignedPairs:
    """Return the best alignment of each pair; chunks grow beyond the limits where these do not cover a pair.

    `penalty` is the exponent of a chunk pair's probability for each symbol beyond one on either side: without it,
    alignments of few long chunks would always be the best.

    Args:
        pairs: Sources and targets.
        limits: Longest chunks.
        iterations: Largest number of iterations.
        penalty: Length penalty of chunks.

    Returns:
        Sequences of numbers of chunk pairs, the chunk pairs, and the log-likelihoods.
    """
    sources, targets = (
        _Chunks([x for x, _ in pairs], limits.source),
        _Chunks([y for _, y in pairs], max([limits.target, *(needed(pair) for pair in pairs)])),
    )
    chunked = ChunkedPairs(
        sources.numbers, sources.offsets, np.pad(targets.numbers + 1, ((0, 0), (1, 0))),
        targets.offsets, np.full(len(pairs), limits.source, np.int32),
        np.array([max(limits.target, needed(pair)) for pair in pairs], np.int32), len(targets.names) + 1, limits.both,
    )  # fmt: skip
    keys, scores, history = _maximised(chunked, iterations, _sizes(sources, targets, penalty))
    steps, lengths = np.empty(len(sources.numbers), np.int64), np.zeros(len(pairs), np.int64)
    kernels.best_alignments(chunked, keys, scores, steps, lengths)
    taken = np.concatenate([steps[o : o + n] for o, n in zip(sources.offsets[:-1], lengths, strict=True)])
    used, flat = np.unique(keys[taken], return_inverse=True)
    chunks = [(sources.names[k // chunked.n_targets], ((), *targets.names)[k % chunked.n_targets]) for k in used]
    return AlignedPairs(np.split(flat, np.cumsum(lengths)[:-1]), chunks, history)


def needed(pair: StringPair) -> int:
    """Return the shortest longest target chunk with which a pair can be aligned."""
    return -(-len(pair[1]) // len(pair[0]))


class _Chunks:
    """All chunks of strings up to a length, numbered."""

    def __init__(self, strings: Sequence[Symbols], longest: int) -> None:
        symbols = sorted(set(chain.from_iterable(strings)))
        place = {symbol: i for i, symbol in enumerate(symbols)}
        lengths = np.array([len(each) for each in strings])
        self.offsets = np.concatenate([[0], np.cumsum(lengths)])
        flat = np.fromiter((place[each] for each in chain.from_iterable(strings)), np.int64, int(self.offsets[-1]))
        ends = np.repeat(self.offsets[1:], lengths)
        at = np.arange(len(flat))
        self.numbers = np.full((len(flat), longest), -1, np.int32)
        self.names: list[Symbols] = [(symbol,) for symbol in symbols]
        self.numbers[:, 0] = flat
        for length in range(2, longest + 1):
            inside = np.flatnonzero(at + length <= ends)
            keys = self.numbers[inside, length - 2].astype(np.int64) * len(symbols) + flat[inside + length - 1]
            keys_used, inverse = np.unique(keys, return_inverse=True)
            self.numbers[inside, length - 1] = inverse + len(self.names)
            before = self.names
            self.names = [*before, *((*before[key // len(symbols)], symbols[key % len(symbols)]) for key in keys_used)]


def _sizes(sources: _Chunks, targets: _Chunks, penalty: float) -> tuple[Array, Array]:
    """Return by how much each chunk is longer than one symbol, times the penalty."""
    a = np.array([len(each) - 1 for each in sources.names])
    b = np.array([0, *(len(each) - 1 for each in targets.names)])
    return penalty * a, penalty * b


def _maximised(pairs: ChunkedPairs, iterations: int, sizes: tuple[Array, Array]) -> tuple[Array, Array, list[float]]:
    """Return the table of chunk pairs, their scores, and the mean log-likelihood after each iteration."""
    keys = _table(pairs)
    used = np.flatnonzero(keys != EMPTY)
    power = 1.0 + sizes[0][keys[used] // pairs.n_targets] + sizes[1][keys[used] % pairs.n_targets]
    scores = np.zeros(len(keys))
    scores[used] = -np.log(len(used)) * power
    history: list[float] = []
    for _ in range(iterations):
        counts = np.zeros(len(keys))
        history.append(kernels.expected_counts(pairs, keys, scores, counts) / len(pairs.longest_source))
        with np.errstate(divide="ignore"):
            scores[used] = np.log(counts[used] / counts.sum()) * power
        if len(history) > 1 and history[-1] - history[-2] < LEAST_GAIN * abs(history[-1]):
            break
    return keys, scores, history


def _table(pairs: ChunkedPairs) -> Array:
    """Return an open-addressing table of all chunk pairs, at most half full."""
    size = 1 << 16
    while True:
        keys = np.full(size, EMPTY, np.int64)
        if kernels.enter_keys(pairs, keys) >= 0:
            return keys
        size *= 4
