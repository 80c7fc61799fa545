"""A segmenter: a network whose pyramid of segment vectors is scored by a semi-Markov CRF.

Zhuo et al. (2016), Segment-level sequence modeling using gated recursive semi-Markov conditional random fields.

>>> segmenter = Segmenter.from_data(train_sentences)                        # doctest: +SKIP
>>> train(segmenter, train_sentences, dev_sentences, out="chunker")         # doctest: +SKIP
>>> Segmenter.load("chunker").tag([Sentence(("Ann", "sings", "."))])        # doctest: +SKIP
[['B-NP', 'B-VP', 'O']]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from trelliswork.data import Sentence
from trelliswork.errors import DataError, TrellisworkError
from trelliswork.models.base import count
from trelliswork.models.expected_counts import Counting
from trelliswork.models.networks.features import TokenFeatures
from trelliswork.models.networks.stored_network import strongest_transitions
from trelliswork.models.networks.word_network import EncodedSentence
from trelliswork.models.recipe import Material, Note
from trelliswork.models.taggers.explanation import Analysis, Confidences, SpanConfidence
from trelliswork.models.taggers.labels import Labels, tags_of_gold
from trelliswork.models.taggers.networks.config import TaggerConfig
from trelliswork.models.taggers.networks.neural_tagger import NeuralTagger, make_direct_connections, make_segment_scorer
from trelliswork.models.taggers.sentence_tagger import Pins
from trelliswork.nn.inputs import TokenBatch
from trelliswork.nn.scorers.spans import sums_over_segments
from trelliswork.nn.semi_crf import SemiCRF
from trelliswork.runtime.arrays import Array
from trelliswork.runtime.shapes import Bool, Float, Int
from trelliswork.tags.schemes import canonical, infer_scheme, spans_of, split_tag, tags_of

if TYPE_CHECKING:
    from trelliswork.distributions import SemiMarkov

OUTSIDE, SEGMENTS = "O", "segments"
Segments = Sequence[tuple[int, int, int]]  # first token, behind the last, kind


class Segmenter(NeuralTagger):
    """Inputs, encoder, segment scorer and semi-CRF. Tokens outside spans are segments of one token."""

    STRUCTURE = "semi-Markov CRF"
    graph = "segments"
    counts_parts = True

    def __init__(self, config: TaggerConfig, features: TokenFeatures, labels: Labels):
        super().__init__(config, features, labels)
        if not labels.has_spans:
            raise TrellisworkError("a segmenter needs tags of spans such as B-NP and I-NP; train a tagger instead")
        self.kinds = [OUTSIDE, *dict.fromkeys(split_tag(tag)[1] for tag in labels.vocabulary if tag != OUTSIDE)]
        self.scorer = make_segment_scorer(config, self.encoder.dim, len(self.kinds))
        self.direct = make_direct_connections(config, features, len(self.kinds))
        self.crf = SemiCRF.from_labels(self.kinds, config.max_length, outside=OUTSIDE)

    @classmethod
    def learnable(cls, material: Material, config: TaggerConfig, file: str, note: Note) -> list[Sentence]:
        """The sentences without a span of more tokens than a segmenter can see, and a note about the others."""
        train, scheme, longest = material.train, material.scheme, config.max_length
        found = canonical(scheme) if scheme is not None else infer_scheme([sentence.tags or () for sentence in train])
        if found == "plain":
            return train
        kept = [each for each in train if longest_span(each, found) <= longest]
        n_left, needed = len(train) - len(kept), max(longest_span(each, found) for each in train)
        if not kept:
            problem = f"every sentence has a span of more than {longest} tokens"
            raise DataError(file, f"{problem}; add --max-length {needed}")
        if n_left:
            left = f"{count(n_left, 'training sentence')} with spans of more than {longest} tokens left out"
            note(f"note: {left}; --max-length {needed} keeps all")
        return kept

    def gold(self, sentence: Sentence) -> list[int]:
        """The kind of the segment at its first token, -1 at its others; a segment that is too long is an error."""
        starts = [0] * len(sentence)
        for first, last, kind in spans_of(tags_of_gold(sentence), self.labels.data_scheme):
            if kind not in self.kinds:
                problem = f"expected one of the kinds {', '.join(self.kinds[1:])}, got {kind!r}"
                raise DataError(sentence.file or "sentence", problem, line=sentence.line_of(first))
            if last - first > self.config.max_length:
                problem = f"expected spans of at most {self.config.max_length} tokens, got a {kind} of {last - first}"
                fix = f"train with max_length={last - first} or more"
                raise DataError(sentence.file or "sentence", f"{problem}; {fix}", line=sentence.line_of(first))
            starts[first:last] = [self.kinds.index(kind)] + [-1] * (last - first - 1)
        return starts

    def forward(self, batch: TokenBatch) -> Float[Tensor, "batch n k c"]:
        """Scores of each segment, by first token, length and kind."""
        scores: Tensor = self.scorer(self.encode_tokens(batch))
        if self.direct is None:
            return scores
        return scores + sums_over_segments(self.direct(batch), self.config.max_length)

    def loss(self, batch: Sequence[Sentence] | Sequence[EncodedSentence]) -> Float[Tensor, ""]:
        """-log p(segments | words), summed over the batch."""
        # [S0, likelihood]
        scores, starts, lengths = self._scores_and_starts(batch)
        return self.crf.loss(scores, starts, lengths, reduction="sum")

    def scored(
        self, batch: Sequence[Sentence] | Sequence[EncodedSentence]
    ) -> tuple[SemiMarkov, Int[Tensor, "batch n"]]:
        """p(segments | words) of a batch and its gold segments, for objectives other than the likelihood."""
        scores, starts, lengths = self._scores_and_starts(batch)
        return self.crf.distribution(scores, lengths), starts

    def _scores_and_starts(
        self, batch: Sequence[Sentence] | Sequence[EncodedSentence]
    ) -> tuple[Float[Tensor, "batch n k c"], Int[Tensor, "batch n"], Int[Tensor, " batch"]]:
        encoded, gold = self.encoded(batch)
        scores = self(self.token_batch(encoded)).to(self.crf.start_transitions.dtype)
        starts = pad_sequence(gold, batch_first=True, padding_value=-1).to(scores.device)
        return scores, starts, _lengths(encoded, scores)

    def segmentations(self, sentences: Sequence[Sentence], pins: Sequence[Pins] | None = None) -> SemiMarkov:
        """p(segments | words, pins) of a batch of sentences; labels are indices into `kinds`."""
        with self.evaluating():
            encoded = self.encode(sentences)
            scores = self(self.token_batch(encoded))
            found = self.crf.distribution(scores, _lengths(encoded, scores))
            return found if pins is None or not any(pins) else found.constrain(self._allowed(sentences, pins, found))

    def _allowed(
        self, sentences: Sequence[Sentence], pins: Sequence[Pins], found: SemiMarkov
    ) -> Bool[Tensor, "batch n k c"]:
        """True for each segment that agrees with the pins: B-X begins one of kind X there, I-X goes on with it."""
        _, n, k, c = found.segments.shape
        first = torch.arange(n)[:, None, None]
        past = first + torch.arange(1, k + 1)[:, None]
        allowed = torch.ones(len(sentences), n, k, c, dtype=torch.bool)
        for row, (sentence, known) in enumerate(zip(sentences, pins, strict=True)):
            for i, tag in known.items():
                if not 0 <= i < len(sentence):
                    raise TrellisworkError(f"a pin must be on token 0..{len(sentence) - 1}; got {i} ({tag!r})")
                fits = torch.zeros(n, k, c, dtype=torch.bool)
                for each in self.labels.one_of(tag):
                    roles = {self.labels.vocabulary[j][0] for j in self.labels.meaning(each)}
                    agrees = torch.arange(c) == self.kinds.index(split_tag(each)[1] if each != OUTSIDE else OUTSIDE)
                    begins = (first == i) & bool(roles & set("BSO"))
                    goes_on = (first < i) & bool(roles & set("IE"))
                    fits |= agrees & (begins | goes_on)
                covers = (first <= i) & (past > i)
                allowed[row] &= ~covers | fits
        return allowed.to(found.segments.device)

    def tags_of_value(self, value: Segments, n: int) -> list[str]:
        spans = [(first, last, self.kinds[kind]) for first, last, kind in value if kind != 0]
        return tags_of(spans, n, self.labels.data_scheme)

    def best_values(self, batch: Sequence[Sentence], pins: Sequence[Pins] | None) -> list[Segments]:
        found: list[Segments] = self.segmentations(batch, pins).argmax
        return found

    def margins(
        self, batch: TokenBatch, values: Sequence[Segments], rivals: Sequence[Segments]
    ) -> Float[Tensor, " batch"]:
        found = self.crf.distribution(self(batch), batch.mask.sum(1))
        return found.score(list(values)) - found.score(list(rivals))

    def _best_tags(self, batch: Sequence[Sentence], pins: Sequence[Pins] | None) -> list[list[str]]:
        best = self.best_values(batch, pins)
        return [self.tags_of_value(segments, len(sentence)) for segments, sentence in zip(best, batch, strict=True)]

    def _analyses(self, batch: Sequence[Sentence], pins: Sequence[Pins] | None, top_k: int) -> list[list[Analysis]]:
        found = self.segmentations(batch, pins)
        values, scores = found.top_k(top_k)
        exists, shares = (scores > -math.inf).tolist(), found.log_prob(values).double().exp().tolist()
        return [
            [
                Analysis(self.tags_of_value(values[rank][row], len(sentence)), shares[rank][row])
                for rank in range(top_k)
                if exists[rank][row]
            ]
            for row, sentence in enumerate(batch)
        ]

    def _confidences(self, batch: Sequence[Sentence], pins: Sequence[Pins] | None) -> list[Confidences]:
        found = self.segmentations(batch, pins)
        marginals, best = found.marginals, found.argmax
        return [self._confidence(marginals[row], best[row], len(sentence)) for row, sentence in enumerate(batch)]

    def _confidence(
        self, marginals: Float[Tensor, "n k c"], segments: Sequence[tuple[int, int, int]], n: int
    ) -> Confidences:
        """Of a token: the probability that a segment of this kind begins here, or goes on here."""
        tokens, spans = [0.0] * n, []
        for first, last, kind in segments:
            for i in range(first, last):
                tokens[i] = _begins(marginals, i, kind) if i == first else _goes_on(marginals, i, kind)
            if kind != 0:
                probability = min(float(marginals[first, last - first - 1, kind]), 1.0)
                spans.append(SpanConfidence(first, last, self.kinds[kind], probability))
        return Confidences(self.tags_of_value(segments, n), tokens, spans)

    def _likely_spans(
        self, batch: Sequence[Sentence], pins: Sequence[Pins] | None, threshold: float
    ) -> list[list[SpanConfidence]]:
        marginals = self.segmentations(batch, pins).marginals
        found: list[list[SpanConfidence]] = [[] for _ in batch]
        for row, first, d, kind in (marginals >= threshold).nonzero().tolist():
            if kind != 0:
                probability = min(float(marginals[row, first, d, kind]), 1.0)
                found[row].append(SpanConfidence(first, first + d + 1, self.kinds[kind], probability))
        return found

    def counting(self, batch: Sequence[Sentence], pins: Sequence[Pins] | None) -> Counting:
        found = self.segmentations(batch, pins)

        def of_kind(kind: str) -> dict[str, Tensor]:
            costs = torch.arange(len(self.kinds), device=found.segments.device) == self.kinds.index(kind)
            return {"costs": costs.to(found.segments.dtype).expand(found.segments.shape)}

        return Counting([found], self.kinds[1:], of_kind)

    def _token_confidences(
        self, batch: Sequence[Sentence], pins: Sequence[Pins] | None, tags: Sequence[Sequence[str]]
    ) -> list[list[float]]:
        marginals = self.segmentations(batch, pins).marginals
        return [
            self._confidence(marginals[row], self._segments(each), len(each)).tokens for row, each in enumerate(tags)
        ]

    def _tag_shares(self, batch: Sequence[Sentence], pins: Sequence[Pins] | None) -> list[Array]:
        marginals = self.segmentations(batch, pins).marginals.detach().double().cpu().numpy()
        return [self._shares(marginals[row], len(each)) for row, each in enumerate(batch)]

    def _shares(self, marginals: Array, n: int) -> Array:
        """P(the token has the tag) [n, tags] from the probabilities of segments [n, k, kinds]."""
        roles = {role: np.zeros((n, len(self.kinds))) for role in "BIESO"}
        for first in range(n):
            roles["S"][first] += marginals[first, 0]
            for d in range(1, min(marginals.shape[1], n - first)):
                roles["B"][first] += marginals[first, d]
                roles["I"][first + 1 : first + d] += marginals[first, d]
                roles["E"][first + d] += marginals[first, d]
        names = [split_tag(tag) if tag != OUTSIDE else ("S", OUTSIDE) for tag in self.labels.vocabulary]
        merged = self.labels.scheme == "IOB2"  # where B begins a segment of any length, and I goes on
        told = {"B": "BS", "I": "IE"} if merged else {}
        by_label = [sum(roles[r][:, self.kinds.index(kind)] for r in told.get(role, role)) for role, kind in names]
        groups = self.labels.tag_groups.values()
        return np.minimum(np.stack([sum(by_label[i] for i in group) for group in groups], axis=1), 1.0)

    def _segments(self, tags: Sequence[str]) -> list[tuple[int, int, int]]:
        """All segments that tags spell out, single tokens outside spans among them."""
        spans = spans_of(tags, self.labels.data_scheme)
        covered = {i for first, last, _ in spans for i in range(first, last)}
        outside = [(i, i + 1, 0) for i in range(len(tags)) if i not in covered]
        return sorted([*outside, *((first, last, self.kinds.index(kind)) for first, last, kind in spans)])

    def transitions(self) -> list[tuple[float, str, str]]:
        return strongest_transitions(self.crf, self.kinds)


def longest_span(sentence: Sentence, scheme: str) -> int:
    """In tokens; 0 without spans."""
    return max((end - start for start, end, _ in spans_of(sentence.tags or (), scheme)), default=0)


def _lengths(encoded: Sequence[EncodedSentence], scores: Tensor) -> Tensor:
    return torch.tensor([len(each) for each in encoded], device=scores.device)


def _begins(marginals: Float[Tensor, "n k c"], i: int, kind: int) -> float:
    return min(float(marginals[i, :, kind].sum()), 1.0)


def _goes_on(marginals: Float[Tensor, "n k c"], i: int, kind: int) -> float:
    """P(a segment of this kind covers token i and began before it)."""
    k = marginals.shape[1]
    return min(sum(float(marginals[first, i - first :, kind].sum()) for first in range(max(0, i - k + 1), i)), 1.0)
