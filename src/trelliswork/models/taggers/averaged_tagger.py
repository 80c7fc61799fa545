"""Taggers whose p(y | x) is the mean of several: over dropout masks, over seeds."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property

import torch
from torch import Tensor

from trelliswork.data import Sentence
from trelliswork.distributions import LinearChain
from trelliswork.distributions.averaging import average_argmax, average_log_prob
from trelliswork.distributions.grouped_chain import TagDistribution
from trelliswork.models.expected_counts import Counting
from trelliswork.models.taggers.labels import Labels, Pins
from trelliswork.models.taggers.posterior import (
    Analysis,
    Confidences,
    SpanConfidence,
    TagPosterior,
    span_confidences,
    tag_probabilities,
    tag_shares,
    token_confidences,
)
from trelliswork.models.taggers.sentence_tagger import SentenceTagger
from trelliswork.models.taggers.span_choice import likely_spans
from trelliswork.runtime.arrays import Array, Bool, Float
from trelliswork.tags.scheme_rules import Part, part_of

OUTSIDE: Part = ("O", "")


class AveragedTagger(SentenceTagger):
    """p(y | x) = the mean of the members' p(y | x), who share their labels; a subclass brings the members."""

    @abstractmethod
    def members(self, sentences: Sequence[Sentence], pins: Sequence[Pins] | None = None) -> list[LinearChain]:
        """Return the distributions that are averaged."""

    def _posterior(self, batch: Sequence[Sentence], pins: Sequence[Pins] | None) -> TagPosterior:
        return AveragedPosterior(self.members(batch, pins), self.labels, batch)


class AveragedPosterior(TagPosterior):
    """The mean of several chains over the same labels.

    Args:
        members: p(labels | words, pins) of the batch by each member.
        labels: the labels by their number in the chains.
        batch: the sentences, in the order of the rows.
    """

    def __init__(self, members: Sequence[LinearChain], labels: Labels, batch: Sequence[Sentence]) -> None:
        self.members, self.labels, self.batch = members, labels, batch

    @cached_property
    def marginals(self) -> Float[Tensor, "batch n c"]:
        """Probabilities under the average are averages of probabilities."""
        return torch.stack([member.marginals for member in self.members]).mean(0)

    def best_tags(self) -> list[list[str]]:
        best = average_argmax(self.members).tags.tolist()
        return [self.labels.tags(row[: len(sentence)]) for row, sentence in zip(best, self.batch, strict=True)]

    def analyses(self, top_k: int) -> list[list[Analysis]]:
        """Return the best of the `top_k` of each member."""
        candidates = torch.cat([member.top_k(top_k)[0] for member in self.members])  # (members * k, batch, n)
        log_probs = average_log_prob(self.members, candidates)  # compared as they are: probabilities underflow
        answers = []
        for i, sentence in enumerate(self.batch):
            by_tags = {
                tuple(tags[: len(sentence)]): log_prob
                for tags, log_prob in zip(candidates[:, i].tolist(), log_probs[:, i].tolist(), strict=True)
                if log_prob > -math.inf
            }
            best = sorted(by_tags.items(), key=lambda item: -item[1])[:top_k]
            answers.append([Analysis(self.labels.tags(tags), math.exp(log_prob)) for tags, log_prob in best])
        return answers

    def confidences(self) -> list[Confidences]:
        best = average_argmax(self.members).tags
        tokens = tag_probabilities(self.marginals, best, self.labels)
        tags = [self.labels.tags(row[: len(sentence)]) for row, sentence in zip(best.tolist(), self.batch, strict=True)]
        spans = [span_confidences(member, self.labels, tags) for member in self.members]
        return [
            Confidences(row, tokens[i, : len(row)].tolist(), [_mean(same) for same in zip(*of_row, strict=True)])
            for i, (row, of_row) in enumerate(zip(tags, zip(*spans, strict=True), strict=True))
        ]

    def likely_spans(self, threshold: float) -> list[list[SpanConfidence]]:
        return likely_spans(self.members, self.labels, list(map(len, self.batch)), threshold)

    def tag_shares(self) -> list[Array]:
        return tag_shares(self.marginals, self.labels, list(map(len, self.batch)))

    def counting(self) -> Counting:
        return tag_counting(self.members, self.labels)

    def token_confidences(self, tags: Sequence[Sequence[str]]) -> list[list[float]]:
        return token_confidences(self.marginals, self.labels, tags)


def _mean(same: Sequence[SpanConfidence]) -> SpanConfidence:
    first = same[0]
    return SpanConfidence(first.start, first.end, first.label, sum(each.probability for each in same) / len(same))


def tag_counting(members: Sequence[TagDistribution], labels: Labels) -> Counting:
    """Return how spans are counted by type, or tags if they are plain, under the mean of chains over labels."""
    groups, c = labels.tag_groups, len(labels.vocabulary)
    shape, zeros = (*members[0].batch_shape, *members[0].event_shape, c), members[0].log_partition.new_zeros
    if not labels.has_spans:

        def of_tag(tag: str) -> dict[str, Tensor]:
            return {"costs": zeros(c).index_fill(0, torch.tensor(groups[tag]), 1.0).expand(shape)}

        return Counting(members, list(groups), of_tag)
    parts = [part_of(label, "IOBES") for label in labels.vocabulary]  # as `spans_of` reads them
    kinds = list(dict.fromkeys(kind for role, kind in parts if role != "O"))
    possible = [(each.transitions, each.start) for each in members if isinstance(each, LinearChain)]

    def of_kind(kind: str) -> dict[str, Tensor]:
        always, after, at_start = (zeros(0).new_tensor(each) for each in _beginnings(parts, kind))
        costs = {"costs": always.expand(shape)}
        if len(possible) == len(members) and not any(_happen(*each, after, at_start) for each in possible):
            return costs
        return {**costs, "transitions": after, "start": at_start}

    return Counting(members, kinds, of_kind)


def _beginnings(parts: Sequence[Part], kind: str) -> tuple[list[float], list[list[float]], list[float]]:
    """Return which labels begin a span of a type: after any label, beyond these after some label, at the start.

    B and S always do. I and E do where no span of their type goes on: models may allow that, and readers of tags too.
    """
    always = [float(part[1] == kind and part[0] in "BS") for part in parts]

    def also(before: Part, here: Part) -> float:
        return float(here[1] == kind and here[0] in "IE" and (before[0] in "OES" or before[1] != kind))

    after = [[also(before, here) for here in parts] for before in parts]
    return always, after, [also(OUTSIDE, here) for here in parts]


def _happen(
    transitions: Tensor, start: Float[Tensor, " c"], after: Float[Tensor, "c c"], at_start: Float[Tensor, " c"]
) -> bool:
    """Return whether I or E may begin a span: the scores forbid it where the scheme is kept."""
    pairs: Bool[Tensor, "..."] = (transitions > -torch.inf) & (after > 0)
    return bool(pairs.any() | ((start > -torch.inf) & (at_start > 0)).any())
