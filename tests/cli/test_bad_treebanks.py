"""Treebanks with something wrong in them: every command says file, line and sentence, and what to do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.treebanks import conllu, patterns
from trelliswork.cli.main import run

SMALL = ["--model", "biaffine", "--tokeniser", "rules", "--epochs", "1", "--hidden", "4", "--word-dim", "4", "--quiet"]
GOOD = conllu(list(patterns())[:6])
LEAVE = "correct it, or leave the sentence out"
BAD = {  # what is replaced, and by what; the line, and what is said of sentence s1
    "cycle": ("\t0\troot\t", "\t4\troot\t", 5, f"got a cycle: 2 'sees' -> 4 'dog' -> 2 'sees'; {LEAVE}"),
    "own head": ("\t2\tnsubj\t", "\t1\tnsubj\t", 4, f"got a cycle: 1 'Ann' -> 1 'Ann'; {LEAVE}"),
    "two roots": ("\t2\tnsubj\t", "\t0\tnsubj\t", 5, f"got 2: 1 'Ann', 2 'sees'; {LEAVE}"),
    "out of range": ("\t2\tnsubj\t", "\t77\tnsubj\t", 4, f"as there are 5 words, got 77 for 'Ann'; {LEAVE}"),
    "no number": ("\t2\tnsubj\t", "\t-2\tnsubj\t", 4, f"got '-2' for 'Ann'; {LEAVE}"),
    "no tree": ("\t2\tnsubj\t", "\t_\t_\t", 4, "the sentence is not annotated; annotate it, or leave it out"),
}  # fmt: skip
SHAPES = {  # the same for lines that predict cannot read either
    "ids": ("\n2\t", "\n3\t", 5, "number the words of a sentence from 1, without gaps"),
    "columns": (
        "\tGloss=x\n",
        "\n",
        7,
        "expected the 10 columns of CoNLL-U, separated by tabs, got 9; correct the line",
    ),
}


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """good.conllu, and a parser that was trained on it."""
    folder = tmp_path_factory.mktemp("bad")
    (folder / "good.conllu").write_text(GOOD, encoding="utf-8")
    command = ["train", folder / "good.conllu", "--dev", folder / "good.conllu", "--out", folder / "m", *SMALL]
    assert run([*map(str, command)]) == 0
    return folder


@pytest.mark.parametrize("kind", [*BAD, *SHAPES])
def test_the_place_and_the_way_out_are_said(cli: Cli, bank: Path, tmp_path: Path, kind: str) -> None:
    before, after, line, told = (BAD | SHAPES)[kind]
    file = tmp_path / "bad.conllu"
    file.write_text(GOOD.replace(before, after, 1), encoding="utf-8")
    place = f"{file}:{line}: sentence s1: "
    for command in (
        ("train", file, "--dev", bank / "good.conllu", "--out", tmp_path / "m", *SMALL),
        ("train", bank / "good.conllu", "--dev", file, "--out", tmp_path / "m", *SMALL),
        ("evaluate", bank / "m", file),
        *([("predict", bank / "m", file, "--out", tmp_path / "new")] if kind in SHAPES else []),
    ):
        answer = cli(*command)
        assert answer.status == 2 and place in answer.err and told in answer.err, answer.err
    assert not (tmp_path / "m").exists() and not (tmp_path / "new").exists()
    if kind != "columns":  # which is no CoNLL-U any more
        answer = cli("check", file)
        assert place in answer.out and told in answer.out


def test_predict_does_not_read_trees(cli: Cli, bank: Path, tmp_path: Path) -> None:
    expected = cli("predict", bank / "m", bank / "good.conllu").out
    for before, after, _, _ in BAD.values():
        (tmp_path / "bad.conllu").write_text(GOOD.replace(before, after, 1), encoding="utf-8")
        assert cli("predict", bank / "m", tmp_path / "bad.conllu").out == expected


def test_labels_never_seen_are_named_with_their_place(cli: Cli, bank: Path, tmp_path: Path) -> None:
    odd = tmp_path / "odd.conllu"
    odd.write_text(GOOD.replace("\tobj\t", "\tiobj\t"), encoding="utf-8")
    told = f"that training never saw count as mistakes: iobj (the first at {odd}:8); train on sentences with them"
    answer = cli("evaluate", bank / "m", odd)
    assert answer.status == 0 and f"note: labels {told}" in answer.err
    answer = cli("train", bank / "good.conllu", "--dev", odd, "--out", tmp_path / "m", *SMALL)
    assert answer.status == 0 and f"note: labels of the dev sentences {told}" in answer.err
    plain = tmp_path / "plain.conllu"
    plain.write_text(re.sub(r"\t(\d+)\t[a-z]+\t\d+:[a-z]+", r"\t\1\t_\t_", GOOD), encoding="utf-8")
    answer = cli("train", plain, "--dev", plain, "--out", tmp_path / "n", *SMALL)
    assert answer.status == 0 and "the treebank has no labels" in answer.err
    assert cli("evaluate", tmp_path / "n", bank / "good.conllu").status == 0


def test_a_file_without_sentences(cli: Cli, bank: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty.conllu"
    empty.write_text("", encoding="utf-8")
    for command in (("train", empty, "--out", tmp_path / "m", *SMALL), ("evaluate", bank / "m", empty),
                    ("predict", bank / "m", empty), ("check", empty)):  # fmt: skip
        answer = cli(*command)
        assert answer.status == 2 and f"{empty}: expected at least one sentence, got none" in answer.err


def test_what_is_read_is_said(cli: Cli, bank: Path, tmp_path: Path) -> None:
    answer = cli("train", bank / "good.conllu", "--out", tmp_path / "m", *SMALL[:-1])
    assert "CoNLL-U, tab-separated, 10 columns: word = 2, head = 7, label = 8" in answer.err
    assert "word FORM, head HEAD, label DEPREL, features none" in cli("info", bank / "m").out


@pytest.mark.parametrize("format", ["--onnx", "--python", "--crfsuite"])
def test_parsers_are_not_exported(cli: Cli, bank: Path, tmp_path: Path, format: str) -> None:
    answer = cli("export", bank / "m", tmp_path / "out", format)
    assert answer.status == 2 and "got a BiaffineParser" in answer.err and not (tmp_path / "out").exists()
