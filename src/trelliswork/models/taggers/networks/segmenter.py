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
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from trelliswork.data import Sentence, WordVectors
from trelliswork.errors import DataError, TrellisworkError
from trelliswork.logs import count
from trelliswork.models.base import Description, Readable
from trelliswork.models.expected_counts import Counting
from trelliswork.models.networks.attribution import Attribution
from trelliswork.models.networks.features import TokenFeatures
from trelliswork.models.networks.stored_network import strongest_transitions
from trelliswork.models.networks.word_network import EncodedSentence, WordNetwork
from trelliswork.models.recipe import Material, Note, Options
from trelliswork.models.storage import StoredConfig
from trelliswork.models.taggers.labels import Labels, Pins, tags_of_gold
from trelliswork.models.taggers.networks.building import (
    attribute_rivals,
    describe_tagger,
    make_direct_connections,
    make_segment_scorer,
    network_seconds,
    parts_from_data,
    parts_from_stored,
    stored_labels,
)
from trelliswork.models.taggers.networks.config import TaggerConfig
from trelliswork.models.taggers.networks.word_votes import WordExplanation, explained_tags
from trelliswork.models.taggers.posterior import Analysis, Confidences, SpanConfidence, TagPosterior
from trelliswork.models.taggers.sentence_tagger import SentenceTagger
from trelliswork.nn.inputs import TokenBatch
from trelliswork.nn.scorers.spans import sums_over_segments
from trelliswork.nn.semi_crf import SemiCRF
from trelliswork.runtime.arrays import Array, Bool, Float, Int
from trelliswork.tags.schemes import canonical, infer_scheme, spans_of, split_tag, tags_of

if TYPE_CHECKING:
    from trelliswork.distributions import SemiMarkov

OUTSIDE, SEGMENTS = "O", "segments"
Segments = Sequence[tuple[int, int, int]]  # first token, behind the last, kind


class Segmenter(WordNetwork, SentenceTagger):
    """Inputs, encoder, segment scorer and semi-CRF. Tokens outside spans are segments of one token.

    Args:
        config: the settings.
        features: what is read of words.
        labels: the labels, which must spell spans.
    """

    CONFIG = TaggerConfig
    STRUCTURE: ClassVar[str] = "semi-Markov CRF"
    graph = "segments"
    explains = True

    def __init__(self, config: TaggerConfig, features: TokenFeatures, labels: Labels):
        super().__init__(config, features)
        self.labels = labels
        if not labels.has_spans:
            raise TrellisworkError("a segmenter needs tags of spans such as B-NP and I-NP; train a tagger instead")
        self.kinds = [OUTSIDE, *dict.fromkeys(split_tag(tag)[1] for tag in labels.vocabulary if tag != OUTSIDE)]
        self.scorer = make_segment_scorer(config, self.encoder.dim, len(self.kinds))
        self.direct = make_direct_connections(config, features, len(self.kinds))
        self.crf = SemiCRF.from_labels(self.kinds, config.max_length, outside=OUTSIDE)

    @classmethod
    def from_data(
        cls,
        train: Sequence[Sentence],
        config: TaggerConfig | None = None,
        *,
        scheme: str | None = None,
        vectors: WordVectors | None = None,
        seed: int = 0,
    ) -> Self:
        """Return a new model whose vocabularies and labels come from tagged sentences.

        Args:
            train: the training data, with tags of spans.
            config: the settings; those of `TaggerConfig()` if None.
            scheme: the scheme of the tags (IOB1, IOB2, IOBES, plain), inferred when None.
            vectors: pretrained vectors, read in addition to the words of the training data.
            seed: what the initial weights depend on, and they on nothing else.

        Returns:
            The model, with its initial weights.
        """
        return cls.initialised(train, vectors, seed, *parts_from_data(train, config, scheme, vectors))

    @classmethod
    def from_material(cls, material: Material, config: TaggerConfig, options: Options, seed: int) -> Self:
        return cls.from_data(material.train, config, scheme=material.scheme, vectors=material.files, seed=seed)

    def cost(self, n: int, *, top_k: int = 0, choices: bool = False, explain: bool = False) -> float:
        return (
            super().cost(n, top_k=top_k, choices=choices)
            + network_seconds(n, explain=explain)
            + self.encoder_cost(n, explain=explain)
        )

    def describe(self, top: int = 20) -> Description:
        return describe_tagger(self)

    def explain(self, sentences: Readable) -> list[WordExplanation]:
        """Return the tags of each sentence, the words that they are due to, and the alternatives."""
        return [explained_tags(self, each) for each in self.sentences_of(sentences)]

    def attributed(self, sentence: Sentence, value: Segments, rivals: Sequence[Segments]) -> list[Attribution]:
        """Return the shares of the words in the difference between the scores of a value and of each rival.

        Args:
            sentence: the sentence.
            value: its segments.
            rivals: other segmentations of it.

        Returns:
            An attribution for each rival.
        """
        return attribute_rivals(self, self.margins, sentence, value, rivals)

    def stored_config(self) -> dict[str, object]:
        return super().stored_config() | stored_labels(self.labels)

    @classmethod
    def from_stored(cls, config: StoredConfig) -> Self:
        return cls(*parts_from_stored(config))

    @classmethod
    def learnable(cls, material: Material, config: TaggerConfig, file: str, note: Note) -> list[Sentence]:
        """Return the sentences without a span of more tokens than a segmenter can see, and a note about the others.

        Args:
            material: the training material.
            config: the settings, with the longest span.
            file: the name of the training file, for errors.
            note: called with how many sentences are left out.

        Returns:
            The sentences to learn from.
        """
        train, scheme, longest = material.train, material.scheme, config.max_length
        known = canonical(scheme) if scheme is not None else infer_scheme([sentence.tags or () for sentence in train])
        if known == "plain":
            return train
        kept = [each for each in train if longest_span(each, known) <= longest]
        n_left, needed = len(train) - len(kept), max(longest_span(each, known) for each in train)
        if not kept:
            problem = f"every sentence has a span of more than {longest} tokens"
            raise DataError(file, f"{problem}; add --max-length {needed}")
        if n_left:
            left = f"{count(n_left, 'training sentence')} with spans of more than {longest} tokens left out"
            note(f"note: {left}; --max-length {needed} keeps all")
        return kept

    def gold(self, sentence: Sentence) -> list[int]:
        """Return the kind of each segment at its first token, -1 at its others; one that is too long is an error."""
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
        """Return the scores of each segment, by first token, length and kind."""
        scores: Tensor = self.scorer(self.encode_tokens(batch))
        if self.direct is None:
            return scores
        return scores + sums_over_segments(self.direct(batch), self.config.max_length)

    def loss(self, batch: Sequence[Sentence] | Sequence[EncodedSentence]) -> Float[Tensor, ""]:
        """Return -log p(segments | words), summed over the batch."""
        # [S0, likelihood]
        scores, starts, lengths = self._scores_and_starts(batch)
        return self.crf.loss(scores, starts, lengths, reduction="sum")

    def scored(
        self, batch: Sequence[Sentence] | Sequence[EncodedSentence]
    ) -> tuple[SemiMarkov, Int[Tensor, "batch n"]]:
        """Return p(segments | words) of a batch and its gold segments, for objectives other than the likelihood."""
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
        """Return p(segments | words, pins) of a batch of sentences; labels are indices into `kinds`."""
        with self.evaluating():
            encoded = self.encode(sentences)
            scores = self(self.token_batch(encoded))
            segments = self.crf.distribution(scores, _lengths(encoded, scores))
            if pins is None or not any(pins):
                return segments
            return segments.constrain(self._allowed(sentences, pins, segments))

    def _allowed(
        self, sentences: Sequence[Sentence], pins: Sequence[Pins], segments: SemiMarkov
    ) -> Bool[Tensor, "batch n k c"]:
        """Return where segments agree with the pins: B-X begins one of kind X there, I-X goes on with it."""
        _, n, k, c = segments.segments.shape
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
        return allowed.to(segments.segments.device)

    def tags_of_value(self, value: Segments, n: int) -> list[str]:
        """Return the tags of segments of a sentence of n words, in the scheme of the data."""
        return self._spelling.tags(value, n)

    @property
    def _spelling(self) -> SegmentSpelling:
        return SegmentSpelling(self.kinds, self.labels)

    def best_values(self, batch: Sequence[Sentence], pins: Sequence[Pins] | None) -> list[Segments]:
        """Return the best segments of each sentence."""
        segments: list[Segments] = self.segmentations(batch, pins).argmax
        return segments

    def margins(
        self, batch: TokenBatch, values: Sequence[Segments], rivals: Sequence[Segments]
    ) -> Float[Tensor, " batch"]:
        """Return by how much the scores of segments are above those of their rivals.

        Args:
            batch: copies of a sentence, or several sentences.
            values: the segments of each row.
            rivals: other segments of each row.

        Returns:
            Differences of scores, [batch].
        """
        segments = self.crf.distribution(self(batch), batch.mask.sum(1))
        return segments.score(list(values)) - segments.score(list(rivals))

    def _posterior(self, batch: Sequence[Sentence], pins: Sequence[Pins] | None) -> SegmentPosterior:
        return SegmentPosterior(self.segmentations(batch, pins), self._spelling, batch)

    def transitions(self) -> list[tuple[float, str, str]]:
        """Return the learned scores of neighbours, the strongest first."""
        return strongest_transitions(self.crf, self.kinds)


class SegmentSpelling(NamedTuple):
    """Segments as tags: `kinds` are those of segments by number, 0 is a token outside spans."""

    kinds: Sequence[str]
    labels: Labels

    def tags(self, segments: Segments, n: int) -> list[str]:
        """Return the tags of segments of a sentence of n words, in the scheme of the data."""
        spans = [(first, last, self.kinds[kind]) for first, last, kind in segments if kind != 0]
        return tags_of(spans, n, self.labels.data_scheme)

    def segments(self, tags: Sequence[str]) -> list[tuple[int, int, int]]:
        """Return all segments that tags spell out, single tokens outside spans among them."""
        spans = spans_of(tags, self.labels.data_scheme)
        covered = {i for first, last, _ in spans for i in range(first, last)}
        outside = [(i, i + 1, 0) for i in range(len(tags)) if i not in covered]
        return sorted([*outside, *((first, last, self.kinds.index(kind)) for first, last, kind in spans)])

    def tag_shares(self, marginals: Array, n: int) -> Array:
        """Return P(the token has the tag) [n, tags] from the probabilities of segments [n, k, kinds]."""
        roles = {role: np.zeros((n, len(self.kinds))) for role in "BIESO"}
        for first in range(n):
            roles["S"][first] += marginals[first, 0]
            for d in range(1, min(marginals.shape[1], n - first)):
                roles["B"][first] += marginals[first, d]
                roles["I"][first + 1 : first + d] += marginals[first, d]
                roles["E"][first + d] += marginals[first, d]
        names = [split_tag(tag) if tag != OUTSIDE else ("S", OUTSIDE) for tag in self.labels.vocabulary]
        merged = self.labels.scheme == "IOB2"  # where B begins a segment of any length, and I goes on
        meaning = {"B": "BS", "I": "IE"} if merged else {}
        by_label = [sum(roles[r][:, self.kinds.index(kind)] for r in meaning.get(role, role)) for role, kind in names]
        groups = self.labels.tag_groups.values()
        return np.minimum(np.stack([sum(by_label[i] for i in group) for group in groups], axis=1), 1.0)


class SegmentPosterior(TagPosterior):
    """Answers from a distribution over segmentations.

    Args:
        segmentations: p(segments | words, pins) of the batch.
        spelling: the segments as tags.
        batch: the sentences, in the order of the rows.
    """

    def __init__(self, segmentations: SemiMarkov, spelling: SegmentSpelling, batch: Sequence[Sentence]) -> None:
        self.segmentations, self.spelling, self.batch = segmentations, spelling, batch

    def best_tags(self) -> list[list[str]]:
        best = self.segmentations.argmax
        return [self.spelling.tags(row, len(sentence)) for row, sentence in zip(best, self.batch, strict=True)]

    def analyses(self, top_k: int) -> list[list[Analysis]]:
        values, scores = self.segmentations.top_k(top_k)
        exists = (scores > -math.inf).tolist()
        shares = self.segmentations.log_prob(values).double().exp().tolist()
        return [
            [
                Analysis(self.spelling.tags(values[rank][row], len(sentence)), shares[rank][row])
                for rank in range(top_k)
                if exists[rank][row]
            ]
            for row, sentence in enumerate(self.batch)
        ]

    def confidences(self) -> list[Confidences]:
        marginals, best = self.segmentations.marginals, self.segmentations.argmax
        return [self._confidence(marginals[i], best[i], len(sentence)) for i, sentence in enumerate(self.batch)]

    def _confidence(self, marginals: Float[Tensor, "n k c"], segments: Segments, n: int) -> Confidences:
        """Return of a token the probability that a segment of this kind begins here, or goes on here."""
        tokens, spans = [0.0] * n, []
        for first, last, kind in segments:
            for i in range(first, last):
                tokens[i] = _begins(marginals, i, kind) if i == first else _goes_on(marginals, i, kind)
            if kind != 0:
                spans.append(self._span(marginals, first, last - first - 1, kind))
        return Confidences(self.spelling.tags(segments, n), tokens, spans)

    def _span(self, marginals: Float[Tensor, "n k c"], first: int, d: int, kind: int) -> SpanConfidence:
        probability = min(float(marginals[first, d, kind]), 1.0)
        return SpanConfidence(first, first + d + 1, self.spelling.kinds[kind], probability)

    def likely_spans(self, threshold: float) -> list[list[SpanConfidence]]:
        marginals = self.segmentations.marginals
        spans: list[list[SpanConfidence]] = [[] for _ in self.batch]
        for row, first, d, kind in (marginals >= threshold).nonzero().tolist():
            if kind != 0:
                spans[row].append(self._span(marginals[row], first, d, kind))
        return spans

    def token_confidences(self, tags: Sequence[Sequence[str]]) -> list[list[float]]:
        marginals = self.segmentations.marginals
        return [
            self._confidence(marginals[row], self.spelling.segments(of_row), len(of_row)).tokens
            for row, of_row in enumerate(tags)
        ]

    def tag_shares(self) -> list[Array]:
        marginals = self.segmentations.marginals.detach().double().cpu().numpy()
        return [self.spelling.tag_shares(marginals[row], len(each)) for row, each in enumerate(self.batch)]

    def counting(self) -> Counting:
        scores, kinds = self.segmentations.segments, self.spelling.kinds

        def of_kind(kind: str) -> dict[str, Tensor]:
            costs = torch.arange(len(kinds), device=scores.device) == kinds.index(kind)
            return {"costs": costs.to(scores.dtype).expand(scores.shape)}

        return Counting([self.segmentations], kinds[1:], of_kind)


def longest_span(sentence: Sentence, scheme: str) -> int:
    """Return the number of tokens of the longest span; 0 without spans."""
    return max((end - start for start, end, _ in spans_of(sentence.tags or (), scheme)), default=0)


def _lengths(encoded: Sequence[EncodedSentence], scores: Tensor) -> Tensor:
    return torch.tensor([len(each) for each in encoded], device=scores.device)


def _begins(marginals: Float[Tensor, "n k c"], i: int, kind: int) -> float:
    return min(float(marginals[i, :, kind].sum()), 1.0)


def _goes_on(marginals: Float[Tensor, "n k c"], i: int, kind: int) -> float:
    """Return P(a segment of this kind covers token i and began before it)."""
    k = marginals.shape[1]
    return min(sum(float(marginals[first, i - first :, kind].sum()) for first in range(max(0, i - k + 1), i)), 1.0)
