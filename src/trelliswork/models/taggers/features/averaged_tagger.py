"""Taggers whose p(y | x) is the mean of several: over dropout masks, over seeds."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from trelliswork.data import Sentence
from trelliswork.distributions.averaging import average_argmax, average_log_prob
from trelliswork.models.expected_counts import Counting
from trelliswork.models.taggers.counted_tags import tag_counting
from trelliswork.models.taggers.explanation import (
    Analysis,
    Confidences,
    SpanConfidence,
    span_confidences,
    tag_probabilities,
    tag_shares,
    token_confidences,
)
from trelliswork.models.taggers.sentence_tagger import Pins, SentenceTagger
from trelliswork.models.taggers.span_choice import likely_spans
from trelliswork.runtime.arrays import Array
from trelliswork.runtime.shapes import Float

if TYPE_CHECKING:
    from trelliswork.distributions import LinearChain


class AveragedTagger(SentenceTagger):
    """p(y | x) = the mean of the members' p(y | x), who share their labels; a subclass brings the members."""

    counts_parts = True

    @abstractmethod
    def members(self, sentences: Sequence[Sentence], pins: Sequence[Pins] | None = None) -> list[LinearChain]:
        """The distributions that are averaged."""

    def _best_tags(self, batch: Sequence[Sentence], pins: Sequence[Pins] | None) -> list[list[str]]:
        best = average_argmax(self.members(batch, pins)).tags.tolist()
        return [self.labels.tags(row[: len(sentence)]) for row, sentence in zip(best, batch, strict=True)]

    def _analyses(self, batch: Sequence[Sentence], pins: Sequence[Pins] | None, top_k: int) -> list[list[Analysis]]:
        """The best of the `top_k` of each member."""
        members = self.members(batch, pins)
        candidates = torch.cat([member.top_k(top_k)[0] for member in members])  # (members * k, batch, n)
        log_probs = average_log_prob(members, candidates)  # compared as they are: probabilities underflow
        answers = []
        for i, sentence in enumerate(batch):
            found = {
                tuple(tags[: len(sentence)]): log_prob
                for tags, log_prob in zip(candidates[:, i].tolist(), log_probs[:, i].tolist(), strict=True)
                if log_prob > -math.inf
            }
            best = sorted(found.items(), key=lambda item: -item[1])[:top_k]
            answers.append([Analysis(self.labels.tags(tags), math.exp(log_prob)) for tags, log_prob in best])
        return answers

    def _confidences(self, batch: Sequence[Sentence], pins: Sequence[Pins] | None) -> list[Confidences]:
        """Probabilities under the average are averages of probabilities."""
        members = self.members(batch, pins)
        best = average_argmax(members).tags
        tokens = tag_probabilities(_mean_marginals(members), best, self.labels)
        tags = [self.labels.tags(row[: len(sentence)]) for row, sentence in zip(best.tolist(), batch, strict=True)]
        spans = [span_confidences(member, self.labels, tags) for member in members]
        return [
            Confidences(row, tokens[i, : len(row)].tolist(), [_mean(same) for same in zip(*of_row, strict=True)])
            for i, (row, of_row) in enumerate(zip(tags, zip(*spans, strict=True), strict=True))
        ]

    def _likely_spans(
        self, batch: Sequence[Sentence], pins: Sequence[Pins] | None, threshold: float
    ) -> list[list[SpanConfidence]]:
        return likely_spans(self.members(batch, pins), self.labels, list(map(len, batch)), threshold)

    def _tag_shares(self, batch: Sequence[Sentence], pins: Sequence[Pins] | None) -> list[Array]:
        return tag_shares(_mean_marginals(self.members(batch, pins)), self.labels, list(map(len, batch)))

    def counting(self, batch: Sequence[Sentence], pins: Sequence[Pins] | None) -> Counting:
        return tag_counting(self.members(batch, pins), self.labels)

    def _token_confidences(
        self, batch: Sequence[Sentence], pins: Sequence[Pins] | None, tags: Sequence[Sequence[str]]
    ) -> list[list[float]]:
        return token_confidences(_mean_marginals(self.members(batch, pins)), self.labels, tags)


def _mean_marginals(members: Sequence[LinearChain]) -> Float[Tensor, "batch n c"]:
    return torch.stack([member.marginals for member in members]).mean(0)


def _mean(same: Sequence[SpanConfidence]) -> SpanConfidence:
    first = same[0]
    return SpanConfidence(first.start, first.end, first.label, sum(each.probability for each in same) / len(same))
