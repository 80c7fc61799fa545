"""A pair n-gram: from strings to strings by n-grams of chunk pairs, such as (ph, F) or (x, K S).

    >>> model = PairNgram.fit(train_pairs)                                  # doctest: +SKIP
    >>> model.predict("phoenix", top_k=2)[0].value                          # doctest: +SKIP
    'F IY N IH K S'

Pairs are aligned by expectation maximisation. Alignments are sequences of chunk pairs, whose n-grams are counted and
smoothed. p(target | source) is the sum over all alignments of both, as a share of the sum over all targets: exact, and
so are the k best targets.

Galescu and Allen (2001), Bi-directional conversion between graphemes and phonemes using a joint n-gram model; Bisani
and Ney (2008), Joint-sequence models for grapheme-to-phoneme conversion; Novak, Minematsu and Hirose (2016),
Phonetisaurus: exploring grapheme-to-phoneme conversion with joint n-gram models in the WFST framework.
"""  # [S2, transliteration]

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from html import escape
from pathlib import Path
from typing import ClassVar, Self

import numpy as np

from trelliswork.data import PairFormat, Sentence
from trelliswork.errors import ConstraintError, DataError, ModelError, TrellisworkError
from trelliswork.logs import count
from trelliswork.models.base import Description, PartProbability, Readable
from trelliswork.models.export_folder import model_card
from trelliswork.models.loading import with_kept
from trelliswork.models.part_choices import PartChoices, entropy_bits
from trelliswork.models.storage import StoredModel, read_model, write_model
from trelliswork.models.transducers.config import PairNgramConfig
from trelliswork.models.transducers.pair_ngram.alignment import ChunkLimits, StringPair, align, needed
from trelliswork.models.transducers.pair_ngram.chunk_model import ChunkModel, piece_choices
from trelliswork.models.transducers.pair_ngram.source_lattice import BestTargets, Chunks, SourceLattice, sums_all
from trelliswork.models.transducers.transducer import (
    NOTHING,
    Pins,
    SpanPin,
    Symbols,
    Transduced,
    Transducer,
    span_pins,
    within,
)

MOST_SHOWN = 5  # targets of an explanation
LEAST_SHOWN = 0.001  # probability of one
LONGEST_PAIR = 4_000_000  # source times target symbols of a pair that is learned from
EASY = 20  # symbols of a source whose targets are searched to the end


class PairNgram(Transducer):
    """Chunk pairs with their n-grams, and the answers made of them.

    Args:
        config: settings.
        format: How texts are cut into symbols.
        model: N-grams of chunk pairs.
    """

    explains, supports_ensembling, supports_pins = True, True, True
    without_twin = "passed over"

    def __init__(self, config: PairNgramConfig, format: PairFormat, model: ChunkModel) -> None:
        self.config, self.format, self.model = config, format, model
        self.metrics = {}
        self.learned: list[str] = []  # what is worth knowing about the pairs that it was learned from

    @classmethod
    def fit(
        cls, train: Sequence[Sentence], config: PairNgramConfig | None = None, *, format: PairFormat | None = None
    ) -> Self:
        """Learn from pairs; those that the chunks cannot cover are notes in `learned`.

        Args:
            train: Pairs.
            config: Settings.
            format: Way to cut texts into symbols.

        Returns:
            The model.
        """
        config = config or PairNgramConfig()
        limits = ChunkLimits(config.source_chunk, config.target_chunk, config.many_to_many)
        pairs, notes = _alignable(train, limits, config.unalignable)
        aligned = align(pairs, limits, config.em_iterations, config.length_penalty)
        model = cls(
            config, format or PairFormat("characters", "characters", "none"), ChunkModel.of(aligned, config.order)
        )
        model.learned = notes
        return model

    # Answers

    def cost(self, n: int, *, top_k: int = 0, choices: bool = False, explain: bool = False) -> float:
        """Return seconds; short sources are searched to the end, and the search of long ones is given up."""
        return (5e-4 + 3e-4 * n + 0.4 * (n > EASY)) * (1 + choices + explain) + 2e-5 * top_k * n

    def evaluating(self) -> AbstractContextManager[None]:
        """Return a context in which answers are given and nothing is learned."""
        return nullcontext()

    def transduced(self, batch: Sequence[Symbols], top_k: int, sure: bool) -> list[Transduced]:
        if sure:
            return [self._one(source, (), top_k, sure) for source in batch]
        known = [tuple(symbol for symbol in source if symbol in self.model.known) for source in batch]
        every = self.model.targets(known, top_k, self.config.widest)
        return [self._unaligned(*each) for each in zip(batch, known, every, strict=True)]

    def transduced_around(
        self, batch: Sequence[Symbols], pins: Sequence[Sequence[SpanPin]], top_k: int, sure: bool
    ) -> list[Transduced]:
        """Return the best targets given the pins, with p(target | source, pins)."""
        return [self._one(source, known, top_k, sure) for source, known in zip(batch, pins, strict=True)]

    def _one(self, source: Symbols, pins: Sequence[SpanPin], top_k: int, sure: bool) -> Transduced:
        places, lattice, targets = self._found(source, pins, top_k)
        whole = self._unaligned(source, places, targets)
        if not sure or not places:
            return whole
        aligned = [(target, lattice.align(target)) for target, _ in targets.best]
        parts = self._parts(targets, aligned[0][1].chunks, places)
        return Transduced([(target, each.log_prob) for target, each in aligned], parts, whole.certain)

    def _unaligned(self, source: Symbols, known: Sequence[object], targets: BestTargets) -> Transduced:
        """Return the best targets of a source, some symbols of which are known."""
        if not targets.best:
            raise ConstraintError(f"no target of {self.format.join_source(source)!r} agrees with its pins")
        return Transduced(targets.best, certain=targets.certain and sums_all(len(known), len(targets.best[0][0])))

    def _found(
        self, source: Symbols, pins: Sequence[SpanPin], top_k: int
    ) -> tuple[list[int], SourceLattice, BestTargets]:
        """Return the places of symbols that are known, the lattice of these, and the best targets."""
        places = [i for i, symbol in enumerate(source) if symbol in self.model.known]
        left = within(pins, places)
        if left is not None:
            lattice = self.model.lattice(tuple(source[i] for i in places), left)
            targets = lattice.top_k(top_k, self.config.widest)
            if targets.best:
                return places, lattice, targets
        raise ConstraintError(f"no target of {self.format.join_source(source)!r} agrees with its pins")

    def choices(
        self, inputs: Readable, *, pins: Sequence[Pins] | None = None, most: int | None = None
    ) -> list[list[PartChoices]]:
        """Return what each piece of a source may become, by its exact probability given the pins.

        The pieces are those of the best alignment; a label is as `pins` take it, and what is missing to a sum of 1 is
        that the source is cut elsewhere.
        """
        pairs = self.sentences_of(inputs)
        given: Sequence[Pins] = pins or [{}] * len(pairs)
        spans = [span_pins(known, len(pair), self.pinned) for pair, known in zip(pairs, given, strict=True)]
        return [self._choices(self.read_as(pair.words), known, most) for pair, known in zip(pairs, spans, strict=True)]

    def _choices(self, source: Symbols, pins: Sequence[SpanPin], most: int | None) -> list[PartChoices]:
        places, lattice, targets = self._found(source, pins, 1)
        choices, known, left = list[PartChoices](), tuple(source[i] for i in places), within(pins, places) or []
        for start, end, shares in piece_choices(self.model, known, left, lattice, targets.best[0][0]) if known else ():
            a, b, all_shares = places[start], places[end - 1] + 1, np.array([share for _, share in shares])
            parts = [
                PartProbability(a, b, self.format.join_target(symbols) or NOTHING, p) for symbols, p in shares[:most]
            ]
            bits = entropy_bits(np.append(all_shares, max(1.0 - all_shares.sum(), 0.0)))
            choices.append(PartChoices(a, b, tuple(parts), float(bits)))
        return choices

    def _parts(self, targets: BestTargets, chunks: Chunks, places: Sequence[int]) -> list[PartProbability]:
        """Return the symbols of the best target where its best alignment has them, with p(symbol | those before)."""
        target = targets.best[0][0]
        return [
            PartProbability(places[start], places[end - 1] + 1, target[j], targets.shares[j])
            for start, end, first, last in chunks
            for j in range(first, last)
        ]

    def log_probs(self, pairs: Sequence[Sentence]) -> list[float]:
        """Return log p(target | source) of each pair, summed over all alignments; -inf where there is none."""
        return [self.log_prob(pair.words, pair.target or ()) for pair in pairs]

    def log_prob(self, source: str | Symbols, target: str | Symbols) -> float:
        """Return log p(target | source), summed over all alignments; -inf where there is none."""
        x = self.format.cut_source(source) if isinstance(source, str) else source
        y = self.format.cut_target(target) if isinstance(target, str) else target
        x = tuple(symbol for symbol in self.read_as(x) if symbol in self.model.known)
        return self.model.lattice(x).align(y).log_prob

    def explain(self, sentences: Sequence[Sentence]) -> list[StringExplanation]:
        """Explain how each source is aligned with its best target, and name the strongest other targets."""
        return [self._explained(each.words) for each in sentences]

    def _explained(self, source: Symbols) -> StringExplanation:
        read = self.read_as(source)
        places = [i for i, symbol in enumerate(read) if symbol in self.model.known]
        known = tuple(read[i] for i in places)
        best = self._one(known, (), MOST_SHOWN, sure=True).best
        target, lattice = best[0][0], self.model.lattice(known)
        together, chunks = lattice.posteriors(target), []
        for start, end, first, last in lattice.align(target).chunks:
            sure = float(together[start:end, first:last].min()) if last > first else 1 - float(together[start].max())
            piece = tuple(source[i] for i in places[start:end])
            texts = self.format.join_source(piece), self.format.join_target(target[first:last])
            chunks.append(AlignedChunk(*texts, min(max(sure, 0.0), 1.0)))
        shown = [(self.format.join_target(y), math.exp(p)) for y, p in best if p > math.log(LEAST_SHOWN)]
        unknown = {symbol: self.twin(symbol) for symbol in source if not self.knows(symbol)}
        return StringExplanation(
            source, tuple(chunks), tuple(shown or [(self.format.join_target(target), 1.0)]), unknown
        )

    # What it is

    def knows(self, word: str) -> bool:
        return word in self.model.known

    @property
    def n_parameters(self) -> int:
        return len(self.model.ngrams.word) - 1

    @property
    def size(self) -> str:
        return f"{len(self.model.chunks):,} chunk pairs, {self.n_parameters:,} n-grams up to order {self.config.order}"

    def notes(self, train: Sequence[Sentence], dev: Sequence[Sentence]) -> list[str]:
        """Return notes on pairs that needed longer chunks, and on symbols of dev data that were never seen."""
        unknown = sorted({symbol for pair in dev for symbol in pair.words if symbol not in self.model.known})
        if not unknown:
            return self.learned
        return [*self.learned, f"source symbols of the dev data that were never seen: {self.unknown_text(unknown)}"]

    def describe(self, top: int = 20) -> Description:
        ngrams, chunks = self.model.ngrams, self.model.chunks
        common = sorted(range(len(chunks)), key=lambda i: -ngrams.log_prob[i + 1])[:top]
        shown = {
            f"{self.format.join_source(chunks[i][0])} -> {self.format.join_target(chunks[i][1]) or 'nothing'}":
            f"{math.exp(ngrams.log_prob[i + 1]):.4f}" for i in common
        }  # fmt: skip
        labels = {"source symbols": sorted(self.model.known), "target symbols": self.model.symbols}
        settings = {**self.config.to_dict(), **self.format.settings()}
        sections = [("most frequent chunk pairs", shown), ("pair n-gram", settings)]
        return Description("a pair n-gram", labels, dict(labels), settings, sections)

    # Disk

    def save(self, directory: str | Path, *, extra: Mapping[str, str] | None = None) -> None:
        """Write the model folder."""
        chunks = [[list(source), list(target)] for source, target in self.model.chunks]
        config = {"settings": self.config.to_dict(), "format": asdict(self.format), "chunks": chunks}
        card = model_card(self)
        stored = StoredModel(
            type(self).__name__, config, self.model.arrays(), self.metrics, card, extra or {}, self.kept_models()
        )
        write_model(directory, stored)

    @classmethod
    def load(cls, directory: str | Path, *, features: object = None) -> Self:
        """Read a model folder; a missing, truncated, foreign or newer one is a `ModelError`."""
        stored = read_model(directory, cls.__name__)
        try:
            settings = PairNgramConfig.from_dict(stored.config["settings"])
            chunks = [(tuple(source), tuple(target)) for source, target in stored.config["chunks"]]
            if not all(isinstance(symbol, str) for chunk in chunks for side in chunk for symbol in side):
                raise ValueError("expected texts as symbols of chunks")
            model = cls(settings, PairFormat(**stored.config["format"]), ChunkModel.from_arrays(chunks, stored.weights))
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            raise ModelError(f"{directory}: config.json and weights do not fit ({error}); copy it again") from error
        model.metrics = dict(stored.metrics)
        return with_kept(model, directory)


def _alignable(train: Sequence[Sentence], limits: ChunkLimits, rule: str) -> tuple[list[StringPair], list[str]]:
    """Return the pairs to align, and what is to be said about those whose targets are too long for the chunks."""
    pairs, beyond = list[StringPair](), list[Sentence]()
    for each in train:
        _check(each)
        pair = (each.words, each.target or ())
        covered = limits.covers(pair)
        if not covered:
            beyond.append(each)
        if covered or rule == "grow":
            pairs.append(pair)
    if not beyond:
        return pairs, []
    first = beyond[0]
    problem = f"a target of {len(first.target or ())} symbols for a source of {len(first)}"
    where = f"{first.file or 'data'}:{first.line}" if first.line else "the first"
    limit = f"target chunks of {limits.target}"
    if rule == "error":
        raise DataError(
            first.file or "data", f"expected a pair that {limit} can align, got {problem}; give a larger "
            "--target-chunk, or --unalignable grow or skip", line=first.line,
        )  # fmt: skip
    if not pairs:
        raise TrellisworkError(f"expected a pair that {limit} can align, got none; give a larger --target-chunk")
    uncovered = f"{count(len(beyond), 'pair')} that {limit} cannot align"
    if rule == "skip":
        return pairs, [f"{uncovered}: skipped; {where} has {problem}"]
    grown = max(needed((each.words, each.target or ())) for each in beyond)
    return pairs, [f"{uncovered}: aligned with chunks of up to {grown}; {where} has {problem}"]


def _check(pair: Sentence) -> None:
    for side, symbols in (("source", pair.words), ("target", pair.target)):
        if not symbols:
            raise DataError(pair.file or "data", f"expected a {side}, got nothing; fill it in, or remove the pair",
                            line=pair.line)  # fmt: skip
    if len(pair) * len(pair.target or ()) > LONGEST_PAIR:
        problem = f"expected a pair that can be aligned in memory, got {len(pair)} and {len(pair.target or ())} symbols"
        raise DataError(pair.file or "data", f"{problem}; cut it into shorter ones", line=pair.line)


# Explanations of pair n-grams: the alignment of a source with its best target, and other targets.


@dataclass(frozen=True)
class AlignedChunk:
    """A piece of the source, what it becomes, and the probability that it does, given both strings."""

    source: str
    target: str
    probability: float


@dataclass(frozen=True)
class StringExplanation:
    """The chunks of the best alignment, and the best targets; prints as text and shows as a table."""

    title: ClassVar[str] = "Alignments"
    lead: ClassVar[str] = (
        "For each source the pieces that become a piece of the best target, each with the probability that they belong "
        "together given both strings, and the best targets with their probabilities, summed over all alignments."
    )
    legend: ClassVar[str] = '<p class="note">All probabilities are exact.</p>\n'

    words: tuple[str, ...]
    chunks: tuple[AlignedChunk, ...]
    targets: tuple[tuple[str, float], ...]
    unknown: Mapping[str, str | None] = field(default_factory=dict)  # symbols never seen, and what is read for them

    @property
    def remark(self) -> str:
        """Remark about symbols that were never seen; empty if all were."""
        parts = [
            f"{symbol!r} was never seen and is {'passed over' if twin is None else f'read as {twin!r}'}"
            for symbol, twin in self.unknown.items()
        ]
        return "; ".join(parts)

    def record(self, most: int) -> dict[str, object]:
        """Return plain values, with the `most` best targets."""
        targets = [{"value": y, "probability": p} for y, p in self.targets[:most]]
        return {"chunks": [asdict(each) for each in self.chunks], "targets": targets}

    def __str__(self) -> str:
        width = max((len(each.source) for each in self.chunks), default=0)
        wide = max((len(each.target or NOTHING) for each in self.chunks), default=0)
        lines = [
            f"  {each.source:{width}}  {each.target or NOTHING:{wide}}  {100 * each.probability:5.1f}%"
            for each in self.chunks
        ]
        ranked = [f"{i:3d}. {100 * p:5.1f}%  {target}" for i, (target, p) in enumerate(self.targets, 1)]
        return "\n".join(["".join(self.words), *lines, *ranked, *([f"  {self.remark}"] if self.remark else [])])

    def _repr_html_(self) -> str:
        """Return two tables: the chunks, and the targets."""
        chunks = "".join(
            f"<tr><td><b>{escape(each.source)}</b></td><td>{escape(each.target or NOTHING)}</td>"
            f"<td>{100 * each.probability:.1f}%</td></tr>"
            for each in self.chunks
        )
        targets = "".join(f"<tr><td>{escape(y)}</td><td>{100 * p:.1f}%</td></tr>" for y, p in self.targets)
        first = f"<tr><th>source</th><th>target</th><th>together</th></tr>{chunks}"
        second = f"<tr><th>target</th><th>probability</th></tr>{targets}"
        remark = f'<p class="note">{escape(self.remark)}</p>' if self.remark else ""
        return f'<table class="arcs">{first}</table><table class="arcs">{second}</table>{remark}'
