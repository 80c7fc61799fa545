"""p(tags | words) of a batch of sentences, and what taggers answer from it: tags, alternatives, confidences; all exact.

A tagger makes one `TagPosterior` for each batch (see `SentenceTagger`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

import numpy as np

from trelliswork.data import Sentence
from trelliswork.errors import TrellisworkError
from trelliswork.lazy import named
from trelliswork.models.base import PartProbability
from trelliswork.models.expected_counts import Counting
from trelliswork.models.taggers.labels import Labels, Pins
from trelliswork.models.taggers.span_choice import likely_spans
from trelliswork.runtime.arrays import INF, Array, Bool, Int
from trelliswork.tags.schemes import spans_of

if TYPE_CHECKING:
    from torch import Tensor

    from trelliswork.distributions import LinearChain
    from trelliswork.distributions.grouped_chain import TagDistribution
    from trelliswork.models.taggers.features.crf.array_chain import ArrayChain

    Values = Array | Tensor

TAG_COUNTING = "trelliswork.models.taggers.averaged_tagger:tag_counting"  # needs torch


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


class TagPosterior(ABC):
    """p(tags | words, pins) of a batch of sentences that have words; every answer has a row for each of them."""

    @abstractmethod
    def best_tags(self) -> list[list[str]]:
        """Return the tags of the most probable analysis."""

    @abstractmethod
    def analyses(self, top_k: int) -> list[list[Analysis]]:
        """Return the `top_k` best analyses, best first; fewer when fewer are possible."""

    @abstractmethod
    def confidences(self) -> list[Confidences]:
        """Return the best tags with the probability of each token's tag and of each span."""

    @abstractmethod
    def likely_spans(self, threshold: float) -> list[list[SpanConfidence]]:
        """Return all spans with a probability of `threshold` or more; they may overlap."""

    @abstractmethod
    def token_confidences(self, tags: Sequence[Sequence[str]]) -> list[list[float]]:
        """Return the probability of each of some tags."""

    @abstractmethod
    def tag_shares(self) -> list[Array]:
        """Return the probability of each tag of `labels.tag_groups` at each token, [n, tags]."""

    @abstractmethod
    def counting(self) -> Counting:
        """Return the distributions with the costs that count spans, or plain tags (see `Model.expected_counts`)."""


class ChainPosterior(TagPosterior):
    """Answers from one chain over the labels of the tokens.

    Args:
        chain: p(labels | words, pins) of the batch.
        labels: the labels by their number in the chain.
        batch: the sentences, in the order of the rows.
    """

    def __init__(self, chain: TagDistribution, labels: Labels, batch: Sequence[Sentence]) -> None:
        self.chain, self.labels, self.batch = chain, labels, batch

    def best_tags(self) -> list[list[str]]:
        return _tags_of_rows(self.chain.argmax, self.labels, self.batch)

    def analyses(self, top_k: int) -> list[list[Analysis]]:
        values, scores = self.chain.top_k(top_k)  # (k, batch, n), (k, batch)
        exists = scores > -INF  # of scores, not of probabilities: those of a long sentence underflow
        probabilities = self.chain.log_prob(values).double().exp().tolist()
        answers: list[list[Analysis]] = []
        for i, sentence in enumerate(self.batch):
            possible = exists[:, i].nonzero()[:, 0].tolist()
            answers.append(
                [
                    Analysis(self.labels.tags(values[k, i, : len(sentence)].tolist()), probabilities[k][i])
                    for k in possible or [0]
                ]
            )
        return answers

    def confidences(self) -> list[Confidences]:
        return confidences_of(self.chain, self.labels, self.batch)

    def likely_spans(self, threshold: float) -> list[list[SpanConfidence]]:
        return likely_spans([self.chain], self.labels, list(map(len, self.batch)), threshold)

    def token_confidences(self, tags: Sequence[Sequence[str]]) -> list[list[float]]:
        return token_confidences(self.chain.marginals, self.labels, tags)

    def tag_shares(self) -> list[Array]:
        return tag_shares(self.chain.marginals, self.labels, list(map(len, self.batch)))

    def counting(self) -> Counting:
        counting: Counting = named(TAG_COUNTING)([self.chain], self.labels)
        return counting


@overload
def constrained(
    chain: LinearChain, labels: Labels, sentences: Sequence[Sentence], pins: Sequence[Pins] | None
) -> LinearChain: ...


@overload
def constrained(
    chain: TagDistribution, labels: Labels, sentences: Sequence[Sentence], pins: Sequence[Pins] | None
) -> TagDistribution: ...


def constrained(
    chain: TagDistribution, labels: Labels, sentences: Sequence[Sentence], pins: Sequence[Pins] | None
) -> TagDistribution:
    """Return the chain under what is known of its labels.

    Args:
        chain: p(labels | words) of the sentences.
        labels: the labels by their number in the chain.
        sentences: a row of the chain for each.
        pins: of each sentence the tags that are known: `{0: "B-NP"}` says that the first token begins an NP.

    Returns:
        p(labels | words, pins).
    """
    return chain if pins is None or not any(pins) else chain.constrain(_allowed(chain, labels, sentences, pins))


def _allowed(
    chain: TagDistribution, labels: Labels, sentences: Sequence[Sentence], pins: Sequence[Pins]
) -> Bool[Tensor, "batch n c"]:
    """Return True for each label that the pins leave."""
    shape = (*chain.batch_shape, *chain.event_shape, len(labels.vocabulary))
    allowed = np.ones(shape, bool)
    for row, (sentence, known) in enumerate(zip(sentences, pins, strict=True)):
        for i, tag in known.items():
            if not 0 <= i < len(sentence):
                raise TrellisworkError(f"a pin must be on token 0..{len(sentence) - 1}; got {i} ({tag!r})")
            allowed[row, i] = False
            allowed[row, i, labels.meaning(tag)] = True
    return chain.log_partition.new_tensor(allowed).bool()


def confidences_of(
    chain: TagDistribution | ArrayChain, labels: Labels, sentences: Sequence[Sentence]
) -> list[Confidences]:
    """Return token marginals and span probabilities of the best tags of each sentence.

    Args:
        chain: p(labels | words) of the sentences.
        labels: the labels by their number in the chain.
        sentences: a row of the chain for each.

    Returns:
        The confidences of each sentence.
    """
    best = chain.argmax  # (batch, n)
    tokens = tag_probabilities(chain.marginals, best, labels)
    tags = _tags_of_rows(best, labels, sentences)
    spans = span_confidences(chain, labels, tags)
    return [
        Confidences(row_tags, tokens[i, : len(row_tags)].tolist(), row_spans)
        for i, (row_tags, row_spans) in enumerate(zip(tags, spans, strict=True))
    ]


def _tags_of_rows(
    rows: Array | Int[Tensor, "batch n"], labels: Labels, sentences: Sequence[Sentence]
) -> list[list[str]]:
    return [labels.tags(row[: len(sentence)].tolist()) for row, sentence in zip(rows, sentences, strict=True)]


def span_confidences(
    chain: TagDistribution | ArrayChain, labels: Labels, tags: Sequence[Sequence[str]]
) -> list[list[SpanConfidence]]:
    """Return P(exactly this span) for each span that the tags spell out.

    Args:
        chain: p(labels | words) of the sentences.
        labels: the labels by their number in the chain.
        tags: for each row the tags whose spans are asked for.

    Returns:
        The spans of each row with their probabilities.
    """
    spans = [spans_of(row, labels.data_scheme) for row in tags]
    if not any(spans):
        return [[] for _ in spans]
    names = labels.vocabulary.to_list()
    rows: Sequence[Values] = chain.span_probabilities(spans, tags=names, scheme=labels.scheme)
    return [
        [SpanConfidence(*span, share) for span, share in zip(of_row, shares.tolist(), strict=True)]
        for of_row, shares in zip(spans, rows, strict=True)
    ]


def token_confidences(marginals: Values, labels: Labels, tags: Sequence[Sequence[str]]) -> list[list[float]]:
    """Return P(the token has this tag) for each token of some sentences and tags in the scheme of the data.

    Args:
        marginals: probabilities of labels [batch, n, c].
        labels: the labels by number.
        tags: for each row the tags that are asked for.

    Returns:
        The probability of each tag.
    """
    known = np.zeros(marginals.shape[:2], np.int64)
    for row, of_row in enumerate(tags):
        known[row, : len(of_row)] = labels.indices(Sentence(("",) * len(of_row), tuple(of_row)))
    shares = tag_probabilities(marginals, known, labels).tolist()
    return [row[: len(of_row)] for row, of_row in zip(shares, tags, strict=True)]


def tag_probabilities(marginals: Values, best: Values, labels: Labels) -> Array:
    """Return P(the token has this tag) [batch, n]: the labels that mean the same tag in the data are added up.

    `marginals` [batch, n, c] and `best` [batch, n] are arrays or tensors.

    Args:
        marginals: probabilities of labels [batch, n, c].
        best: labels [batch, n].
        labels: the labels by number.

    Returns:
        Probabilities [batch, n].
    """
    shares = _array(marginals)
    same = np.zeros((len(labels.vocabulary), len(labels.vocabulary)), shares.dtype)
    for label, group in enumerate(labels.same_tag):
        same[label, group] = 1
    return np.minimum((shares * same[_array(best)]).sum(-1), 1)


def tag_shares(marginals: Values, labels: Labels, lengths: Sequence[int]) -> list[Array]:
    """Return P(the token has the tag) [n, tags] of each sentence, for the tags of `labels.tag_groups`.

    Args:
        marginals: probabilities of labels [batch, n, c].
        labels: the labels by number.
        lengths: tokens of each row.

    Returns:
        For each row probabilities [n, tags].
    """
    shares = _array(marginals)  # (batch, n, c)
    means = np.zeros((len(labels.vocabulary), len(labels.tag_groups)), shares.dtype)
    for column, group in enumerate(labels.tag_groups.values()):
        means[group, column] = 1
    of_tags = np.minimum(shares @ means, 1)
    return [of_tags[row, :n] for row, n in enumerate(lengths)]


def _array(values: Values) -> Array:
    return values if isinstance(values, np.ndarray) else np.asarray(values.detach().cpu())
