"""Ensemble: the mean of several taggers, and a folder of folders as one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from trelliswork.data import Sentence
from trelliswork.errors import ModelError, TrellisworkError
from trelliswork.models import Ensemble, Segmenter, Tagger, TaggerConfig, load_tagger


@pytest.fixture(scope="module")
def taggers(sentences: list[Sentence], config: TaggerConfig) -> list[Tagger]:
    return [Tagger.from_data(sentences, config, seed=seed) for seed in range(3)]


def test_probabilities_are_means(taggers: list[Tagger], sentences: list[Sentence]) -> None:
    ensemble = Ensemble(taggers)
    mean = torch.stack([tagger.distribution(sentences).marginals for tagger in taggers]).mean(0)
    for i, found in enumerate(ensemble.confidences(sentences)):
        for t, (tag, confidence) in enumerate(zip(found.tags, found.tokens, strict=True)):
            assert confidence == pytest.approx(mean[i, t, ensemble.labels.meaning(tag)].sum().item(), abs=1e-5)
    names, scheme = ensemble.labels.vocabulary.to_list(), ensemble.labels.scheme
    likely = ensemble.likely_spans(sentences[:1], 0.05)[0]
    assert likely
    for span in likely:
        each = [
            tagger.distribution(sentences[:1]).span_probability(
                span.start, span.end, span.label, tags=names, scheme=scheme
            )
            for tagger in taggers
        ]
        assert span.probability == pytest.approx(torch.stack(each).mean().item(), abs=1e-5)


def test_one_tagger_alone_is_itself(taggers: list[Tagger], sentences: list[Sentence]) -> None:
    alone = Ensemble(taggers[:1])
    assert alone.tag(sentences) == taggers[0].tag(sentences)
    assert alone.tag(sentences, threshold=0.1) == taggers[0].tag(sentences, threshold=0.1)
    assert alone.n_parameters == taggers[0].n_parameters


def test_a_folder_of_models_is_an_ensemble(taggers: list[Tagger], sentences: list[Sentence], tmp_path: Path) -> None:
    for seed, tagger in enumerate(taggers):
        tagger.save(tmp_path / f"seed-{seed}")
    loaded = load_tagger(tmp_path)
    assert isinstance(loaded, Ensemble)
    assert loaded.tag(sentences) == Ensemble(taggers).tag(sentences)


def test_what_the_members_are_and_what_is_exported(taggers: list[Tagger], tmp_path: Path) -> None:
    for seed, tagger in enumerate(taggers):
        tagger.metrics["dev"] = {"metric": "f1", "score": 0.5 + seed / 10}
        tagger.save(tmp_path / f"seed-{seed}")
    loaded = load_tagger(tmp_path)
    described = loaded.describe()
    assert described.kind.startswith("3 models that answer together, each a window network under a linear-chain CRF")
    assert dict(described.sections)["members"] == {f"seed-{i}": f"dev f1 {50 + 10 * i}.00" for i in range(3)}
    each = [{pair: score for score, *pair_ in t.describe().transitions for pair in [tuple(pair_)]} for t in taggers]
    for score, before, after in described.transitions:
        assert score == pytest.approx(sum(one[before, after] for one in each) / 3)
    assert list(loaded.exported) == ["seed-0", "seed-1", "seed-2"]
    assert list(taggers[0].exported.values()) == taggers[:1]


def test_members_must_fit_together(taggers: list[Tagger], sentences: list[Sentence], config: TaggerConfig) -> None:
    with pytest.raises(TrellisworkError, match="got none"):
        Ensemble([])
    other = Tagger.from_data([Sentence(("a", "b"), ("N", "V"))], config)
    with pytest.raises(TrellisworkError, match="those of number 2 are different"):
        Ensemble([taggers[0], other])
    segmenter = Segmenter.from_data(sentences, replace(config, max_length=4))
    with pytest.raises(TrellisworkError, match="got a Segmenter as number 2"):
        Ensemble([taggers[0], segmenter])  # type: ignore[list-item]


def test_an_empty_folder_is_no_ensemble(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="expected a folder with folders of models"):
        Ensemble.load(tmp_path)
