"""Taggers whose answers come from one chain over the tokens."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from trelliswork.data import Sentence
from trelliswork.errors import TrellisworkError
from trelliswork.lazy import named
from trelliswork.models.expected_counts import Counting
from trelliswork.models.taggers.explanation import (
    Analysis,
    Confidences,
    SpanConfidence,
    analyses_of,
    confidences_of,
    tag_shares,
    tags_of_best,
    token_confidences,
)
from trelliswork.models.taggers.sentence_tagger import Pins, SentenceTagger
from trelliswork.models.taggers.span_choice import likely_spans
from trelliswork.runtime.arrays import Array
from trelliswork.runtime.shapes import Bool

if TYPE_CHECKING:
    from torch import Tensor

    from trelliswork.distributions.grouped_chain import TagDistribution

TAG_COUNTING = "trelliswork.models.taggers.counted_tags:tag_counting"  # needs torch


class ChainTagger(SentenceTagger):
    """A tagger whose subclass brings the scores of a batch as a `chain`."""

    answers_together = counts_parts = True

    @abstractmethod
    def chain(self, sentences: Sequence[Sentence]) -> TagDistribution:
        """p(labels | words) of a batch of sentences; values are indices into `labels.vocabulary`."""

    def distribution(self, sentences: Sequence[Sentence], pins: Sequence[Pins] | None = None) -> TagDistribution:
        """p(labels | words, pins) of a batch of sentences.

        `pins` holds, for each sentence, tags that are known: `{0: "B-NP"}` says that the first token begins an NP.
        """
        sentences = self.sentences_of(sentences)
        with self.evaluating():
            chain = self.chain(sentences)
            return chain if pins is None or not any(pins) else chain.constrain(self._allowed(sentences, pins, chain))

    def _decode(self, sentences: Sequence[Sentence]) -> list[list[int]]:
        """The best labels of a batch."""
        best = self.chain(sentences).argmax.tolist()
        return [row[: len(sentence)] for row, sentence in zip(best, sentences, strict=True)]

    def _allowed(
        self, sentences: Sequence[Sentence], pins: Sequence[Pins], chain: TagDistribution
    ) -> Bool[Tensor, "batch n c"]:
        """True for each label that the pins leave."""
        shape = (*chain.batch_shape, *chain.event_shape, len(self.labels.vocabulary))
        allowed = np.ones(shape, bool)
        for row, (sentence, known) in enumerate(zip(sentences, pins, strict=True)):
            for i, tag in known.items():
                if not 0 <= i < len(sentence):
                    raise TrellisworkError(f"a pin must be on token 0..{len(sentence) - 1}; got {i} ({tag!r})")
                allowed[row, i] = False
                allowed[row, i, self.labels.meaning(tag)] = True
        return chain.log_partition.new_tensor(allowed).bool()

    def _best_tags(self, batch: Sequence[Sentence], pins: Sequence[Pins] | None) -> list[list[str]]:
        if pins is not None:
            return tags_of_best(self.distribution(batch, pins), self.labels, batch)
        return [self.labels.tags(labels) for labels in self._decode(batch)]

    def _analyses(self, batch: Sequence[Sentence], pins: Sequence[Pins] | None, top_k: int) -> list[list[Analysis]]:
        return analyses_of(self.distribution(batch, pins), self.labels, batch, top_k)

    def _confidences(self, batch: Sequence[Sentence], pins: Sequence[Pins] | None) -> list[Confidences]:
        return confidences_of(self.distribution(batch, pins), self.labels, batch)

    def _likely_spans(
        self, batch: Sequence[Sentence], pins: Sequence[Pins] | None, threshold: float
    ) -> list[list[SpanConfidence]]:
        return likely_spans([self.distribution(batch, pins)], self.labels, list(map(len, batch)), threshold)

    def _tag_shares(self, batch: Sequence[Sentence], pins: Sequence[Pins] | None) -> list[Array]:
        return tag_shares(self.distribution(batch, pins).marginals, self.labels, list(map(len, batch)))

    def counting(self, batch: Sequence[Sentence], pins: Sequence[Pins] | None) -> Counting:
        counted: Counting = named(TAG_COUNTING)([self.distribution(batch, pins)], self.labels)
        return counted

    def _token_confidences(
        self, batch: Sequence[Sentence], pins: Sequence[Pins] | None, tags: Sequence[Sequence[str]]
    ) -> list[list[float]]:
        return token_confidences(self.distribution(batch, pins).marginals, self.labels, tags)
