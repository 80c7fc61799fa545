"""Tagger as a neural CRF and as a neural hidden-unit CRF: deep energies, pairs scored by the network, pre-training."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from trelliswork.data import Sentence
from trelliswork.errors import TrellisworkError
from trelliswork.models import Tagger, TaggerConfig
from trelliswork.models.networks.building import pretrain_encoder
from trelliswork.models.networks.word_network import PRETRAINING_RATE
from trelliswork.nn import PretrainingConfig
from trelliswork.training import TrainingConfig, train
from trelliswork.training.progress import Progress

FAST = TrainingConfig(epochs=30, batch_tokens=20, lr=0.02)


@pytest.fixture(scope="module", params=["neural CRF", "neural hidden-unit CRF"])
def tagger(request: pytest.FixtureRequest, sentences: list[Sentence], config: TaggerConfig) -> Tagger:
    settings = replace(config, encoder="deep", layers=2, transitions="network")
    if request.param == "neural hidden-unit CRF":
        settings = replace(settings, layers=1, scorer="hidden-units", hidden_units=10)
    made = Tagger.from_data(sentences, settings, seed=1)
    pretrain_encoder(made, sentences, PretrainingConfig(epochs=3, batch=10, lr=0.01))
    train(made, sentences, None, FAST, progress=Progress())
    return made


def test_overfits(tagger: Tagger, sentences: list[Sentence]) -> None:
    assert tagger.tag(sentences) == [list(each.tags or ()) for each in sentences]


def test_loss_and_decoding_are_those_of_the_distribution(tagger: Tagger, sentences: list[Sentence]) -> None:
    chain = tagger.distribution(sentences)
    assert chain.transitions.dim() == 4, "transitions differ from place to place"
    gold = torch.nn.utils.rnn.pad_sequence([torch.tensor(tagger.gold(each)) for each in sentences], batch_first=True)
    torch.testing.assert_close(tagger.loss(sentences), -chain.log_prob(gold).sum())
    best = chain.argmax.tolist()
    tags = [tagger.labels.tags(row[: len(each)]) for row, each in zip(best, sentences, strict=True)]
    assert tagger.tag(sentences) == tags
    assert [each.tags for each in tagger.confidences(sentences)] == tags


def test_illegal_tags_stay_impossible(tagger: Tagger) -> None:
    chain = tagger.distribution([Sentence(("old", "books"), features=(("A", "N"),))])
    names = tagger.labels.vocabulary
    outside, inside = names.index("O"), names.index("I-NP")
    assert chain.pairwise_marginals[0, 0, outside, inside] == 0


def test_saves_and_loads(tagger: Tagger, sentences: list[Sentence], tmp_path: Path) -> None:
    tagger.save(tmp_path / "model")
    loaded = Tagger.load(tmp_path / "model")
    assert loaded.config == tagger.config
    assert loaded.tag(sentences) == tagger.tag(sentences)


def test_pretraining_needs_a_deep_encoder_and_words(sentences: list[Sentence], config: TaggerConfig) -> None:
    with pytest.raises(TrellisworkError, match='needs encoder="deep"'):
        pretrain_encoder(Tagger.from_data(sentences, config), sentences)
    with pytest.raises(TrellisworkError, match="got none"):
        pretrain_encoder(Tagger.from_data(sentences, replace(config, encoder="deep")), [])


def test_the_settings_say_how_long_to_pretrain(sentences: list[Sentence], config: TaggerConfig) -> None:
    deep = replace(config, encoder="deep", layers=2)
    bare, found = (Tagger.from_data(sentences, replace(deep, pretrain_epochs=n), seed=1) for n in (0, 2))
    pretrain_encoder(bare, sentences, PretrainingConfig(epochs=2, lr=PRETRAINING_RATE, seed=1))
    expected, weights = bare.state_dict(), found.state_dict()
    assert all(torch.equal(weights[name], expected[name]) for name in expected)


def test_pretraining_brings_the_input_back(sentences: list[Sentence], config: TaggerConfig) -> None:
    deep = replace(config, encoder="deep", layers=1)
    error = {
        n: pretrain_encoder(
            Tagger.from_data(sentences, deep), sentences, PretrainingConfig(epochs=n, batch=10, lr=PRETRAINING_RATE)
        )[0]
        for n in (1, 200)
    }
    assert error[200] < 0.8 * error[1]


@pytest.mark.parametrize("settings", [{"pretrain_epochs": 2}, {"encoder": "deep", "pretrain_epochs": -1}])
def test_only_deep_encoders_are_pretrained(settings: dict[str, object]) -> None:
    with pytest.raises(TrellisworkError, match=r'0, or more with encoder="deep"|at least 0; got -1'):
        TaggerConfig(**settings)  # type: ignore[arg-type]
