"""Constituency parsers through the commands: brackets in, brackets out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trelliswork.cli.main import run

TREES = """( (S (NP-SBJ (DT the) (JJ old) (NN dog)) (VP (VBZ sees) (NP (PRP us)) (NP (-NONE- *))) (. .)))
( (S (NP (PRP we)) (VP (VBP sleep))
     (. .)))
( (S (VP (VB stop)) (. .)))
( (S (NP (PRP we)) (VP (VBP see) (NP (DT the) (NN dog))) (. .)))
"""
CLEAN = """( (S (NP (DT the) (JJ old) (NN dog)) (VP (VBZ sees) (NP (PRP us))) (. .)))
( (S (NP (PRP we)) (VP (VBP sleep)) (. .)))
( (S (VP (VB stop)) (. .)))
( (S (NP (PRP we)) (VP (VBP see) (NP (DT the) (NN dog))) (. .)))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("trees")
    (place / "train.mrg").write_text(TREES)
    (place / "new.txt").write_text("We sleep.")
    given = [str(place / "train.mrg"), "--dev", str(place / "train.mrg"), "--quiet"]
    assert run(["train", *given, "--model", "pcfg", "--out", str(place / "pcfg")]) == 0
    small = ["--epochs", "2", "--hidden", "8", "--word-dim", "8", "--span-dim", "8"]
    assert run(["train", *given, "--model", "span-cky", *small, "--out", str(place / "span")]) == 0
    return place


def test_trees_come_back_as_one_line_each(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["predict", str(folder / "pcfg"), str(folder / "train.mrg")]) == 0
    assert capsys.readouterr().out == CLEAN
    assert (
        run(["predict", str(folder / "pcfg"), str(folder / "new.txt"), "--text", "--out", str(folder / "n.mrg")]) == 0
    )
    assert (folder / "n.mrg").read_text() == "( (S (NP (PRP We)) (VP (VBP sleep)) (. .)))\n"


def test_a_network_answers_through_the_same_commands(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, file = str(folder / "span"), str(folder / "train.mrg")
    assert run(["predict", model, file, "--pin", "4:2=4:VP"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4 and "(VP" in lines[3] and all(line.startswith("( (") for line in lines)
    assert run(["evaluate", model, file]) == 0
    told = capsys.readouterr().out
    assert "bracket F1" in told and "tagging accuracy" in told and "calibration error" in told
    assert run(["info", model]) == 0 and run(["check", file]) == 0


def test_a_grammar_keeps_pins(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, file = str(folder / "pcfg"), str(folder / "train.mrg")
    assert run(["predict", model, file, "--pin", "4:3=4:NP", "--pin", "2:1=1:NP"]) == 0
    assert capsys.readouterr().out == CLEAN, "what the trees have anyway"
    assert run(["predict", model, file, "--pin", "4:1=2:NP"]) == 2
    assert "train.mrg:5: no analysis agrees with the pins 4:1=2:NP; drop one of them" in capsys.readouterr().err


@pytest.mark.parametrize("model", ["pcfg", "span"])
def test_explain_shows_other_brackets(folder: Path, capsys: pytest.CaptureFixture[str], model: str) -> None:
    given = ["explain", str(folder / model), str(folder / "train.mrg")]
    assert run([*given, "--limit", "1"]) == 0
    told = capsys.readouterr().out
    assert "1-6 S" in told and "the old dog sees us ." in told and "%" in told
    assert run([*given, "--html", str(folder / "e.html")]) == 0
    page = (folder / "e.html").read_text()
    assert page.count('<table class="arcs">') == 4 and "Brackets of " in page
    assert run([given[0], given[1], str(folder / "new.txt"), "--text"]) == 0
    assert "We sleep ." in capsys.readouterr().out


def test_probabilities_and_the_best_trees_as_json_text_and_page(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, file = str(folder / "pcfg"), str(folder / "train.mrg")
    assert run(["predict", model, file, "--confidence", "--top-k", "2", "--format", "jsonl"]) == 0
    first = json.loads(capsys.readouterr().out.splitlines()[0])
    assert first["tree"] == CLEAN.splitlines()[0] and len(first["brackets"]) == 4 and 0 < first["probability"] <= 1
    assert first["analyses"][0]["tree"] == first["tree"]
    assert run(["predict", model, file, "--confidence", "--format", "pretty"]) == 0
    assert "\n  NP " in capsys.readouterr().out
    assert run(["predict", model, file, "--confidence", "--format", "html"]) == 0
    assert "<svg" in capsys.readouterr().out
    assert run(["predict", model, file, "--top-k", "2"]) == 0
    assert capsys.readouterr().out.startswith(CLEAN.splitlines()[0] + "\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["predict", "pcfg", "train.mrg", "--confidence"], "--confidence cannot be written in brackets"),
        (["predict", "pcfg", "train.mrg", "--pin", "1=2:QP"], "expected one of the labels NP, S, VP; got 'QP'"),
        (["predict", "span", "train.mrg", "--pin", "1=2:XP"], "expected one of the labels"),
        (["evaluate", "pcfg", "broken.mrg"], "broken.mrg:1: tree 1: expected every bracket to close"),
        (["evaluate", "pcfg", "other.conllu"], "expected trees in brackets, as the Penn Treebank has them"),
        (["train", "train.mrg", "--model", "pcfg", "--out", "x", "--seeds", "2"], "--seeds is for networks"),
        (["train", "train.mrg", "--model", "pcfg", "--out", "x", "--detail", "all"], "--detail must be one of labels"),
        (["train", "other.conllu", "--model", "crf", "--out", "x", "--detail", "traces"], "--detail is for trees"),
    ],
)
def test_what_cannot_be_is_said(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    (folder / "broken.mrg").write_text("( (S (NN a)\n")
    (folder / "other.conllu").write_text("1\ta\t_\tNN\t_\t_\t0\troot\t_\t_\n")
    monkeypatch.chdir(folder)
    assert run(arguments) == 2
    assert message in capsys.readouterr().err


BAD = {  # a file, and what every command says of it
    "( (S (VB stop)))\n( (S (NP (PRP we))\n": "bad.mrg:2: tree 2: expected every bracket to close, got 2 open",
    "( (S (VP (VB stop)) (. .)))\n\n( )\n": "bad.mrg:3: tree 2: expected (label child ...), got an empty tree ()",
    "( (S (VB stop)))\n( (S (NP)))\n": "bad.mrg:2: tree 2: expected (label child ...), got an empty tree (NP)",
    "( (S (-NONE- *)))\n": "bad.mrg:1: tree 1: expected a tree with words, got '(S (-NONE- *))', which has none",
    "we sleep .\n": "bad.mrg:1: tree 1: expected '(' at the beginning of a tree, got 'we'; put the word into a tree",
    "( (S (VB stop)))) \n": "bad.mrg:1: tree 2: expected '(' at the beginning of a tree, got ')'; take one closing",
    "": "bad.mrg: expected trees in brackets, got none; the file is empty",
}


@pytest.mark.parametrize("text", BAD)
def test_every_command_says_where_a_tree_is_bad(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    (folder / "bad.mrg").write_text(text)
    monkeypatch.chdir(folder)
    for arguments in (
        ["train", "bad.mrg", "--dev", "train.mrg", "--model", "pcfg", "--out", "x"],
        ["train", "train.mrg", "--dev", "bad.mrg", "--model", "span-cky", "--out", "x"],
        ["evaluate", "pcfg", "bad.mrg"], ["evaluate", "span", "bad.mrg"], ["check", "bad.mrg"],
        ["predict", "pcfg", "bad.mrg", "--out", "y"], ["explain", "span", "bad.mrg"],
    ):  # fmt: skip
        assert run(arguments) == 2
        assert BAD[text] in capsys.readouterr().err
    assert not (folder / "x").exists() and not (folder / "y").exists()


def test_a_treebank_without_labels_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "plain.mrg").write_text("( ((PRP we) (VB stop)))\n( ((VB stop) (. .)))\n")
    monkeypatch.chdir(folder)
    assert run(["train", "plain.mrg", "--dev", "plain.mrg", "--model", "pcfg", "--force", "--out", "p"]) == 0
    assert "note: plain.mrg: no constituent has a label that is counted, only TOP; " in capsys.readouterr().err


@pytest.mark.parametrize("model", ["pcfg", "span"])
def test_labels_that_training_never_saw_are_told_with_their_place(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    (folder / "unseen.mrg").write_text("( (S (VP (VB stop)) (. .)))\n( (XP (NP (PRP we)) (QQ (VB stop))))\n")
    monkeypatch.chdir(folder)
    assert run(["evaluate", model, "unseen.mrg"]) == 0
    assert "XP (unseen.mrg:2), QQ (unseen.mrg:2); add trees" in capsys.readouterr().err
    assert run(["train", "train.mrg", "--dev", "unseen.mrg", "--model", "pcfg", "--force", "--out", "other"]) == 0
    assert "XP (unseen.mrg:2), QQ (unseen.mrg:2); add trees" in capsys.readouterr().err


def test_a_label_right_above_a_word_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "bare.mrg").write_text(TREES + "( (S (NP we) (VP (VB stop))))\n")
    monkeypatch.chdir(folder)
    assert run(["train", "bare.mrg", "--dev", "train.mrg", "--model", "pcfg", "--force", "--out", "other"]) == 0
    assert "note: 1 word with a label of constituents for a tag, the first is (NP we)" in capsys.readouterr().err


def test_a_sentence_without_a_probability_is_judged_too(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "small.toml").write_text("[model]\nlongest = 2\n")
    given = [str(folder / "train.mrg"), "--dev", str(folder / "train.mrg"), "--model", "pcfg", "--quiet"]
    assert run(["train", *given, "--config", str(folder / "small.toml"), "--out", str(folder / "pieces")]) == 0
    assert run(["evaluate", str(folder / "pieces"), str(folder / "train.mrg")]) == 0
    assert "bracket F1" in capsys.readouterr().out


def test_function_tags_and_traces_stay_if_asked_for(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = [str(folder / "train.mrg"), "--dev", str(folder / "train.mrg"), "--model", "pcfg", "--quiet"]
    assert run(["train", *given, "--detail", "traces", "--out", str(folder / "detailed")]) == 0
    assert run(["evaluate", str(folder / "detailed"), str(folder / "train.mrg")]) == 0
    assert "NP-SBJ " in capsys.readouterr().out, "gold trees are read as those of training were"
    assert run(["predict", str(folder / "detailed"), str(folder / "train.mrg")]) == 0
    first = "( (S (NP-SBJ (DT the) (JJ old) (NN dog)) (VP (VBZ sees) (NP (PRP us)) (NP (-NONE- *))) (. .)))"
    assert capsys.readouterr().out.splitlines()[0] == first
