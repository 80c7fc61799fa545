"""What a tagger says beside the tags: alternatives and confidences, all exact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trelliswork.data import Sentence
from trelliswork.models.base import PartProbability
from trelliswork.models.taggers.labels import Labels
from trelliswork.runtime.arrays import INF, Array
from trelliswork.runtime.shapes import Int
from trelliswork.tags.schemes import spans_of

if TYPE_CHECKING:
    from torch import Tensor

    from trelliswork.distributions.grouped_chain import TagDistribution
    from trelliswork.models.taggers.features.crf.array_chain import ArrayChain


@dataclass(frozen=True)
class Analysis:
    """One tag sequence of a sentence with its probability p(y | x)."""

    tags: list[str]
    probability: float


# A predicted span [start, end) and the probability that these tokens are one span of this label.
SpanConfidence = PartProbability


@dataclass(frozen=True)
class Confidences:
    """The best tags of a sentence; per token the marginal probability of its tag; per span its probability."""

    tags: list[str]
    tokens: list[float]
    spans: list[SpanConfidence]


def analyses_of(
    distribution: TagDistribution, labels: Labels, sentences: Sequence[Sentence], top_k: int
) -> list[list[Analysis]]:
    """The `top_k` best analyses of each sentence; fewer when fewer are possible."""
    values, scores = distribution.top_k(top_k)  # (k, batch, n), (k, batch)
    exists = scores > -INF  # of scores, not of probabilities: those of a long sentence underflow
    probabilities = distribution.log_prob(values).double().exp().tolist()
    answers: list[list[Analysis]] = []
    for i, sentence in enumerate(sentences):
        possible = exists[:, i].nonzero()[:, 0].tolist()
        answers.append(
            [
                Analysis(labels.tags(values[k, i, : len(sentence)].tolist()), probabilities[k][i])
                for k in possible or [0]
            ]
        )
    return answers


def tags_of_best(distribution: TagDistribution, labels: Labels, sentences: Sequence[Sentence]) -> list[list[str]]:
    """The tags of the most probable sequence of each sentence."""
    return _tags_of_rows(distribution.argmax, labels, sentences)


def _tags_of_rows(
    rows: Array | Int[Tensor, "batch n"], labels: Labels, sentences: Sequence[Sentence]
) -> list[list[str]]:
    return [labels.tags(row[: len(sentence)].tolist()) for row, sentence in zip(rows, sentences, strict=True)]


def confidences_of(
    distribution: TagDistribution | ArrayChain, labels: Labels, sentences: Sequence[Sentence]
) -> list[Confidences]:
    """Token marginals and span probabilities of the best tags of each sentence."""
    best = distribution.argmax  # (batch, n)
    tokens = tag_probabilities(distribution.marginals, best, labels)
    tags = _tags_of_rows(best, labels, sentences)
    spans = span_confidences(distribution, labels, tags)
    return [
        Confidences(row_tags, tokens[i, : len(row_tags)].tolist(), row_spans)
        for i, (row_tags, row_spans) in enumerate(zip(tags, spans, strict=True))
    ]


def span_confidences(
    distribution: TagDistribution | ArrayChain, labels: Labels, tags: Sequence[Sequence[str]]
) -> list[list[SpanConfidence]]:
    """P(exactly this span) for each span that the tags spell out."""
    spans = [spans_of(row, labels.data_scheme) for row in tags]
    if not any(spans):
        return [[] for _ in spans]
    names = labels.vocabulary.to_list()
    found: Sequence[Any] = distribution.span_probabilities(spans, tags=names, scheme=labels.scheme)
    return [
        [SpanConfidence(*span, probability) for span, probability in zip(row, probabilities.tolist(), strict=True)]
        for row, probabilities in zip(spans, found, strict=True)
    ]


def token_confidences(marginals: Any, labels: Labels, tags: Sequence[Sequence[str]]) -> list[list[float]]:
    """P(the token has this tag) for each token of some sentences and tags in the scheme of the data."""
    known = np.zeros(marginals.shape[:2], np.int64)
    for row, of_row in enumerate(tags):
        known[row, : len(of_row)] = labels.indices(Sentence(("",) * len(of_row), tuple(of_row)))
    found = tag_probabilities(marginals, known, labels).tolist()
    return [shares[: len(of_row)] for shares, of_row in zip(found, tags, strict=True)]


def tag_probabilities(marginals: Any, best: Any, labels: Labels) -> Array:
    """P(the token has this tag) [batch, n]: the labels that mean the same tag in the data are added up.

    `marginals` [batch, n, c] and `best` [batch, n] are arrays or tensors.
    """
    shares = _array(marginals)
    same = np.zeros((len(labels.vocabulary), len(labels.vocabulary)), shares.dtype)
    for label, group in enumerate(labels.same_tag):
        same[label, group] = 1
    return np.minimum((shares * same[_array(best)]).sum(-1), 1)


def tag_shares(marginals: Any, labels: Labels, lengths: Sequence[int]) -> list[Array]:
    """P(the token has the tag) [n, tags] of each sentence, for the tags of `labels.tag_groups`."""
    shares = _array(marginals)  # (batch, n, c)
    means = np.zeros((len(labels.vocabulary), len(labels.tag_groups)), shares.dtype)
    for column, group in enumerate(labels.tag_groups.values()):
        means[group, column] = 1
    found = np.minimum(shares @ means, 1)
    return [found[row, :n] for row, n in enumerate(lengths)]


def _array(values: Any) -> Array:
    return values if isinstance(values, np.ndarray) else np.asarray(values.detach().cpu())
