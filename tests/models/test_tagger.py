"""Tagger: learns, explains, saves and loads; bad folders get one sentence."""

from __future__ import annotations

import copy
import errno
import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from trelliswork.data import Sentence
from trelliswork.errors import ConstraintError, DataError, ModelError, OutputError, TrellisworkError
from trelliswork.models import Tagger, TaggerConfig
from trelliswork.tags.schemes import violations
from trelliswork.training import TrainingConfig, train
from trelliswork.training.progress import Progress

FAST = TrainingConfig(epochs=40, patience=40, batch_tokens=20, lr=0.02)


def fitted(sentences: list[Sentence], config: TaggerConfig, **settings: object) -> Tagger:
    tagger = Tagger.from_data(sentences, replace(config, **settings), seed=1)
    train(tagger, sentences, sentences, FAST, progress=Progress())
    return tagger


@pytest.fixture(scope="module")
def fitted_once(sentences: list[Sentence], config: TaggerConfig) -> Tagger:
    return fitted(sentences, config)


@pytest.fixture
def tagger(fitted_once: Tagger) -> Tagger:
    return copy.deepcopy(fitted_once)


@pytest.mark.parametrize("scorer", ["linear", "context"])
def test_overfits(sentences: list[Sentence], config: TaggerConfig, scorer: str) -> None:
    tagger = fitted(sentences, config, scorer=scorer)
    assert tagger.tag(sentences) == [list(sentence.tags or ()) for sentence in sentences]
    assert tagger.evaluate(sentences)["f1"] == 1.0


def test_plain_tags(sentences: list[Sentence], config: TaggerConfig) -> None:
    plain = [Sentence(sentence.words, sentence.features[0]) for sentence in sentences]
    tagger = fitted(plain, config)
    assert tagger.labels.scheme == "plain"
    scores = tagger.evaluate(plain)
    assert (scores["metric"], scores["score"]) == ("accuracy", 1.0)


def test_labels_are_iobes_inside_and_the_scheme_of_the_data_outside(
    sentences: list[Sentence], config: TaggerConfig
) -> None:
    tagger = Tagger.from_data(sentences, config)
    assert {label[0] for label in tagger.labels.vocabulary} == set("OBIES")
    for tags in tagger.tag(sentences):  # untrained, so only the constraints make it legal
        assert {tag[0] for tag in tags} <= set("OBI")
        assert violations(tags, "IOB2") == []


def test_loss_is_the_negative_log_probability(tagger: Tagger, sentences: list[Sentence]) -> None:
    tagger.eval()
    gold = torch.nn.utils.rnn.pad_sequence(
        [torch.tensor(tagger.labels.indices(sentence)) for sentence in sentences], batch_first=True
    )
    expected = -tagger.distribution(sentences).log_prob(gold).sum()
    torch.testing.assert_close(tagger.loss(sentences), expected)


def test_batching_does_not_change_an_answer(tagger: Tagger, sentences: list[Sentence]) -> None:
    together = tagger.confidences(sentences)
    for sentence, answer in zip(sentences, together, strict=True):
        (alone,) = tagger.confidences([sentence])
        assert alone.tags == answer.tags
        assert alone.tokens == pytest.approx(answer.tokens, abs=1e-5)


def test_empty_input(tagger: Tagger, sentences: list[Sentence]) -> None:
    nothing = Sentence((), (), ((),))
    assert tagger.tag([]) == []
    assert tagger.tag([nothing, sentences[0]]) == [[], list(sentences[0].tags or ())]


def test_analyses_are_ordered_distinct_and_start_with_the_best(tagger: Tagger, sentences: list[Sentence]) -> None:
    for best, answers in zip(tagger.tag(sentences), tagger.analyses(sentences, top_k=4), strict=True):
        probabilities = [answer.probability for answer in answers]
        assert answers[0].tags == best
        assert probabilities == sorted(probabilities, reverse=True)
        assert sum(probabilities) <= 1 + 1e-5
        assert len({tuple(answer.tags) for answer in answers}) == len(answers)


def test_all_analyses_of_one_word_sum_to_one(tagger: Tagger) -> None:
    (answers,) = tagger.analyses([Sentence(("Stop",), None, (("V",),))], top_k=50)
    assert len(answers) == 3, "O, one NP or one VP: the constraints leave nothing else"
    assert sum(answer.probability for answer in answers) == pytest.approx(1, abs=1e-5)


def test_confidences_agree_with_all_analyses(tagger: Tagger) -> None:
    sentence = Sentence(("old", "Ann"), None, (("A", "N"),))
    (answers,) = tagger.analyses([sentence], top_k=1000)
    (confidences,) = tagger.confidences([sentence])
    assert sum(answer.probability for answer in answers) == pytest.approx(1, abs=1e-5)
    for i, tag in enumerate(confidences.tags):
        same = sum(answer.probability for answer in answers if answer.tags[i] == tag)
        assert confidences.tokens[i] == pytest.approx(same, abs=1e-5)
    assert confidences.spans
    for span in confidences.spans:
        wanted = [f"B-{span.label}"] + [f"I-{span.label}"] * (span.end - span.start - 1)
        same = sum(
            answer.probability
            for answer in answers
            if answer.tags[span.start : span.end] == wanted
            and answer.tags[span.end : span.end + 1] != [f"I-{span.label}"]
        )
        assert span.probability == pytest.approx(same, abs=1e-5)


def test_same_seed_same_weights_other_seed_other_weights(sentences: list[Sentence], config: TaggerConfig) -> None:
    def weights(seed: int) -> torch.Tensor:
        torch.manual_seed(torch.seed() % 1000)  # whatever the caller's generator holds
        tagger = Tagger.from_data(sentences, config, seed=seed)
        train(tagger, sentences, None, TrainingConfig(epochs=3, batch_tokens=20, seed=seed), progress=Progress())
        return torch.cat([parameter.detach().flatten() for parameter in tagger.parameters()])

    assert torch.equal(weights(5), weights(5))
    assert not torch.equal(weights(5), weights(6))


def test_the_callers_generator_is_left_alone(sentences: list[Sentence], config: TaggerConfig, tmp_path: Path) -> None:
    torch.manual_seed(9)
    expected = torch.rand(3)
    torch.manual_seed(9)
    tagger = Tagger.from_data(sentences, config)
    train(tagger, sentences, None, TrainingConfig(epochs=1), out=tmp_path / "m", progress=Progress())
    Tagger.load(tmp_path / "m")
    assert torch.equal(torch.rand(3), expected)


def test_pins_hold_and_the_rest_follows(tagger: Tagger, sentences: list[Sentence]) -> None:
    gold = tagger.tag(sentences)
    free, pinned = [{} for _ in sentences], [{} for _ in sentences]
    pinned[1] = {0: "O", 1: "B-NP"}
    assert tagger.tag(sentences, free) == gold
    changed = tagger.tag(sentences, pinned)
    assert changed[1][:2] == ["O", "B-NP"]
    assert changed[0] == gold[0]
    (answers,) = tagger.analyses([sentences[1]], top_k=3, pins=[pinned[1]])
    assert all(answer.tags[:2] == ["O", "B-NP"] for answer in answers)
    (confidences,) = tagger.confidences([sentences[1]], pins=[pinned[1]])
    assert confidences.tokens[:2] == pytest.approx([1, 1], abs=1e-5)


def test_bad_pins(tagger: Tagger, sentences: list[Sentence]) -> None:
    with pytest.raises(TrellisworkError, match=r"a pin must be on token 0\.\.2; got 3"):
        tagger.tag(sentences[:1], [{3: "O"}])
    with pytest.raises(TrellisworkError, match="expected one of O, B-NP, I-NP, B-VP, I-VP, got 'B-XX'"):
        tagger.tag(sentences[:1], [{0: "B-XX"}])
    with pytest.raises(TrellisworkError, match="expected pins for 1 sentences; got 2"):
        tagger.tag(sentences[:1], [{}, {}])


# Bad input


def test_unknown_gold_tag_names_place_and_tag(tagger: Tagger) -> None:
    stranger = Sentence(("Ann", "sings"), ("B-NP", "B-XX"), (("N", "V"),), line=7, file="dev.conll")
    with pytest.raises(DataError, match=r"dev\.conll:8: expected one of the 9 known tags, got 'B-XX'"):
        tagger.loss([stranger])
    assert tagger.evaluate([stranger])["f1"] < 1


def test_missing_columns_and_tags(tagger: Tagger, sentences: list[Sentence]) -> None:
    with pytest.raises(DataError, match="expected 1 feature columns in addition to the word, as in training, got 0"):
        tagger.tag([Sentence(("Ann",))])
    with pytest.raises(DataError, match="expected 1 tags, got none"):
        tagger.loss([Sentence(("Ann",), None, (("N",),))])
    with pytest.raises(TrellisworkError, match="got none"):
        Tagger.from_data([])


def test_gold_tags_that_the_constraints_forbid(sentences: list[Sentence], config: TaggerConfig) -> None:
    illegal = Sentence(("in", "Rome"), ("O", "I-NP"), (("I", "N"),), line=3, file="train.conll")
    tagger = Tagger.from_data(sentences, replace(config, label_scheme="data"), scheme="IOB2")
    with pytest.raises(ConstraintError, match=r"train\.conll:4: the constraints forbid the gold tag: I-NP after O"):
        tagger.loss([illegal])


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"window": 4}, "window must be odd"),
        ({"dropout": 1.0}, r"dropout must lie in \[0, 1\)"),
        ({"scorer": "cubic"}, "scorer must be one of linear, context, hidden-units, tensor; got 'cubic'"),
        ({"hidden": 0}, "hidden must be at least 1; got 0"),
    ],
)
def test_bad_settings(sentences: list[Sentence], setting: dict[str, object], message: str) -> None:
    with pytest.raises(TrellisworkError, match=message):
        Tagger.from_data(sentences, TaggerConfig(**setting))  # type: ignore[arg-type]


# The folder


@pytest.fixture
def folder(tagger: Tagger, tmp_path: Path) -> Path:
    tagger.save(tmp_path / "model")
    return tmp_path / "model"


def test_round_trip(tagger: Tagger, folder: Path, sentences: list[Sentence]) -> None:
    loaded = Tagger.load(folder)
    assert loaded.config == tagger.config
    assert loaded.metrics == json.loads(json.dumps(tagger.metrics))
    assert loaded.tag(sentences) == tagger.tag(sentences)
    torch.testing.assert_close(
        loaded.distribution(sentences).log_partition, tagger.distribution(sentences).log_partition, rtol=0, atol=0
    )
    assert sorted(path.name for path in folder.iterdir()) == [
        "MODEL_CARD.md",
        "config.json",
        "metrics.json",
        "weights.safetensors",
    ]
    assert "| window | 3 |" in (folder / "MODEL_CARD.md").read_text()


def test_saving_again_replaces_and_keeps_other_files(tagger: Tagger, folder: Path) -> None:
    (folder / "notes.txt").write_text("mine")
    tagger.metrics["test"] = {"f1": 0.5}
    tagger.save(folder)
    assert Tagger.load(folder).metrics["test"] == {"f1": 0.5}
    assert (folder / "notes.txt").read_text() == "mine"
    assert [path.name for path in folder.parent.iterdir()] == ["model"], "nothing temporary is left behind"


def test_a_folder_of_something_else_is_not_overwritten(tagger: Tagger, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("...")
    with pytest.raises(OutputError, match="expected a model or an empty folder, got other files"):
        tagger.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_full_disk_leaves_the_old_model_and_nothing_else(
    tagger: Tagger, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OutputError, match="cannot be written: No space left on device"):
        tagger.save(folder)
    assert [path.name for path in folder.parent.iterdir()] == ["model"]
    Tagger.load(folder)


def test_a_file_in_the_way(tagger: Tagger, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for place in (tmp_path / "file", tmp_path / "file" / "model"):
        with pytest.raises(OutputError, match="got a file; choose another name"):
            tagger.save(place)


@pytest.mark.parametrize("name", ["config.json", "weights.safetensors", "metrics.json"])
def test_missing_or_truncated_file(folder: Path, name: str) -> None:
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(ModelError, match=rf"{name}: truncated or not"):
        Tagger.load(folder)
    (folder / name).unlink()
    with pytest.raises(ModelError, match=rf"{name}: missing"):
        Tagger.load(folder)


def edit_config(folder: Path, **changes: object) -> None:
    config = json.loads((folder / "config.json").read_text())
    kept = {name: value for name, value in {**config, **changes}.items() if value is not None}
    (folder / "config.json").write_text(json.dumps(kept))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format_version": 99}, "expected format version 1 or older, got 99.*upgrade trelliswork"),
        ({"kind": "Segmenter"}, "expected a model of kind Tagger, got Segmenter"),
        ({"kind": None}, "got the config.json of something else"),
        ({"labels": None}, "config.json lacks 'labels'"),
        ({"labels": ["O", "B-X", "I-X", "E-X", "S-X"]}, "config.json and weights do not fit"),
        ({"settings": {"colour": "red"}}, "config.json and weights do not fit.*colour"),
    ],
)
def test_foreign_newer_or_inconsistent(folder: Path, changes: dict[str, object], message: str) -> None:
    edit_config(folder, **changes)
    with pytest.raises(ModelError, match=message) as caught:
        Tagger.load(folder)
    assert "\n" not in str(caught.value)


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="expected a model folder, got nothing"):
        Tagger.load(tmp_path / "nowhere")
