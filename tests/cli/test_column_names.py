"""Columns by name, columns that say nothing, and columns that new text does not have."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from trelliswork.models import load

CONLLU = "1\tAnn\tann\tPROPN\tNNP\tA\t0\troot\t_\t_\n2\tsings\tsing\tVERB\tVBZ\tB\t1\tx\t_\t_\n\n" * 6
CSV = "word,lemma,fine,coarse\nAnn,ann,NNP,N\nsings,sing,VBZ,V\n\n" * 1 + "Ann,ann,NNP,N\nsings,sing,VBZ,V\n\n" * 5
QUICK = ["--model", "crf", "--max-iterations", "9", "--quiet", "--force", "--tokeniser", "rules"]


def tags_in(folder: Path) -> set[str]:
    return set(load(folder).labels.data_tags)


def test_names_of_conllu(cli: Cli, tmp_path: Path) -> None:
    path, out = tmp_path / "a.conllu", tmp_path / "m"
    path.write_text(CONLLU)
    for name, column, tags in (
        ("UPOS", 4, {"PROPN", "VERB"}),
        ("xpos", 5, {"NNP", "VBZ"}),
        ("LEMMA", 3, {"ann", "sing"}),
    ):
        answer = cli("train", path, "--tag-column", name, "--word-column", "FORM", "--out", out, *QUICK)
        assert answer.status == 0, answer.err
        assert tags_in(out) == tags
        assert cli("predict", out, path).out == CONLLU
        assert f"tag = {column}" in cli("evaluate", out, path, "--tag-column", name).err
        assert f"tag = {column}" in cli("check", path, "--tag-column", name).out
    named = cli("train", path, "--feature-columns", "LEMMA,FEATS", "--out", out, *QUICK)
    assert named.status == 0 and load(out).metrics["data"]["format"]["feature_columns"] == [3, 6]
    assert cli("train", out / "config.toml", "--out", tmp_path / "again").status == 0


def test_names_of_csv(cli: Cli, tmp_path: Path) -> None:
    path, out = tmp_path / "a.csv", tmp_path / "m"
    path.write_text(CSV)
    for name, tags in (("fine", {"NNP", "VBZ"}), ("Coarse", {"N", "V"})):
        answer = cli("train", path, "--tag-column", name, "--feature-columns", "none", "--out", out, *QUICK)
        assert answer.status == 0, answer.err
        assert tags_in(out) == tags
        assert cli("predict", out, path).out == CSV
        assert "token accuracy" in cli("evaluate", out, path, "--tag-column", name).out


@pytest.mark.parametrize("command", ["train", "predict", "evaluate", "check"])
def test_a_wrong_name_lists_the_names(cli: Cli, tmp_path: Path, model: Path, command: str) -> None:
    conllu, csv, plain = tmp_path / "a.conllu", tmp_path / "a.csv", tmp_path / "a.conll"
    conllu.write_text(CONLLU)
    csv.write_text(CSV)
    plain.write_text("Ann N\nsings V\n\n" * 3)
    before = {"train": ["train"], "predict": ["predict", model], "evaluate": ["evaluate", model], "check": ["check"]}

    def told(path: Path, option: str) -> str:
        more = ["--out", tmp_path / "m"] if command == "train" else []
        answer = cli(*before[command], path, option, "POS", *more)
        assert answer.status == 2 and answer.err.count("\n") == 1
        return answer.err

    names = "ID, FORM, LEMMA, UPOS, XPOS, FEATS, HEAD, DEPREL, DEPS, MISC; choose one of these"
    assert f"a.conllu: expected a column 'POS' for the tag, got {names}" in told(conllu, "--tag-column")
    assert "a.csv:1: expected a column 'POS' for the word, got word, lemma, fine, coarse" in told(csv, "--word-column")
    assert "expected the number of the word column, got 'POS'; the columns have no names" in told(
        plain, "--word-column"
    )


@pytest.mark.parametrize("column", ["0", "-1"])
def test_columns_count_from_1(cli: Cli, data: Path, tmp_path: Path, column: str) -> None:
    answer = cli("train", data / "dev.conll", "--tag-column", column, "--out", tmp_path / "m")
    assert answer.status == 2 and "--tag-column must be a number from 1 or the name of a column" in answer.err


def test_constant_columns_are_no_features(cli: Cli, tmp_path: Path) -> None:
    path, table = tmp_path / "a.conll", tmp_path / "a.csv"
    path.write_text("Ann _ NNP x N\nsings _ VBZ x V\n\n" * 6)
    table.write_text("word,a,b,tag\n" + "Ann,_,NNP,N\nsings,_,VBZ,V\n\n" * 6)
    for file, features, shown in ((path, [3], "3"), (table, [3], "b")):
        answer = cli("train", file, "--out", tmp_path / "m", *(each for each in QUICK if each != "--quiet"))
        assert answer.status == 0, answer.err
        assert load(tmp_path / "m").metrics["data"]["format"]["feature_columns"] == features
        note = f"note: the model reads column {shown} in addition to the words, and new text must have them; "
        assert f"{note}add --feature-columns none to learn from the words alone" in answer.err


def test_missing_columns_are_told_with_what_to_do(cli: Cli, tmp_path: Path, text_file: Path) -> None:
    path, words = tmp_path / "a.conll", tmp_path / "words.conll"
    path.write_text("Ann NNP N\nsings VBZ V\n\n" * 6)
    words.write_text("Ann\nsings\n")
    for options in (QUICK, [*QUICK[4:], "--model", "window", "--hidden", "8", "--epochs", "1"]):
        assert cli("train", path, "--out", tmp_path / "m", *options).status == 0
        for arguments in ([words], [text_file, "--text"]):
            answer = cli("predict", tmp_path / "m", *arguments)
            assert answer.status == 2 and "train with --feature-columns none" in answer.err, answer.err


def test_fields_of_json(cli: Cli, tmp_path: Path) -> None:
    path, out = tmp_path / "a.jsonl", tmp_path / "m"
    records = [{"id": i, "words": ["Ann", "sings"], "ner": [1, 0]} for i in range(9)]
    path.write_text("".join(json.dumps(each) + "\n" for each in records))
    fields = ["--field", "tokens=words", "--field", "tags=ner"]
    answer = cli("train", path, "--out", out, *QUICK, *fields)
    assert answer.status == 2 and "--field names=O,B-PER,I-PER" in answer.err
    answer = cli("train", path, "--out", out, *QUICK, *fields, "--field", "names=O,B-PER")
    assert answer.status == 0, answer.err
    assert tags_in(out) == {"O", "B-PER"}
    assert cli("predict", out, path).out == path.read_text(), "the model remembers the fields"
    assert "token accuracy" in cli("evaluate", out, path).out
    assert cli("train", out / "config.toml", "--out", tmp_path / "again").status == 0


def test_prodigy_is_trained_on(cli: Cli, tmp_path: Path) -> None:
    path, out = tmp_path / "a.jsonl", tmp_path / "m"
    good = {"text": "Then Ann left, again.", "spans": [{"start": 5, "end": 8, "label": "PER"}]}
    bad = {"text": "Anna left.", "spans": [{"start": 0, "end": 3, "label": "PER"}]}
    path.write_text("".join(json.dumps(each) + "\n" for each in [good] * 20 + [bad]))
    answer = cli("train", path, "--out", out, *QUICK)
    assert answer.status == 0
    assert "note: 1 of 21 spans overlap others or do not begin and end with a token" in answer.err
    assert "a.jsonl:21: 'Ann' (PER, 0 to 3) in 'Anna left.'" in answer.err
    good["spans"] = [{"start": 5, "end": 8, "label": "PER", "text": "Ann"}]
    path.write_text("".join(json.dumps(each) + "\n" for each in [good] * 2))
    assert cli("predict", out, path).out == path.read_text()
