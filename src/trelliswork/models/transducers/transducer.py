"""Base of all transducers, however they find targets: answers, their probabilities, scores.

>>> model = tw.load("pronounce")                                     # doctest: +SKIP
>>> answer = model.predict(["cat"], top_k=2)[0]                      # doctest: +SKIP
>>> answer.value, answer.probability                                 # doctest: +SKIP
('K AE T', 0.97)
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import ClassVar, NamedTuple

from trelliswork.data import PairFormat, Sentence
from trelliswork.data.pairs import WORD_UNITS
from trelliswork.data.unicode_forms import twins
from trelliswork.errors import TrellisworkError
from trelliswork.metrics.strings import bleu, string_scores
from trelliswork.models.base import Alternative, Answer, Model, PartProbability, Readable, Report, Scores
from trelliswork.models.batched import in_batches
from trelliswork.training.shares import answered

MOST_UNKNOWN = 5  # symbols that are listed
NO_THRESHOLD = "--threshold is for spans, and a transducer writes one string; leave it out"
EXACT_MATCH, BLEU, DIFFERENT = "exact match", "bleu", "different_byte_by_byte"
FORM_ALONE = "(the gold targets are in another Unicode form than the training targets, or have other blanks)"


class Transduced(NamedTuple):
    """The answer about one source.

    `best` has targets with log p(target | source), the best first and none twice; there is always one. `parts` has the
    symbols of the best one, each with the places [start, end) of the source that it is aligned with and its
    probability, if that was asked for. `certain` says that the probabilities are exact and no other target is more
    probable.
    """

    best: Sequence[tuple[Symbols, float]]
    parts: Sequence[PartProbability] = ()
    certain: bool = False


class Transducer(Model):
    """p(target | source) of strings. A subclass has `transduced`, and `format`, by which texts are cut into symbols."""

    learns_from = "pairs"
    supports_pins: ClassVar[bool] = False  # whether it has `transduced_around`
    next_options = "--top-k 3"
    without_twin: ClassVar[str] = "read as an unknown symbol"  # what is done about symbols that were never seen
    format: PairFormat

    @abstractmethod
    def transduced(self, batch: Sequence[Symbols], top_k: int, sure: bool) -> list[Transduced]:
        """Return the best target of each source, or the `top_k` best, with parts if `sure`; sources are not empty.

        Args:
            batch: Symbols of each source.
            top_k: Number of targets of each source.
            sure: True for probabilities of the symbols.

        Returns:
            An answer for each source.
        """

    def transduced_around(
        self, batch: Sequence[Symbols], pins: Sequence[Sequence[SpanPin]], top_k: int, sure: bool
    ) -> list[Transduced]:
        """Return the best targets among those that agree with the pins of each source.

        Args:
            batch: Symbols of each source.
            pins: Pins of each source, from left to right.
            top_k: Number of targets of each source.
            sure: True for probabilities of the symbols.

        Returns:
            An answer for each source.
        """
        raise TrellisworkError(f"expected no pins, got some; the answers of a {type(self).__name__} have none")

    def cost(self, n: int, *, top_k: int = 0, choices: bool = False, explain: bool = False) -> float:
        """Return seconds; a target is written symbol by symbol, with a beam as wide as `top_k` asks for."""
        return 1e-3 + n * (1e-3 + 1e-4 * top_k) * (1 + choices + explain)

    def log_probs(self, pairs: Sequence[Sentence]) -> list[float]:
        """Return log p(target | source) of each pair, exact; -inf where the target cannot be written."""
        raise TrellisworkError(f"expected a model with exact probabilities of pairs, got a {type(self).__name__}")

    def predict(
        self,
        inputs: str | Sequence[str] | Sequence[Sentence],
        *,
        top_k: int = 1,
        pins: Sequence[Pins] | None = None,
        confidence: bool = True,
    ) -> list[Answer]:
        """Return the target of each source. A text is one source; a list has several, as texts or as pairs.

        `pins` has for each source what some of it is known to become: `{0: "K", (1, 3): "F"}` for the symbols 0 and
        1 to 2, as texts or as tuples of symbols. The answers are the best targets that have an alignment like this.

        Args:
            inputs: Sources.
            top_k: Number of alternatives of each answer.
            pins: What is known of each source.
            confidence: Add the probabilities of parts.

        Returns:
            An answer for each source.
        """
        pairs = self.sentences_of(inputs)
        answers = self.transduce(pairs, top_k, confidence, pins if pins is not None and any(pins) else None)
        return [self._answer(pair, each, top_k) for pair, each in zip(pairs, answers, strict=True)]

    def transduce(
        self, pairs: Sequence[Sentence], top_k: int = 1, sure: bool = False, pins: Sequence[Pins] | None = None
    ) -> list[Transduced]:
        """Return what `transduced` finds for each source, batch by batch; an empty source has an empty target.

        Args:
            pairs: Sources, whose targets are not read.
            top_k: Number of targets of each source.
            sure: True for probabilities of the symbols.
            pins: What is known of each source.

        Returns:
            An answer for each source.
        """

        def ask(batch: Sequence[Sentence], pinned: Sequence[Pins] | None) -> list[Transduced]:
            sources = [self.read_as(pair.words) for pair in batch]
            if pinned is None:
                return self.transduced(sources, max(top_k, 1), sure)
            spans = [span_pins(each, len(words), self.pinned) for each, words in zip(pinned, sources, strict=True)]
            return self.transduced_around(sources, spans, max(top_k, 1), sure)

        return in_batches(self, pairs, pins, ask, empty=lambda: Transduced([((), 0.0)], certain=True))

    def pinned(self, text: str, n: int | None = None) -> Symbols:
        """Return the symbols that a pin says are written."""
        if not self.supports_pins:
            super().pinned(text, n)
        return () if text == NOTHING else self.format.cut_target(text)

    def read_as(self, words: Symbols) -> Symbols:
        """Return a source as the model reads it: symbols that it never saw by their twins, if it saw one of these."""
        return tuple(self.twin(word) or word for word in words)

    def twin(self, word: str) -> str | None:
        """Return the symbol that is read for one that was never seen: in another case, or without its accents.

        None if the symbol was seen, if there is no such twin, or if the model copies what it does not know.
        """
        if self.copies_unknown or self.knows(word) is not False:
            return None
        return next((twin for twin in twins(word) if self.knows(twin)), None)

    @property
    def copies_unknown(self) -> bool:
        """True if symbols that were never seen are written as they are."""
        return False

    def unknown_text(self, symbols: Sequence[str]) -> str:
        """Return some symbols that were never seen, and what is done about each."""
        without = "copied" if self.copies_unknown else self.without_twin
        shown = [f"{each!r} ({f'read as {twin!r}' if (twin := self.twin(each)) else without})" for each in symbols]
        more = f" and {len(shown) - MOST_UNKNOWN} more" if len(shown) > MOST_UNKNOWN else ""
        return ", ".join(shown[:MOST_UNKNOWN]) + more

    def _as_sentences(self, given: Readable) -> list[Sentence]:
        sources = [given] if isinstance(given, str | Sentence) else list(given)
        return [
            each if isinstance(each, Sentence)
            else Sentence(self.format.cut_source(each), text=each) if isinstance(each, str)
            else Sentence(tuple(each))  # symbols
            for each in sources
        ]  # fmt: skip

    def _answer(self, pair: Sentence, answer: Transduced, top_k: int) -> Answer:
        written: dict[str, float] = {}  # symbols in another order may spell the same text
        for symbols, log_p in answer.best:
            text = self.format.join_target(symbols)
            written[text] = written.get(text, 0.0) + math.exp(log_p)
        best = [Alternative(text, probability) for text, probability in written.items()]
        parts = [replace(part, label=self.format.spelled(part.label)) for part in answer.parts]
        unknown = tuple(word for word in dict.fromkeys(pair.words) if self.knows(word) is False)
        return Answer(
            best[0].value, best[0].probability, pair.words, parts, alternatives=best[:top_k] if top_k else (),
            certain=answer.certain, unknown=unknown,
        )  # fmt: skip

    # Scores

    @property
    def judged_by(self) -> str:
        """The score that counts: exact match, or bleu."""
        return EXACT_MATCH

    def evaluate(self, gold: Sequence[Sentence]) -> Scores:
        """Score whole strings and symbols; pairs of one source are several right targets.

        If both sides are words, BLEU too.
        """
        groups: dict[str | Symbols, list[Sentence]] = {}
        for pair in gold:
            groups.setdefault(pair.text.strip() or pair.words, []).append(pair)
        answers = answered(self.transduce, [Sentence(pairs[0].words) for pairs in groups.values()])
        predicted = [self._canonical(each.best[0][0]) for each in answers]
        strings = string_scores(predicted, [[pair.target or () for pair in pairs] for pairs in groups.values()])
        scores = {
            EXACT_MATCH: 1 - strings.word_error_rate,
            "word_error_rate": strings.word_error_rate,
            "symbol_error_rate": strings.symbol_error_rate,
        }
        texts = [{pair.target_text.strip() for pair in pairs} for pairs in groups.values()]
        if all(map(all, texts)):
            different = [
                self.format.join_target(each) not in right for each, right in zip(predicted, texts, strict=True)
            ]
            scores[DIFFERENT] = sum(different) / max(len(different), 1)
        if self.format.source in WORD_UNITS and self.format.target in WORD_UNITS:
            words, of = self.format.words_of_target, dict(zip(groups, predicted, strict=True))
            written = [words(of[pair.text.strip() or pair.words]) for pair in gold]
            scores[BLEU] = bleu(written, [[words(pair.target or ())] for pair in gold]).score / 100
        return {"metric": self.judged_by, "score": scores[self.judged_by], **scores}

    def _canonical(self, symbols: Symbols) -> Symbols:
        """Return symbols as a file with the same text would be cut: marks may be written in another order."""
        return symbols if self.format.spelling is None else self.format.cut_target(self.format.join_target(symbols))

    def report(self, gold: Sequence[Sentence], *, threshold: float | None = None) -> Report:
        """Return error rates of strings and of symbols."""
        if threshold is not None:
            raise TrellisworkError(NO_THRESHOLD)
        scores = self.evaluate(gold)
        shown = [name for name in ("word_error_rate", "symbol_error_rate", BLEU) if name in scores]
        lines = [f"{name.replace('_', ' '):<24}{100 * scores[name]:6.2f}" for name in shown]
        if (different := scores.get(DIFFERENT, 0.0)) > scores["word_error_rate"]:
            lines.append(f"{'different byte by byte':<24}{100 * different:6.2f}   {FORM_ALONE}")
        return Report("\n".join(lines), scores)


# What is known of a target: the symbols that some places of the source become.

Symbols = tuple[str, ...]
Place = int | tuple[int, int]  # a symbol of the source, counted from 0, or those from start to end, end exclusive
Pins = Mapping[Place, str | Symbols]
NOTHING = "(nothing)"  # how it is typed that a place writes none


class SpanPin(NamedTuple):
    """Source symbols [start, end) become these target symbols, and no others."""

    start: int
    end: int
    symbols: Symbols


def span_pins(pins: Pins, n: int, cut: Callable[[str], Symbols]) -> list[SpanPin]:
    """Return the pins of a source of `n` symbols from left to right; they must lie within it and be disjoint.

    Args:
        pins: Places of the source and what they become.
        n: Number of symbols of the source.
        cut: Function that cuts a text into symbols.

    Returns:
        The pins, sorted.

    >>> span_pins({(1, 3): "F", 0: "K"}, 3, tuple)
    [SpanPin(start=0, end=1, symbols=('K',)), SpanPin(start=1, end=3, symbols=('F',))]
    """
    spans = []
    for place, value in pins.items():
        start, end = (place, place + 1) if isinstance(place, int) else place
        if not 0 <= start < end <= n:
            raise TrellisworkError(f"a pin must be on places of the source, which has {n}; got {place}")
        spans.append(SpanPin(start, end, cut(value) if isinstance(value, str) else tuple(value)))
    spans.sort()
    for one, other in pairwise(spans):
        if one.end > other.start:
            both = f"{one.start}..{one.end - 1} and {other.start}..{other.end - 1}"
            raise TrellisworkError(f"pins must lie apart from each other; got {both}; drop one of them")
    return spans


def within(pins: Sequence[SpanPin], places: Sequence[int]) -> list[SpanPin] | None:
    """Return the same pins on the places of a source that are left, or None if a pin wants symbols from none of them.

    >>> within([SpanPin(1, 3, ("F",))], [0, 2])
    [SpanPin(start=1, end=2, symbols=('F',))]
    """
    kept = []
    for pin in pins:
        start = sum(place < pin.start for place in places)
        end = sum(place < pin.end for place in places)
        if start < end:
            kept.append(SpanPin(start, end, pin.symbols))
        elif pin.symbols:
            return None
    return kept
