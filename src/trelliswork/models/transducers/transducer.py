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
from typing import Any, NamedTuple

from trelliswork.data import PairFormat, Sentence
from trelliswork.errors import TrellisworkError
from trelliswork.metrics.strings import bleu, string_scores
from trelliswork.models.base import Alternative, Answer, Model, PartProbability, Report
from trelliswork.models.batched import in_batches
from trelliswork.training.shares import answered

Symbols = tuple[str, ...]
NO_THRESHOLD = "--threshold is for spans, and a transducer writes one string; leave it out"
EXACT_MATCH, BLEU = "exact match", "bleu"


class Transduced(NamedTuple):
    """The answer about one source.

    `best` has targets with log p(target | source), the best first and none twice; there is always one. `parts` has the
    symbols of the best one, each with the places [start, end) of the source that it is aligned with and its
    probability, if that was asked for.
    """

    best: Sequence[tuple[Symbols, float]]
    parts: Sequence[PartProbability] = ()


class Transducer(Model):
    """p(target | source) of strings. A subclass has `transduced`, and `format`, by which texts are cut into symbols."""

    learns_from = "pairs"
    next_options = "--top-k 3"
    format: PairFormat

    @abstractmethod
    def transduced(self, batch: Sequence[Symbols], top_k: int, sure: bool) -> list[Transduced]:
        """The best target of each source, or the `top_k` best, with parts if `sure`; sources are not empty."""

    def predict(
        self,
        inputs: str | Sequence[str] | Sequence[Sentence],
        *,
        top_k: int = 1,
        pins: Any = None,
        confidence: bool = True,
    ) -> list[Answer]:
        """The target of each source. A text is one source; a list has several, as texts or as pairs that were read."""
        if pins is not None and any(pins):
            raise TrellisworkError(f"expected no pins, got some; the answers of a {type(self).__name__} have none")
        pairs = self.sentences_of(inputs)
        found = self.transduce(pairs, top_k, confidence)
        return [self._answer(pair, each, top_k) for pair, each in zip(pairs, found, strict=True)]

    def transduce(self, pairs: Sequence[Sentence], top_k: int = 1, sure: bool = False) -> list[Transduced]:
        """What `transduced` says of each source, batch by batch; an empty source has an empty target."""
        return in_batches(
            self, pairs, None,
            lambda batch, _: self.transduced([pair.words for pair in batch], max(top_k, 1), sure),
            empty=lambda: Transduced([((), 0.0)]),
        )  # fmt: skip

    def _as_sentences(self, given: Any) -> list[Sentence]:
        texts = [given] if isinstance(given, str | Sentence) else list(given)
        return [
            each if isinstance(each, Sentence) else Sentence(self.format.cut_source(each), text=each) for each in texts
        ]

    def _answer(self, pair: Sentence, found: Transduced, top_k: int) -> Answer:
        best = [Alternative(self.format.join_target(symbols), math.exp(log_p)) for symbols, log_p in found.best]
        kept = best[:top_k] if top_k else ()
        return Answer(best[0].value, best[0].probability, pair.words, found.parts, alternatives=kept)

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
