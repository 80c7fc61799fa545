"""The example of event extraction learns on a small piece of the corpus, triggers and arguments together."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from examples import events as example
from trelliswork.data.corpus import builtin_corpus


def test_it_learns_and_prints(capsys: pytest.CaptureFixture[str]) -> None:
    scores = example.main(n_train=250, n_test=60, epochs=12, batch_tokens=80)
    assert scores["triggers"] > 0.55 and scores["arguments"] > 0.35
    assert "arguments F1" in capsys.readouterr().out


def test_the_loss_of_roles_is_that_of_every_pair_of_trigger_and_entity() -> None:
    sentences = builtin_corpus(sizes=(30, 1, 1))["train"]
    model = example.EventExtractor.from_data(sentences).eval()
    examples = model.encode(sentences, with_tags=True)
    whole = model.loss(examples)
    one_by_one = sum(model.loss([each]) for each in examples)
    torch.testing.assert_close(whole, torch.as_tensor(one_by_one), atol=1e-3, rtol=1e-4)
    pairs = sum(len(each.candidates) for each in examples)
    roles = sum(role > 0 for each in examples for *_, role in each.candidates)
    assert pairs > roles == sum(len(event.arguments) for each in sentences for event in each.events)


def test_a_saved_extractor_finds_the_same_events(tmp_path: Path) -> None:
    sentences = builtin_corpus(sizes=(30, 1, 1))["train"]
    model = example.EventExtractor.from_data(sentences)
    model.save(tmp_path / "events")
    model.save(tmp_path / "events")  # again, over itself
    loaded = example.EventExtractor.load(tmp_path / "events")
    assert loaded.roles == model.roles
    assert loaded.extract(sentences) == model.extract(sentences)
    assert any(event.arguments for events in loaded.extract(sentences) for event in events)
