"""Spans above a threshold: all of them, with exact probabilities, and the best that do not overlap."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any

import pytest
import torch

from trelliswork.data import Sentence
from trelliswork.distributions import LinearChain
from trelliswork.distributions.spans import Span
from trelliswork.errors import TrellisworkError
from trelliswork.models import Segmenter, SpanConfidence, Tagger, TaggerConfig
from trelliswork.models.taggers.span_choice import choose_spans
from trelliswork.tags.schemes import spans_of


@pytest.fixture(scope="module", params=["IOBES", "data"])
def tagger(request: pytest.FixtureRequest, sentences: list[Sentence], config: TaggerConfig) -> Tagger:
    return Tagger.from_data(sentences, replace(config, label_scheme=request.param), seed=1)


def test_likely_spans_are_all_that_are_likely(tagger: Tagger, sentences: list[Sentence]) -> None:
    chain, names = tagger.distribution(sentences), tagger.labels.vocabulary.to_list()
    every = [
        [(i, j, kind) for i in range(len(each)) for j in range(i + 1, len(each) + 1) for kind in ("NP", "VP")]
        for each in sentences
    ]
    shares = chain.span_probabilities(every, tags=names, scheme=tagger.labels.scheme)
    for threshold in (0.02, 0.1):
        for found, spans, probabilities in zip(tagger.likely_spans(sentences, threshold), every, shares, strict=True):
            expected = {span: p for span, p in zip(spans, probabilities.tolist(), strict=True) if p >= threshold}
            assert {(each.start, each.end, each.label): each.probability for each in found} == pytest.approx(expected)


def test_few_spans_are_looked_at_even_if_the_model_is_unsure(tagger: Tagger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where every tag is possible everywhere, not all n² spans are looked at: long ones cannot be likely."""
    looked_at: list[int] = []
    whole = LinearChain.span_probabilities

    def counted(self: LinearChain, spans: list[list[Span]], **names: Any) -> list[torch.Tensor]:
        looked_at.append(sum(map(len, spans)))
        return whole(self, spans, **names)

    monkeypatch.setattr(LinearChain, "span_probabilities", counted)
    for n in (100, 200):
        tagger.likely_spans([Sentence(("word",) * n, features=(("NN",) * n,))], 0.005)
    assert looked_at[1] < 2.5 * looked_at[0] and looked_at[1] < 200 * 40


def test_chosen_spans_are_the_best_that_do_not_overlap() -> None:
    generator = torch.Generator().manual_seed(3)
    for _ in range(40):
        bounds = torch.randint(0, 5, (6, 2), generator=generator).tolist()
        shares = torch.rand(6, generator=generator).tolist()
        spans = [SpanConfidence(min(b), max(b) + 1, "X", p) for b, p in zip(bounds, shares, strict=True)]
        chosen = choose_spans(spans, 5, threshold=0.3)
        assert all(left.end <= right.start for left, right in pairwise(chosen))
        assert sum(each.probability - 0.3 for each in chosen) == pytest.approx(_best_by_trying(spans, 0.3))


def _best_by_trying(spans: list[SpanConfidence], threshold: float) -> float:
    return max(
        sum(span.probability - threshold for span in subset)
        for size in range(len(spans) + 1)
        for subset in combinations(spans, size)
        if all(a.end <= b.start or b.end <= a.start for a, b in combinations(subset, 2))
    )


def test_a_low_threshold_finds_more_than_the_best_tags(tagger: Tagger, sentences: list[Sentence]) -> None:
    low, high = tagger.tag(sentences, threshold=0.02), tagger.tag(sentences, threshold=0.9)
    assert sum(len(spans_of(tags, "IOB2")) for tags in low) > 0
    assert all(tag == "O" for tags in high for tag in tags), "the untrained tagger is sure of nothing"
    assert [list(map(len, low))] == [list(map(len, sentences))]
    assert tagger.tag(sentences[0], threshold=0.02) == low[0]
    assert tagger.evaluate(sentences, threshold=0.9)["f1"] == 0


def test_pins_hold(tagger: Tagger, sentences: list[Sentence]) -> None:
    pinned = tagger.tag(sentences[:1], pins=[{0: "B-VP", 1: "I-VP", 2: "O"}], threshold=0.5)
    assert pinned == [["B-VP", "I-VP", "O"]]


def test_segments_have_likely_spans_too(sentences: list[Sentence], config: TaggerConfig) -> None:
    segmenter = Segmenter.from_data(sentences, replace(config, max_length=4), seed=1)
    marginals, found = (
        segmenter.segmentations(sentences[:1]).marginals.detach(),
        segmenter.likely_spans(sentences[:1], 0.01),
    )
    assert len(found[0]) == int((marginals[0, :, :, 1:] >= 0.01).sum()) > 3
    for span in found[0]:
        kind = segmenter.kinds.index(span.label)
        expected = float(marginals[0, span.start, span.end - span.start - 1, kind])
        assert span.probability == pytest.approx(expected)
    assert len(segmenter.tag(sentences[:1], threshold=0.1)[0]) == len(sentences[0])


@pytest.mark.parametrize("threshold", [0.0, -1.0, 1.5, float("nan")])
def test_a_threshold_is_a_probability(tagger: Tagger, sentences: list[Sentence], threshold: float) -> None:
    with pytest.raises(TrellisworkError, match="threshold must lie in"):
        tagger.tag(sentences, threshold=threshold)


def test_plain_tags_have_no_threshold(config: TaggerConfig) -> None:
    plain = Tagger.from_data([Sentence(("a", "b"), ("N", "V"))], config)
    with pytest.raises(TrellisworkError, match="plain tags"):
        plain.tag([Sentence(("a",))], threshold=0.2)


@pytest.mark.parametrize("kind", [Tagger, Segmenter])
def test_confidences_are_those_of_the_chosen_spans(
    kind: type[Tagger] | type[Segmenter], sentences: list[Sentence], config: TaggerConfig
) -> None:
    model = kind.from_data(sentences, replace(config, max_length=4), seed=1)
    empty = Sentence(())
    found = model.confidences([*sentences, empty], threshold=0.1)
    assert [each.tags for each in found] == model.tag([*sentences, empty], threshold=0.1)
    assert [each.spans for each in found] == model.spans([*sentences, empty], 0.1)
    best = model.confidences(sentences)
    for sure, above in zip(best, found, strict=False):
        for ours, theirs, share, other in zip(sure.tags, above.tags, sure.tokens, above.tokens, strict=True):
            assert ours != theirs or share == pytest.approx(other, abs=1e-6)
