"""What all transducers answer, however they find it: targets, their probabilities, scores.

>>> model = tw.load("pronounce")                                     # doctest: +SKIP
>>> answer = model.predict(["cat"], top_k=2)[0]                      # doctest: +SKIP
>>> answer.value, answer.probability                                 # doctest: +SKIP
('K AE T', 0.97)
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

from trelliswork.data import PairFormat, Sentence
from trelliswork.errors import TrellisworkError
from trelliswork.metrics.strings import bleu, string_scores
from trelliswork.models.base import Alternative, Answer, Model, PartProbability, Report
from trelliswork.models.batched import in_batches
from trelliswork.models.transducers.pins import NOTHING, Pins, SpanPin, Symbols, span_pins
from trelliswork.training.shares import answered

NO_THRESHOLD = "--threshold is for spans, and a transducer writes one string; leave it out"
EXACT_MATCH, BLEU = "exact match", "bleu"


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
    takes_pins: ClassVar[bool] = False  # whether it has `transduced_around`
    next_options = "--top-k 3"
    format: PairFormat

    @abstractmethod
    def transduced(self, batch: Sequence[Symbols], top_k: int, sure: bool) -> list[Transduced]:
        """The best target of each source, or the `top_k` best, with parts if `sure`; sources are not empty."""

    def transduced_around(
        self, batch: Sequence[Symbols], pins: Sequence[Sequence[SpanPin]], top_k: int, sure: bool
    ) -> list[Transduced]:
        """The same among the targets that agree with the pins of each source."""
        raise TrellisworkError(f"expected no pins, got some; the answers of a {type(self).__name__} have none")

    def log_probs(self, pairs: Sequence[Sentence]) -> list[float]:
        """log p(target | source) of each pair, exact; -inf where the target cannot be written."""
        raise TrellisworkError(f"expected a model with exact probabilities of pairs, got a {type(self).__name__}")

    def predict(
        self,
        inputs: str | Sequence[str] | Sequence[Sentence],
        *,
        top_k: int = 1,
        pins: Any = None,
        confidence: bool = True,
    ) -> list[Answer]:
        """The target of each source. A text is one source; a list has several, as texts or as pairs that were read.

        `pins` has for each source what some of it is known to become: `{0: "K", (1, 3): "F"}` for the symbols 0 and
        1 to 2, as texts or as tuples of symbols. The answers are the best targets that have an alignment like this.
        """
        pairs = self.sentences_of(inputs)
        found = self.transduce(pairs, top_k, confidence, pins if pins is not None and any(pins) else None)
        return [self._answer(pair, each, top_k) for pair, each in zip(pairs, found, strict=True)]

    def transduce(
        self, pairs: Sequence[Sentence], top_k: int = 1, sure: bool = False, pins: Sequence[Pins] | None = None
    ) -> list[Transduced]:
        """What `transduced` says of each source, batch by batch; an empty source has an empty target."""

        def ask(batch: Sequence[Sentence], pinned: Sequence[Pins] | None) -> list[Transduced]:
            sources = [pair.words for pair in batch]
            if pinned is None:
                return self.transduced(sources, max(top_k, 1), sure)
            spans = [span_pins(each, len(words), self.pinned) for each, words in zip(pinned, sources, strict=True)]
            return self.transduced_around(sources, spans, max(top_k, 1), sure)

        return in_batches(self, pairs, pins, ask, empty=lambda: Transduced([((), 0.0)], certain=True))

    def pinned(self, text: str, n: int | None = None) -> Symbols:
        """The symbols that a pin says are written."""
        if not self.takes_pins:
            super().pinned(text, n)
        return () if text == NOTHING else self.format.cut_target(text)

    def _as_sentences(self, given: Any) -> list[Sentence]:
        texts = [given] if isinstance(given, str | Sentence) else list(given)
        return [
            each if isinstance(each, Sentence) else Sentence(self.format.cut_source(each), text=each) for each in texts
        ]

    def _answer(self, pair: Sentence, found: Transduced, top_k: int) -> Answer:
        best = [Alternative(self.format.join_target(symbols), math.exp(log_p)) for symbols, log_p in found.best]
        kept = best[:top_k] if top_k else ()
        return Answer(
            best[0].value, best[0].probability, pair.words, found.parts, alternatives=kept, certain=found.certain
        )

    # Scores

    @property
    def judged_by(self) -> str:
        """The score that counts: exact match, or bleu."""
        return EXACT_MATCH

    def evaluate(self, gold: Sequence[Sentence]) -> dict[str, Any]:
        """Whole strings that are right, and symbols that are wrong; pairs of one source are several right targets.

        If both sides are words, BLEU too.
        """
        targets: dict[Symbols, list[Symbols]] = {}
        for pair in gold:
            targets.setdefault(pair.words, []).append(pair.target or ())
        answers = answered(self.transduce, [Sentence(source) for source in targets])
        found = {source: each.best[0][0] for source, each in zip(targets, answers, strict=True)}
        strings = string_scores(list(found.values()), list(targets.values()))
        scores = {
            EXACT_MATCH: 1 - strings.word_error_rate,
            "word_error_rate": strings.word_error_rate,
            "symbol_error_rate": strings.symbol_error_rate,
        }
        if self.format.source == self.format.target == "blanks":
            scores[BLEU] = (
                bleu([found[pair.words] for pair in gold], [[pair.target or ()] for pair in gold]).score / 100
            )
        return {"metric": self.judged_by, "score": scores[self.judged_by], **scores}

    def report(self, gold: Sequence[Sentence], *, threshold: float | None = None) -> Report:
        """Error rates of strings and of symbols."""
        if threshold is not None:
            raise TrellisworkError(NO_THRESHOLD)
        scores = self.evaluate(gold)
        shown = [name for name in ("word_error_rate", "symbol_error_rate", BLEU) if name in scores]
        return Report("\n".join(f"{name.replace('_', ' '):<24}{100 * scores[name]:6.2f}" for name in shown), scores)
