"""Answers of attention models: beams, samples, constraints, and the alignment of what is written."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from trelliswork.data import Sentence
from trelliswork.data.subwords import BytePairs, join_pieces, spans
from trelliswork.metrics.strings import edit_distances
from trelliswork.models.base import PartProbability
from trelliswork.models.transducers.config import AttentionConfig
from trelliswork.models.transducers.network import EncodedPair, PairNetwork
from trelliswork.models.transducers.transducer import Symbols, Transduced
from trelliswork.nn.decoders.base import Decoder, Unrolled
from trelliswork.nn.decoders.constraints import Constraint
from trelliswork.nn.decoders.generation import COVERED, Generation
from trelliswork.runtime.arrays import Bool, Float, Int
from trelliswork.structures.beam.ranking import coverage_penalty, length_penalty, ranked_beam_search
from trelliswork.structures.beam.search import Hypotheses, sample

ROWS = 400  # hypotheses that are continued at a time
LONGEST = 3.0  # symbols of a target for each one of its source, where no training has said better
BEYOND = 5  # symbols that are added to the length of a source
BEGIN, END = 1, 2  # places in target vocabularies
WrittenTarget = tuple[tuple[int, ...], float]  # pieces of a target, and its log probability


@dataclass(frozen=True)
class ReadSources:
    """Sources that were read: what the decoder attends to, where there are symbols, and what may be copied."""

    memory: object  # of the decoder
    mask: Bool[Tensor, "batch n"]
    places: Int[Tensor, "batch n"] | None
    symbols: Sequence[Symbols]
    copy_keys: Float[Tensor, "batch n h"] | None = None  # what the scores of copies depend on, in a joint softmax


# Symbols as the network reads and writes them: as they are, or words cut into subwords.


class Pieces:
    """Cuts symbols into pieces, and joins them; without merges each symbol is its own piece."""

    def __init__(self, pairs: BytePairs | None = None) -> None:
        self.pairs = pairs

    @classmethod
    def learned(cls, train: Sequence[Sentence], n_merges: int) -> Pieces:
        """Learn merges of both sides together, so that names and numbers are cut alike."""
        if not n_merges:
            return cls()
        counts = Counter(word for pair in train for side in (pair.words, pair.target or ()) for word in side)
        return cls(BytePairs.learn(counts, n_merges))

    @classmethod
    def from_stored(cls, merges: Sequence[str]) -> Pieces:
        """Invert `stored`."""
        if not merges:
            return cls()
        return cls(BytePairs([(left, right) for left, right in (each.split(" ") for each in merges)]))

    def stored(self) -> list[str]:
        """Return plain values; pieces have no blanks."""
        return [] if self.pairs is None else [" ".join(pair) for pair in self.pairs.merges]

    def cut(self, symbols: Symbols) -> Symbols:
        return symbols if self.pairs is None else self.pairs.cut_all(symbols)

    def join(self, pieces: Symbols) -> Symbols:
        return pieces if self.pairs is None else join_pieces(pieces)

    def places(self, pieces: Symbols) -> list[range]:
        """Return the places of the pieces of each symbol."""
        return [range(i, i + 1) for i in range(len(pieces))] if self.pairs is None else spans(pieces)


class SourceGenerator:
    """A network that has read some sources, as generation asks for it."""

    def __init__(self, network: AttentionSearch, read: ReadSources) -> None:
        self.network, self.read = network, read
        self.decoder = network.decoder
        self.n_outputs = len(network.target) + (0 if read.places is None else read.places.shape[1])

    def embed(self, symbols: Int[Tensor, "batch beam"]) -> Float[Tensor, "batch beam e"]:
        return self.network.embed(symbols)

    def next_log_probs(self, hidden: Tensor, weights: Tensor) -> Float[Tensor, "batch beam v"]:
        return self.network.symbol_log_probs(self.read, Unrolled(hidden, weights))


class AttentionSearch(PairNetwork):
    """Answers of an attention network; a subclass reads sources and scores targets."""

    config: AttentionConfig
    decoder: Decoder
    pieces: Pieces
    own_share: float  # of symbols that the decoder reads from itself, in scheduled sampling
    constraint: Callable[[Sequence[Symbols]], Constraint] | None = None  # made for each batch of sources

    @abstractmethod
    def read(self, pairs: Sequence[EncodedPair]) -> ReadSources:
        """Encode sources, and compute what is the same for all steps of the decoder."""

    @abstractmethod
    def embed(self, symbols: Int[Tensor, "batch t"]) -> Float[Tensor, "batch t e"]:
        """Return the vectors of target symbols; those that were copied are unknown."""

    @abstractmethod
    def given(self, pairs: Sequence[EncodedPair]) -> tuple[Tensor, Tensor, Bool[Tensor, "batch t"]]:
        """Return what the decoder reads and should write, [batch, t], and a mask that is False for padding."""

    @abstractmethod
    def symbol_log_probs(self, read: ReadSources, unrolled: Unrolled) -> Float[Tensor, "batch t v"]:
        """Return ln p of every symbol after each step; unknown symbols and the begin are never written."""

    @abstractmethod
    def target_log_probs(
        self, read: ReadSources, unrolled: Unrolled, outputs: Int[Tensor, "batch t"]
    ) -> Float[Tensor, "batch t"]:
        """Return ln p of each symbol of given targets.

        Args:
            read: Sources as the encoder has read them.
            unrolled: The decoder over the targets.
            outputs: Symbols of the targets.

        Returns:
            One log probability for each symbol.
        """

    @abstractmethod
    def target_loss(
        self, read: ReadSources, unrolled: Unrolled, outputs: Int[Tensor, "batch t"], mask: Bool[Tensor, "batch t"]
    ) -> Float[Tensor, ""]:
        """Return the loss of the output layer, summed over all targets.

        Args:
            read: Sources as the encoder has read them.
            unrolled: The decoder over the targets.
            outputs: Symbols of the targets.
            mask: True at symbols that are no padding.

        Returns:
            A scalar.
        """

    def transduced(self, batch: Sequence[Symbols], top_k: int, sure: bool) -> list[Transduced]:
        """Return the best of a beam; as many as it has of the `top_k` best."""
        pairs = self.encode([Sentence(symbols) for symbols in batch])
        size, answers = max(1, ROWS // self.config.beam), list[Transduced]()
        for i in range(0, len(pairs), size):
            chunk = pairs[i : i + size]
            written = self._chosen(chunk)
            best = [self._strings(pair, each)[:top_k] for pair, each in zip(chunk, written, strict=True)]
            parts = self._parts(chunk, [each[0][0] for each in written]) if sure else [[] for _ in chunk]
            answers += [Transduced(*each) for each in zip(best, parts, strict=True)]
        return answers

    def generation(self, pairs: Sequence[EncodedPair], read: ReadSources) -> Generation:
        """Return the generation of all targets that may be written."""
        n = torch.tensor([len(pair.source) for pair in pairs], device=self.device)
        limits = torch.ceil((self.config.longest or LONGEST) * (n + BEYOND)).long()
        limits = limits.clamp(1, self.config.max_target or None)
        constraint = None if self.constraint is None else self.constraint([pair.symbols for pair in pairs])
        model = SourceGenerator(self, read)
        return Generation(model, read.memory, begin=BEGIN, end=END, limits=limits, constraint=constraint)

    def written(self, pairs: Sequence[EncodedPair]) -> list[list[WrittenTarget]]:
        """Return the hypotheses of the beam, best first."""
        read = self.read(pairs)
        generation = self.generation(pairs, read)
        rank = length_penalty(self.config.length_penalty)
        hypotheses = ranked_beam_search(generation, generation.score, self.config.beam, rank)
        keys = rank(hypotheses.scores.double(), hypotheses.lengths)
        if self.config.coverage_penalty:
            keys = keys + coverage_penalty(hypotheses.state[COVERED], read.mask, self.config.coverage_penalty)
        return _ordered(hypotheses, keys)

    def samples(
        self,
        pairs: Sequence[EncodedPair],
        n_samples: int,
        *,
        change: Callable[[Tensor], Tensor] | None = None,
        generator: torch.Generator | None = None,
    ) -> list[list[WrittenTarget]]:
        """Return independent targets; `change` may alter the distribution, as those of `nn.decoders.truncation` do.

        Probabilities are those of what was drawn from.

        Args:
            pairs: Encoded sources.
            n_samples: Number of targets of each source.
            change: Function that alters log probabilities, [batch, beam, v].
            generator: Source of random numbers.

        Returns:
            Pieces and log probability of each target.
        """
        generation = self.generation(pairs, self.read(pairs))

        def score(state: tuple[Tensor, ...]) -> Tensor:
            scores = generation.score(state)
            return scores if change is None else change(scores)

        return _ordered(sample(generation, score, n_samples, generator=generator), None)

    def _chosen(self, pairs: Sequence[EncodedPair]) -> list[list[WrittenTarget]]:
        """Return the hypotheses of the beam, or for minimum risk the targets that agree best with all samples."""
        if self.config.decoding == "beam":
            return self.written(pairs)
        samples = self.samples(pairs, self.config.n_candidates, generator=torch.Generator().manual_seed(0))
        return [by_agreement(each) for each in samples]

    def _strings(self, pair: EncodedPair, written: Sequence[WrittenTarget]) -> list[tuple[Symbols, float]]:
        """Return targets as symbols, none twice: subwords may spell one word in several ways."""
        log_probs: dict[Symbols, float] = {}
        for pieces, log_p in written:
            log_probs.setdefault(self.pieces.join(self.spelled(pair, pieces)), log_p)
        return list(log_probs.items())

    def spelled(self, pair: EncodedPair, pieces: Sequence[int]) -> Symbols:
        """Return the pieces of a target; those beyond the vocabulary were copied."""
        v = len(self.target)
        return tuple(self.target[i] if i < v else pair.symbols[i - v] for i in pieces)

    def _parts(self, pairs: Sequence[EncodedPair], best: Sequence[tuple[int, ...]]) -> list[list[PartProbability]]:
        """Return each symbol with the source position that it attends to most, and its probability."""
        known = [
            EncodedPair(pair.source, torch.tensor(pieces, dtype=torch.long), pair.symbols)
            for pair, pieces in zip(pairs, best, strict=True)
        ]
        read = self.read(known)
        inputs, outputs, _ = self.given(known)
        unrolled = self.decoder(read.memory, self.embed(inputs))
        log_probs = self.target_log_probs(read, unrolled, outputs)
        rows = zip(known, best, unrolled.weights, log_probs.tolist(), strict=True)
        return [self._aligned(pair, pieces, weights, log_p) for pair, pieces, weights, log_p in rows]

    def _aligned(
        self, pair: EncodedPair, pieces: Sequence[int], weights: Float[Tensor, "t n"], log_p: Sequence[float]
    ) -> list[PartProbability]:
        spelled, sources = self.spelled(pair, pieces), self.pieces.places(pair.symbols)
        owners = torch.tensor([i for i, place in enumerate(sources) for _ in place])
        n = len(pair.symbols)
        by_symbol = weights.new_zeros(len(weights), len(sources)).index_add(1, owners, weights[:, :n])
        symbols = self.pieces.join(spelled)
        parts = []
        for symbol, place in zip(symbols, self.pieces.places(spelled), strict=True):
            start = int(by_symbol[place.start : place.stop].sum(0).argmax())
            probability = math.exp(sum(log_p[place.start : place.stop]))
            parts.append(PartProbability(start, start + 1, symbol, probability))
        return parts


def _ordered(hypotheses: Hypotheses[tuple[Tensor, ...]], keys: Tensor | None) -> list[list[WrittenTarget]]:
    """Return hypotheses as plain values, by falling keys, without the end."""
    results = []
    for row in range(len(hypotheses.scores)):
        order = list(range(hypotheses.scores.shape[1]))
        if keys is not None:
            order = torch.argsort(keys[row], descending=True, stable=True).tolist()
        decisions, scores = hypotheses.decisions[row].tolist(), hypotheses.scores[row].tolist()
        kept = [(decisions[i], scores[i]) for i in order if scores[i] > -math.inf]
        results.append([(tuple(d for d in each if d not in (-1, END)), score) for each, score in kept])
    return results


# Minimum Bayes risk: the answer that agrees best with all that the model might say.


Symbol = TypeVar("Symbol", bound=Hashable)
Utility = Callable[[Sequence[tuple[Sequence[object], Sequence[object]]]], list[float]]
Sample = tuple[tuple[Symbol, ...], float]


def similarity(pairs: Sequence[tuple[Sequence[object], Sequence[object]]]) -> list[float]:
    """Return 1 - edit distance / length of the longer one, for pairs of strings.

    >>> similarity([("abcd", "abd"), ("", "")])
    [0.75, 1.0]
    """
    distances = edit_distances([(tuple(map(str, a)), tuple(map(str, b))) for a, b in pairs])
    return [1 - d / max(len(a), len(b), 1) for d, (a, b) in zip(distances, pairs, strict=True)]


def by_agreement(samples: Sequence[Sample[Symbol]], utility: Utility = similarity) -> list[Sample[Symbol]]:
    """Return the different samples, those with the highest mean utility against all samples first.

    A sample that was drawn twice counts twice. Ties keep the order in which they were drawn.

    Kumar and Byrne (2004), Minimum Bayes-risk decoding for statistical machine translation; Eikema and Aziz (2020), Is
    MAP decoding all you need?

    >>> [string for string, _ in by_agreement([(("b",), -1.0), (("a", "b"), -2.0), (("a", "b"), -2.0)])]
    [('a', 'b'), ('b',)]
    """
    different: dict[tuple[Symbol, ...], float] = {}
    for string, log_p in samples:
        different.setdefault(string, log_p)
    strings = list(different)
    gains = utility([(mine, other) for mine in strings for other, _ in samples])
    n = len(samples)
    means = [sum(gains[i * n : (i + 1) * n]) / n for i in range(len(strings))]
    order = sorted(range(len(strings)), key=lambda i: -means[i])
    return [(strings[i], different[strings[i]]) for i in order]
