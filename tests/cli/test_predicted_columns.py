"""`train --predict-columns`: a model that reads more than words, and new text that has words alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.conftest import WINDOW, Cli
from trelliswork.cli.main import run
from trelliswork.data import Sentence, open_conll
from trelliswork.models import load
from trelliswork.models.taggers.column_taggers import ColumnTaggers, predicted_columns


def command(data: Path, out: Path, *options: object) -> list[str]:
    files = ["train", data / "train.conll", "--dev", data / "dev.conll", "--out", out, "--predict-columns"]
    return [str(each) for each in (*files, *options)]


@pytest.fixture(scope="module")
def chunker(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("columns") / "crf"
    assert run(command(data, out, "--model", "crf", "--max-iterations", 15, "--quiet")) == 0
    return out


@pytest.fixture
def words(data: Path, tmp_path: Path) -> Path:
    """The words of the test file, one a line."""
    path = tmp_path / "words.txt"
    rows = ["\n".join(sentence.words) + "\n\n" for sentence in open_conll(data / "test.conll")[1]]
    path.write_text("".join(rows), encoding="utf-8")
    return path


def sentences(file: Path) -> list[Sentence]:
    return list(open_conll(file)[1])


def test_columns_are_predicted_where_new_text_lacks_them(cli: Cli, chunker: Path, data: Path, words: Path) -> None:
    model = load(chunker)
    gold = sentences(data / "test.conll")
    completed = model.with_columns([Sentence(each.words) for each in gold])
    assert all(len(each.features) == 2 for each in completed)
    pairs = [
        pair for a, b in zip(gold, completed, strict=True) for pair in zip(a.features[0], b.features[0], strict=True)
    ]
    assert sum(a == b for a, b in pairs) > 0.9 * len(pairs), "parts of speech are guessed well"

    answer = cli("predict", chunker, words)
    assert answer.status == 0, answer.err
    tags = [[line.split("\t")[1] for line in block.splitlines()] for block in answer.out.strip().split("\n\n")]
    assert tags == model.tag(completed)


def test_given_columns_are_read(chunker: Path, data: Path) -> None:
    model, gold = load(chunker), sentences(data / "test.conll")
    assert model.with_columns(gold) == gold
    empty = [Sentence(each.words, None, (each.features[0], ("_",) * len(each))) for each in gold]
    completed = model.with_columns(empty)
    assert [each.features[0] for each in completed] == [each.features[0] for each in gold]
    assert all("_" not in each.features[1] for each in completed), "a column of _ is none"


def test_raw_text_csv_json_and_explanations(cli: Cli, chunker: Path, tmp_path: Path, text_file: Path) -> None:
    assert cli("predict", chunker, text_file, "--text").status == 0
    assert cli("explain", chunker, text_file, "--text").status == 0
    (tmp_path / "a.csv").write_text("word\nAnn\nsings\n")
    assert cli("predict", chunker, tmp_path / "a.csv").out.startswith("word,tag\nAnn,")
    (tmp_path / "a.jsonl").write_text('{"tokens": ["Ann", "sings"]}\n')
    assert len(json.loads(cli("predict", chunker, tmp_path / "a.jsonl").out)["tags"]) == 2
    (tmp_path / "a.conll").write_text("Ann B-PER\nsings O\n")
    answer = cli("evaluate", chunker, tmp_path / "a.conll", "--tag-column", 2)
    assert answer.status == 0, answer.err


def test_the_model_learns_from_columns_that_were_guessed_without_having_seen_them(data: Path) -> None:
    train, dev = sentences(data / "train.conll")[:60], sentences(data / "dev.conll")[:10]
    told: list[str] = []
    found, guessed, taggers = predicted_columns(train, dev, told.append)
    assert guessed == taggers.replaced(dev)
    for fold in range(5):
        rest = [each for i, each in enumerate(train) if i % 5 != fold]
        assert found[fold::5] == ColumnTaggers.fit(rest).replaced(train[fold::5])
    assert found != taggers.replaced(train) and [each.tags for each in found] == [each.tags for each in train]
    assert told[0].startswith("columns: 2 taggers learned; right on dev: ")


@pytest.mark.thorough
def test_networks_and_ensembles_keep_them_too(cli: Cli, data: Path, tmp_path: Path, text_file: Path) -> None:
    answer = cli(*command(data, tmp_path / "m", "--seeds", 2, "--epochs", 1, "--feature-columns", 2, *WINDOW))
    assert answer.status == 0, answer.err
    assert (
        "the model reads column 2 in addition to the words, and learns to predict what new text lacks of them"
        in answer.err
    )
    assert cli("predict", tmp_path / "m", text_file, "--text").status == 0
    model = load(tmp_path / "m" / "seed-1")
    model.save(tmp_path / "copy")
    assert (tmp_path / "copy" / "columns" / "01" / "config.json").is_file()
    assert load(tmp_path / "copy").tag(["Ann", "sings"]) == model.tag(["Ann", "sings"])
    assert "predict_columns = true" in (tmp_path / "m" / "seed-0" / "config.toml").read_text()


def test_a_new_model_does_not_keep_those_of_an_old_one(cli: Cli, data: Path, tmp_path: Path) -> None:
    small = ["--model", "naive-bayes", "--quiet", "--force"]
    assert cli(*command(data, tmp_path / "m", *small)).status == 0
    assert load(tmp_path / "m").column_taggers is not None
    again = [each for each in command(data, tmp_path / "m", *small) if each != "--predict-columns"]
    assert cli(*again).status == 0
    assert not (tmp_path / "m" / "columns").exists() and load(tmp_path / "m").column_taggers is None


def test_taggers_take_the_place_of_others_in_a_folder(tmp_path: Path) -> None:
    two = [Sentence(("a", "b"), ("X", "Y"), (("N", "V"), ("1", "2")))] * 3
    ColumnTaggers.fit(two).save(tmp_path / "columns")
    ColumnTaggers.fit([replace(each, features=each.features[1:]) for each in two]).save(tmp_path / "columns")
    assert [each.name for each in (tmp_path / "columns").iterdir()] == ["01"]
    (found,) = ColumnTaggers(folder=tmp_path / "columns").with_columns([Sentence(("a", "b"))])
    assert found.features == (("1", "2"),)


def test_what_cannot_be_predicted(cli: Cli, data: Path, tmp_path: Path) -> None:
    answer = cli(*command(data, tmp_path / "m", "--model", "crf", "--feature-columns", "none"))
    assert (
        answer.status == 2 and "--predict-columns: expected columns in addition to the words and the tags" in answer.err
    )
    path = tmp_path / "many.conll"
    path.write_text("".join(f"w{i} v{i} {'A' if i % 2 else 'B'}\n\n" for i in range(700)))
    answer = cli("train", path, "--model", "crf", "--predict-columns", "--out", tmp_path / "m")
    assert answer.status == 2 and "expected columns of at most 500 different values, got 630" in answer.err


def test_without_them_the_error_suggests_them(cli: Cli, data: Path, tmp_path: Path, text_file: Path) -> None:
    plain = ["train", data / "dev.conll", "--model", "naive-bayes", "--out", tmp_path / "m"]
    assert "or --predict-columns to have them predicted" in cli(*plain).err
    answer = cli("predict", tmp_path / "m", text_file, "--text")
    assert answer.status == 2 and "or with --predict-columns" in answer.err
