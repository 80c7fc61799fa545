"""Taggers and parsers that learn from CoNLL-U with lemmas fill the column LEMMA of new text."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import trelliswork as tw

NAMES, VERBS, THINGS = ("Ann", "Bob", "Eve"), ("sees", "likes", "hears", "walks"), ("dogs", "cats", "seas", "roads")
LEMMAS = {"sees": "see", "likes": "like", "hears": "hear", "walks": "walk"}
TINY = ("--epochs", "6", "--hidden", "16", "--quiet", "--tokeniser", "rules")
MODELS = {
    "crf": ("--tag-column", "UPOS", "--tokeniser", "rules", "--quiet"),
    "window": ("--tag-column", "UPOS", *TINY),
    "biaffine": ("--tags", "joint", *TINY, "--epochs", "20", "--lr", "0.01", "--batch-tokens", "60"),
    "transition": ("--tags", "joint", *TINY, "--epochs", "20", "--lr", "0.01", "--batch-tokens", "60"),
}
ONE_EPOCH = {"crf": (), "biaffine": ("--epochs", "1")}  # where tags may be wrong


def rows() -> list[list[tuple[str, str, str, int, str]]]:
    return [
        [(name, name, "PROPN", 2, "nsubj"), (verb, LEMMAS[verb], "VERB", 0, "root"),
         (thing, thing[:-1], "NOUN", 2, "obj"), (".", ".", "PUNCT", 2, "punct")]
        for name, verb, thing in itertools.product(NAMES, VERBS, THINGS)
    ]  # fmt: skip


def conllu(*, lemmas: bool = True) -> str:
    blocks = []
    for number, sentence in enumerate(rows(), 1):
        lines = [f"# sent_id = {number}"]
        for i, (word, lemma, tag, head, label) in enumerate(sentence, 1):
            lines.append(f"{i}\t{word}\t{lemma if lemmas else '_'}\t{tag}\t_\t_\t{head}\t{label}\t_\tX=y")
        blocks.append("\n".join(lines) + "\n\n")
    return "".join(blocks)


def trained(cli: Any, folder: Path, name: str, text: str, *more: str) -> Path:
    file, out = folder / "train.conllu", folder / "model"
    file.write_text(text, encoding="utf-8")
    answer = cli("train", file, "--dev", file, "--model", name, "--out", out, *MODELS[name], *more)
    assert answer.status == 0, answer.err
    return out


def cells(text: str, column: int) -> list[str]:
    return [line.split("\t")[column] for line in text.splitlines() if line[:1].isdigit()]


@pytest.mark.parametrize("name", MODELS)
def test_raw_text_gets_lemmas_and_evaluate_scores_them(cli: Any, tmp_path: Path, name: str) -> None:
    model, words, scores = trained(cli, tmp_path, name, conllu()), tmp_path / "new.txt", tmp_path / "scores.json"
    words.write_text("Eve hears trees.\n", encoding="utf-8")
    answer = cli("predict", model, words, "--text", "--format", "conllu")
    assert answer.status == 0, answer.err
    lemmas = cells(answer.out, 2)
    assert lemmas == ["Eve", "hear", "tree", "."], answer.out
    judged = cli("evaluate", model, tmp_path / "train.conllu", "--json", scores)
    record = json.loads(scores.read_text())
    assert f"lemma accuracy          {100 * record['lemma_accuracy']:6.2f}" in judged.out
    assert record["lemma_accuracy"] > 0.8


def test_lemmas_that_a_file_has_are_kept_and_the_rest_is_byte_for_byte(cli: Any, tmp_path: Path) -> None:
    model, file = trained(cli, tmp_path, "crf", conllu()), tmp_path / "new.conllu"
    lines = [
        "# text = x\r\n",
        "1-2\tAnnsees\t_\t_\t_\t_\t_\t_\t_\t_\n",
        "1\tAnn\tANNA\tX\t_\t_\t7\tx\t_\tY=z\n",
        "2\tsees\t_\tX\t_\t_\t_\t_\t_\t_\n",
        "2.1\tso\t_\t_\t_\t_\t_\t_\t0:root\t_\n",
        "3\ttrees\t_\tX\t_\t_\t_\t_\t_\t_\n",
    ]
    file.write_bytes("".join(lines).encode())
    written = cli("predict", model, file).out
    expected = [*lines]
    expected[2] = lines[2].replace("\tX\t", "\tPROPN\t")
    expected[3] = "2\tsees\tsee\tVERB\t_\t_\t_\t_\t_\t_\n"
    expected[5] = "3\ttrees\ttree\tNOUN\t_\t_\t_\t_\t_\t_\n"
    assert written == "".join(expected)


def test_json_has_lemmas(cli: Any, tmp_path: Path) -> None:
    model, words = trained(cli, tmp_path, "crf", conllu()), tmp_path / "new.txt"
    words.write_text("Eve hears trees.\n", encoding="utf-8")
    assert json.loads(cli("predict", model, words, "--text", "--format", "jsonl").out)["lemmas"] == [
        "Eve", "hear", "tree", ".",
    ]  # fmt: skip
    answer = tw.load(model).predict(["Eve", "hears", "trees"])[0]
    assert list(answer.lemmas) == ["Eve", "hear", "tree"]


@pytest.mark.parametrize("name", ONE_EPOCH)
def test_a_file_without_lemmas_trains_none(cli: Any, tmp_path: Path, name: str) -> None:
    model = trained(cli, tmp_path, name, conllu(), *ONE_EPOCH[name])
    assert (model / "lemmas" / "config.json").is_file()
    shutil.rmtree(tmp_path / "model")
    model = trained(cli, tmp_path, name, conllu(lemmas=False), *ONE_EPOCH[name])
    assert not (model / "lemmas").exists()
    written = cli("predict", model, tmp_path / "train.conllu").out
    assert set(cells(written, 2)) == {"_"}
    assert "lemma" not in cli("evaluate", model, tmp_path / "train.conllu").out


@pytest.mark.parametrize("name", ONE_EPOCH)
def test_dev_data_without_lemmas_are_no_obstacle(cli: Any, tmp_path: Path, name: str) -> None:
    train, dev = tmp_path / "train.conllu", tmp_path / "dev.conllu"
    train.write_text(conllu(), encoding="utf-8")
    dev.write_text(conllu(lemmas=False), encoding="utf-8")
    options = *MODELS[name], *ONE_EPOCH[name]
    answer = cli("train", train, "--dev", dev, "--model", name, "--out", tmp_path / "model", *options)
    assert answer.status == 0, answer.err
    assert (tmp_path / "model" / "lemmas").is_dir()


def test_a_new_model_without_lemmas_leaves_none_of_the_old_one(cli: Any, tmp_path: Path) -> None:
    trained(cli, tmp_path, "crf", conllu())
    model = trained(cli, tmp_path, "crf", conllu(lemmas=False), "--force")
    assert not (model / "lemmas").exists() and tw.load(model).lemmatiser is None


def test_models_of_before_still_load(cli: Any, tmp_path: Path) -> None:
    model = trained(cli, tmp_path, "biaffine", conllu(), *ONE_EPOCH["biaffine"])
    shutil.rmtree(model / "lemmas")
    words = tmp_path / "new.txt"
    words.write_text("Eve hears trees.\n", encoding="utf-8")
    assert set(cells(cli("predict", model, words, "--text").out, 2)) == {"_"}


def test_several_seeds_answer_with_lemmas(cli: Any, tmp_path: Path) -> None:
    model, words = trained(cli, tmp_path, "window", conllu(), "--seeds", "2"), tmp_path / "new.txt"
    words.write_text("Eve hears trees.\n", encoding="utf-8")
    assert cells(cli("predict", model, words, "--text", "--format", "conllu").out, 2)[1:3] == ["hear", "tree"]


def test_training_says_what_it_learned(cli: Any, tmp_path: Path) -> None:
    file = tmp_path / "train.conllu"
    file.write_text(conllu(), encoding="utf-8")
    answer = cli("train", file, "--dev", file, "--model", "crf", "--tag-column", "UPOS", "--tokeniser", "rules",
                 "--out", tmp_path / "model")  # fmt: skip
    assert "lemmas: 12 words and" in answer.err and "right on dev with gold tags: 100.00%" in answer.err
