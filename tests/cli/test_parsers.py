"""Dependency parsers on the command line: the same commands as for taggers, which know nothing of trees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.cli.treebanks import conllu, patterns
from tests.models.table_parser import TableParser, TableRecipe
from trelliswork.cli import training
from trelliswork.cli.main import run
from trelliswork.models import load


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """train.conllu, dev.conllu."""
    folder, every = tmp_path_factory.mktemp("trees"), list(patterns())
    (folder / "train.conllu").write_text(conllu(every[:40]), encoding="utf-8")
    (folder / "dev.conllu").write_text(conllu(every[40:]), encoding="utf-8")
    return folder


@pytest.fixture(autouse=True)
def table_parsers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is trained is a table of pairs of words, whatever the name."""
    monkeypatch.setattr(training, "recipe_of", TableRecipe)


@pytest.fixture(scope="module")
def parser(bank: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained parser with its tokeniser."""
    folder = tmp_path_factory.mktemp("parsers") / "en"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(training, "recipe_of", TableRecipe)
        command = ["train", bank / "train.conllu", "--dev", bank / "dev.conllu", "--out", folder, "--quiet"]
        assert run([*map(str, command)]) == 0
    return folder


def test_train_describes_the_trees_and_keeps_a_tokeniser(cli: Cli, bank: Path, tmp_path: Path) -> None:
    answer = cli("train", bank / "train.conllu", "--dev", bank / "dev.conllu", "--out", tmp_path / "m")
    assert answer.status == 0, answer.err
    told = "train: 40 sentences, 220 words, 7 labels; all trees are projective; dev: 14 sentences"
    assert told in answer.err and "tokeniser: learned from" in answer.err
    assert "LAS" in answer.out and "distance of head" in answer.out
    model: Any = load(tmp_path / "m")
    assert isinstance(model, TableParser) and (tmp_path / "m" / "tokeniser" / "config.json").exists()
    about = model.metrics["data"]
    assert (about["train"], about["train_sentences"], about["train_tokens"]) == ("train.conllu", 40, 220)
    assert about["format"]["conllu"] and about["format"]["tag_column"] == 8


def test_without_a_dev_file_the_last_part_is_held_out(cli: Cli, bank: Path, tmp_path: Path) -> None:
    answer = cli("train", bank / "train.conllu", "--out", tmp_path / "m", "--tokeniser", "rules")
    assert answer.status == 0 and "dev: the last 4 of the sentences (10%)" in answer.err


def test_trees_that_are_not_projective_and_missing_labels_are_told(cli: Cli, tmp_path: Path) -> None:
    rows = [("a", "X", 3, "_"), ("b", "X", 0, "_"), ("c", "X", 2, "_"), ("d", "X", 3, "_")]
    (tmp_path / "t.conllu").write_text(conllu([rows] * 4), encoding="utf-8")
    command = ("train", tmp_path / "t.conllu", "--out", tmp_path / "m", "--tokeniser", "rules")
    answer = cli(*command, "--quiet")
    assert answer.status == 0
    assert "note: the treebank has no labels (column 8 is _ throughout); the parser learns heads alone" in answer.err
    assert "3 trees (100.0%) are not projective" in cli(*command, "--force").err
    some = [[*rows[:3], ("d", "X", 3, "dep")]] * 4
    (tmp_path / "t.conllu").write_text(conllu(some), encoding="utf-8")
    place = f"{tmp_path / 't.conllu'}:4"
    assert (
        f"note: 9 words without a label, the first at {place}; _ is learned as a label" in cli(*command, "--force").err
    )


def test_columns_are_read_and_may_be_predicted(cli: Cli, bank: Path, tmp_path: Path) -> None:
    command = ("train", bank / "train.conllu", "--dev", bank / "dev.conllu", "--tokeniser", "rules")
    answer = cli(*command, "--feature-columns", "UPOS", "--out", tmp_path / "m")
    assert answer.status == 0 and "note: the model reads column UPOS beside the words" in answer.err
    model: Any = load(tmp_path / "m")
    assert model.n_columns == 1 and "Ann/PROPN" in model.words
    answer = cli(*command, "--feature-columns", "UPOS", "--predict-columns", "--out", tmp_path / "n")
    assert answer.status == 0 and (tmp_path / "n" / "columns").is_dir()


def test_what_is_no_treebank_is_refused(cli: Cli, bank: Path, tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"tokens": ["a"], "tags": ["X"]}\n')
    answer = cli("train", tmp_path / "t.jsonl", "--out", tmp_path / "m")
    assert answer.status == 2 and "expected a treebank in CoNLL-U, with heads and labels, got JSON" in answer.err
    answer = cli("train", bank / "train.conllu", "--tag-column", "UPOS", "--out", tmp_path / "m")
    assert answer.status == 2 and "--tag-column is for taggers" in answer.err
    broken = conllu(list(patterns())[:3]).replace("\t0\troot\t", "\t_\t_\t", 1)
    (tmp_path / "t.conllu").write_text(broken, encoding="utf-8")
    answer = cli("train", tmp_path / "t.conllu", "--out", tmp_path / "m")
    assert answer.status == 2 and ":5: sentence s1: expected the head of 'sees' in column 7, got _" in answer.err
    assert not (tmp_path / "m" / "config.json").exists()
