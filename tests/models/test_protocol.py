"""Every kind of model answers the same questions in the same way; a new kind is one file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import trelliswork as tw
from tests.models.topic_classifier import TopicClassifier
from trelliswork.cli.main import run
from trelliswork.data import Sentence, VectorSequence
from trelliswork.errors import TrellisworkError
from trelliswork.models import (
    AttributeTagger,
    Ensemble,
    FeatureTagger,
    LearningConfig,
    MultiTagger,
    Segmenter,
    Tagger,
    TaggerConfig,
    VectorTagger,
    VectorTaggerConfig,
)
from trelliswork.models.base import Answer, Model
from trelliswork.training import TrainingConfig, make_progress, train

TRAIN = [
    Sentence(("Ann", "sings"), ("B-PER", "O"), extra={"attributes": [["w=Ann"], ["w=sings"]]}),
    Sentence(("Bob", "Lee", "ran"), ("B-PER", "I-PER", "O"), extra={"attributes": [["w=Bob"], ["w=Lee"], ["w=ran"]]}),
]
TWO_TASKS = [Sentence(each.words, each.tags, (("X",) * len(each),)) for each in TRAIN]
SMALL = TaggerConfig(word_dim=4, hidden=8, affix_dim=2, max_length=2)


def of_sentences() -> dict[str, Model]:
    few = LearningConfig(max_iterations=3)
    return {
        "Tagger": Tagger.from_data(TRAIN, SMALL),
        "Segmenter": Segmenter.from_data(TRAIN, SMALL),
        "FeatureTagger": FeatureTagger.fit(TRAIN, few),
        "AttributeTagger": AttributeTagger.fit(TRAIN, few),
        "Ensemble": Ensemble([Tagger.from_data(TRAIN, SMALL, seed=seed) for seed in range(2)]),
    }


@pytest.fixture(scope="module")
def models() -> dict[str, Model]:
    return of_sentences()


@pytest.mark.parametrize("kind", ["Tagger", "Segmenter", "FeatureTagger", "AttributeTagger", "Ensemble"])
def test_answers_agree_with_what_taggers_say_one_by_one(models: dict[str, Model], kind: str) -> None:
    model: Any = models[kind]
    answers = model.predict(TRAIN, top_k=3)
    confidences, analyses = model.confidences(TRAIN), model.analyses(TRAIN, 3)
    for answer, sure, best in zip(answers, confidences, analyses, strict=True):
        assert answer.value == sure.tags
        assert [part.probability for part in answer.parts] == sure.tokens
        assert [(span.start, span.end, span.label) for span in answer.spans] == [
            (span.start, span.end, span.label) for span in sure.spans
        ]
        assert [(each.value, each.probability) for each in answer.alternatives] == [
            (each.tags, each.probability) for each in best
        ]
        assert answer.probability in [each.probability for each in best]
        assert "<svg" in str(answer.draw())


def test_pins_are_kept(models: dict[str, Model]) -> None:
    pinned = models["Tagger"].predict(TRAIN, pins=[{1: "B-PER"}, {}])
    assert pinned[0].value[1] == "B-PER" and pinned[0].parts[1].probability == pytest.approx(1)


def test_several_tasks_are_one_answer() -> None:
    model = MultiTagger.from_data(TWO_TASKS, ("pos", "ner"), SMALL)
    answer = model.predict("Ann sings", top_k=2)[0]
    assert answer.value == model.tag("Ann sings")
    assert answer.probability == pytest.approx(
        (answer.tasks["pos"].probability or 0) * (answer.tasks["ner"].probability or 0)
    )
    assert len(answer.tasks["ner"].alternatives) == 2
    with pytest.raises(TrellisworkError, match="choose one of pos, ner"):
        answer.draw()


def test_vectors_have_answers_too() -> None:
    torch.manual_seed(0)
    data = [VectorSequence(torch.randn(n, 3), ("a", "b", "a")[:n]) for n in (3, 1)]
    model = VectorTagger.from_data(data, VectorTaggerConfig(hidden=4, layers=1))
    answers = model.predict(data, top_k=8)
    assert [answer.value for answer in answers] == model.tag(data)
    assert all(sum(each.probability for each in answer.alternatives) == pytest.approx(1) for answer in answers)
    other = {"a": "b", "b": "a"}[answers[0].value[0]]
    assert model.predict(data, pins=[{0: other}, {}])[0].value[0] == other


def test_no_answer_of_no_words(models: dict[str, Model]) -> None:
    assert models["Tagger"].predict([Sentence(())])[0].value == []


def test_a_new_kind_of_model_trains_loads_answers_and_is_described(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = [Sentence(("goal", "match"), ("sport",) * 2), Sentence(("vote", "law", "vote"), ("politics",) * 3)] * 4
    model = TopicClassifier.from_data(texts)
    config = TrainingConfig(epochs=5, lr=0.5)
    result = train(model, texts, texts, config, out=tmp_path / "topics", progress=make_progress(False))
    loaded: Any = tw.load(tmp_path / "topics")
    assert isinstance(loaded, TopicClassifier) and result.best_score == 1.0
    answers: list[Answer] = loaded.predict(texts[:2], top_k=2)
    assert [answer.value for answer in answers] == ["sport", "politics"]
    assert sum(each.probability for each in answers[0].alternatives) == pytest.approx(1)
    assert loaded.evaluate(texts) == {"metric": "accuracy", "score": 1.0}
    assert run(["info", str(tmp_path / "topics")]) == 0
    assert "a classifier of topics, 8 parameters" in capsys.readouterr().out


def test_a_new_kind_of_model_works_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = [Sentence(("goal", "match"), ("sport",) * 2), Sentence(("vote", "law", "vote"), ("politics",) * 3)] * 4
    model = TopicClassifier.from_data(texts)
    train(model, texts, texts, TrainingConfig(epochs=5, lr=0.5), out=tmp_path / "m", progress=make_progress(False))
    (tmp_path / "new.txt").write_text("goal goal\nlaw\n")
    (tmp_path / "gold.conll").write_text("vote politics\nlaw politics\n\nmatch sport\n")

    def shown(*arguments: object) -> str:
        assert run([str(each) for each in arguments]) == 0
        return capsys.readouterr().out

    command = ("predict", tmp_path / "m", tmp_path / "new.txt", "--lines")
    assert shown(*command) == "goal goal\tsport\nlaw\tpolitics\n"
    assert [line.split("\t")[:2] for line in shown(*command, "--top-k", "2").splitlines()] == [
        ["goal goal", "sport"], ["goal goal", "politics"], ["law", "politics"], ["law", "sport"],
    ]  # fmt: skip
    assert shown(*command, "--format", "pretty") == shown(*command)
    records = [json.loads(line) for line in shown(*command, "--format", "jsonl", "--top-k", "1").splitlines()]
    assert [record["value"] for record in records] == ["sport", "politics"]
    assert records[0]["alternatives"][0]["probability"] > 0.5
    scored = shown("evaluate", tmp_path / "m", tmp_path / "gold.conll", "--json", tmp_path / "scores.json")
    assert "2 sentences, 3 tokens" in scored and "accuracy" in scored and "100.00" in scored
    assert json.loads((tmp_path / "scores.json").read_text()) == {"metric": "accuracy", "score": 1.0}
    assert "a classifier of topics" in shown("info", tmp_path / "m")


def test_a_threshold_leaves_the_probability_of_all_tasks_unknown() -> None:
    model = MultiTagger.from_data(TWO_TASKS, ("pos", "ner"), SMALL)
    answer = model.predict("Ann sings", top_k=0)[0]
    assert answer.probability is None and answer.value == model.tag("Ann sings")
