"""Segmenter: learns, answers exactly, obeys pins, saves and loads."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from trelliswork.data import Sentence
from trelliswork.errors import DataError, TrellisworkError
from trelliswork.models import Segmenter, TaggerConfig, load_tagger
from trelliswork.tags.schemes import spans_of
from trelliswork.training import TrainingConfig, train
from trelliswork.training.progress import Progress

FAST = TrainingConfig(epochs=40, patience=40, batch_tokens=20, lr=0.02)


def fitted(sentences: list[Sentence], config: TaggerConfig, **settings: object) -> Segmenter:
    segmenter = Segmenter.from_data(sentences, replace(config, segment_dim=16, max_length=4, **settings), seed=1)
    train(segmenter, sentences, sentences, FAST, progress=Progress())
    return segmenter


@pytest.fixture(scope="module")
def fitted_once(sentences: list[Sentence], config: TaggerConfig) -> Segmenter:
    return fitted(sentences, config, encoder="lstm")


@pytest.fixture
def segmenter(fitted_once: Segmenter) -> Segmenter:
    return copy.deepcopy(fitted_once)


@pytest.mark.parametrize(("segments", "encoder"), [("pyramid", "gru"), ("endpoints", "window")])
def test_overfits(sentences: list[Sentence], config: TaggerConfig, segments: str, encoder: str) -> None:
    segmenter = fitted(sentences, config, segments=segments, encoder=encoder, characters="cnn")
    assert segmenter.tag(sentences) == [list(sentence.tags or ()) for sentence in sentences]


def test_loss_is_the_negative_log_probability(segmenter: Segmenter, sentences: list[Sentence]) -> None:
    found = segmenter.segmentations(sentences)
    gold = [
        [(i, j, segmenter.kinds.index(kind)) for i, j, kind in spans_of(each.tags or (), "IOB2")] for each in sentences
    ]
    filled = [_with_outside(row, len(each)) for row, each in zip(gold, sentences, strict=True)]
    segmenter.eval()
    torch.testing.assert_close(segmenter.loss(sentences), -found.log_prob(filled).sum())


def _with_outside(spans: list[tuple[int, int, int]], n: int) -> list[tuple[int, int, int]]:
    covered = {i for first, last, _ in spans for i in range(first, last)}
    return sorted([*spans, *((i, i + 1, 0) for i in range(n) if i not in covered)])


def test_confidences_agree_with_all_analyses(segmenter: Segmenter) -> None:
    sentence = Sentence(("old", "Ann", "left"), None, (("A", "N", "V"),))
    (answers,) = segmenter.analyses([sentence], top_k=1000)
    (confidences,) = segmenter.confidences([sentence])
    assert sum(answer.probability for answer in answers) == pytest.approx(1, abs=1e-5)
    assert len({tuple(answer.tags) for answer in answers}) == len(answers)
    assert confidences.tags == answers[0].tags
    for i, tag in enumerate(confidences.tags):
        same = sum(answer.probability for answer in answers if answer.tags[i] == tag)
        assert confidences.tokens[i] == pytest.approx(same, abs=1e-5)
    assert confidences.spans
    for span in confidences.spans:
        wanted = (span.start, span.end, span.label)
        same = sum(answer.probability for answer in answers if wanted in spans_of(answer.tags, "IOB2"))
        assert span.probability == pytest.approx(same, abs=1e-5)


def test_pins_leave_exactly_the_analyses_that_agree(segmenter: Segmenter) -> None:
    sentence = Sentence(("old", "Ann", "left"), None, (("A", "N", "V"),))
    (free,) = segmenter.analyses([sentence], top_k=1000)
    for pins in ({1: "I-NP"}, {1: "B-VP", 2: "O"}, {0: "B-NP"}):
        (pinned,) = segmenter.analyses([sentence], top_k=1000, pins=[pins])
        agreeing = [each for each in free if all(each.tags[i] == tag for i, tag in pins.items())]
        total = sum(each.probability for each in agreeing)
        expected = {tuple(each.tags): each.probability / total for each in agreeing}
        assert {tuple(each.tags): each.probability for each in pinned} == pytest.approx(expected, abs=1e-5)


def test_batching_does_not_change_an_answer(segmenter: Segmenter, sentences: list[Sentence]) -> None:
    for sentence, answer in zip(sentences, segmenter.confidences(sentences), strict=True):
        (alone,) = segmenter.confidences([sentence])
        assert alone.tags == answer.tags
        assert alone.tokens == pytest.approx(answer.tokens, abs=1e-5)


def test_round_trip(segmenter: Segmenter, sentences: list[Sentence], tmp_path: Path) -> None:
    segmenter.save(tmp_path / "model")
    loaded = load_tagger(tmp_path / "model")
    assert isinstance(loaded, Segmenter)
    assert loaded.config == segmenter.config
    assert loaded.confidences(sentences) == segmenter.confidences(sentences)


def test_a_span_that_is_too_long_is_named(segmenter: Segmenter) -> None:
    long = Sentence(("a",) * 6, ("O", "B-NP", *["I-NP"] * 4), (("D",) * 6,), line=3, file="train.conll")
    with pytest.raises(DataError, match=r"train\.conll:4: expected spans of at most 4 tokens, got a NP of 5"):
        segmenter.loss([long])


def test_plain_tags_are_refused(sentences: list[Sentence]) -> None:
    plain = [Sentence(sentence.words, sentence.features[0]) for sentence in sentences]
    with pytest.raises(TrellisworkError, match="a segmenter needs tags of spans"):
        Segmenter.from_data(plain)
