"""DropoutAverage: the mean over dropout masks, exactly; its calibration."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from trelliswork.data import Sentence
from trelliswork.errors import TrellisworkError
from trelliswork.models import DropoutAverage, Tagger, TaggerConfig, token_calibration
from trelliswork.training import TrainingConfig, train
from trelliswork.training.progress import Progress


@pytest.fixture(scope="module")
def tagger(sentences: list[Sentence], config: TaggerConfig) -> Tagger:
    made = Tagger.from_data(sentences, replace(config, dropout=0.5, encoder="lstm", hidden=12), seed=1)
    train(made, sentences, None, TrainingConfig(epochs=6, batch_tokens=20, lr=0.02), progress=Progress())
    return made


def test_the_average_is_that_of_the_members(tagger: Tagger, sentences: list[Sentence]) -> None:
    average = DropoutAverage(tagger, n_masks=5)
    members = average.members(sentences[:2])
    differ = members[0].marginals - members[1].marginals
    assert differ.abs().max() > 0.01, "each mask is another one"
    found = average.confidences(sentences[:2])
    mean = torch.stack([member.marginals for member in members]).mean(0)
    for i, each in enumerate(found):
        for t, (tag, confidence) in enumerate(zip(each.tags, each.tokens, strict=True)):
            expected = mean[i, t, tagger.labels.meaning(tag)].sum().item()
            assert confidence == pytest.approx(expected, abs=1e-5)
    assert average.analyses(sentences[:2], top_k=1)[0][0].tags == found[0].tags


def test_span_confidences_are_means(tagger: Tagger, sentences: list[Sentence]) -> None:
    average = DropoutAverage(tagger, n_masks=4)
    (found,) = average.confidences(sentences[:1])
    names, scheme = tagger.labels.vocabulary.to_list(), tagger.labels.scheme
    for span in found.spans:
        each = [
            member.span_probability(span.start, span.end, span.label, tags=names, scheme=scheme)
            for member in average.members(sentences[:1])
        ]
        assert span.probability == pytest.approx(torch.stack(each).mean().item(), abs=1e-5)


def test_the_seed_decides_and_the_tagger_is_left_as_it_was(tagger: Tagger, sentences: list[Sentence]) -> None:
    before = tagger.confidences(sentences)
    average = DropoutAverage(tagger, n_masks=3, seed=7)
    assert average.confidences(sentences) == DropoutAverage(tagger, n_masks=3, seed=7).confidences(sentences)
    assert tagger.confidences(sentences) == before
    assert not any(layer.training for layer in tagger.modules())


def test_pins_hold_in_every_member(tagger: Tagger, sentences: list[Sentence]) -> None:
    assert DropoutAverage(tagger, n_masks=3).tag(sentences[:1], pins=[{1: "O"}])[0][1] == "O"


def test_without_dropout_nothing_changes(sentences: list[Sentence], config: TaggerConfig) -> None:
    plain = Tagger.from_data(sentences, replace(config, dropout=0.0)).eval()
    assert DropoutAverage(plain, n_masks=2).tag(sentences) == plain.tag(sentences)


def test_calibration_compares_confidence_with_accuracy(tagger: Tagger, sentences: list[Sentence]) -> None:
    average = DropoutAverage(tagger, n_masks=4)
    found = average.confidences(sentences)
    tokens = [
        (confidence, tag == gold)
        for each, sentence in zip(found, sentences, strict=True)
        for confidence, tag, gold in zip(each.tokens, each.tags, sentence.tags or (), strict=True)
    ]
    one_bin = token_calibration(average, sentences, n_bins=1)
    confidence, right = (sum(column) / len(tokens) for column in zip(*tokens, strict=True))
    assert one_bin.expected_error == pytest.approx(abs(confidence - right))
    assert one_bin.count == len(tokens)


def test_no_mask_is_refused(tagger: Tagger) -> None:
    with pytest.raises(TrellisworkError, match="n_masks must be at least 1"):
        DropoutAverage(tagger, n_masks=0)
