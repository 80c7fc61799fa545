"""What a run leaves so that it can be done again: `config.toml` makes the same model, and finished seeds are kept."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from tests.cli.conftest import SMALL, WINDOW, Cli
from trelliswork.data import read_conll
from trelliswork.data.corpus import builtin_corpus
from trelliswork.data.corpus.trees import write_events, write_treebank
from trelliswork.models.catalogue import ENTRIES, TOKENISER, by_title, entry_of

NETWORK = ["--epochs", "1", *SMALL]
PYRAMID = ["--epochs", "1", "--segment-dim", "4", *SMALL[2:]]  # without an encoder, whose width would come first
FEATURES = ["--max-iterations", "4"]
FILES = {"tags": "t.conll", "text": "t.conllu", "plain text": "t.txt", "recordings": "r.tsv"}
OTHER_FILES = {"heads": "train.conllu", "brackets": "train.mrg", "events": "train.jsonl"}
OF_PAIRS = {"seq2tree": "terms.tsv", "seq2sql": "queries.tsv"}  # others: pairs.tsv
FUNCTION = "def attributes(sentence):\n    return [{'word': word} for word in sentence.words]\n"


@pytest.fixture
def files(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Some sentences in every format, with what else training may read, where the command runs."""
    lines = (data / "dev.conll").read_text().split("\n\n")
    (tmp_path / "t.conll").write_text("\n\n".join(lines[:12]) + "\n\n")
    (tmp_path / "d.conll").write_text("\n\n".join(lines[12:16]) + "\n\n")
    sentences = list(read_conll(tmp_path / "t.conll"))
    with (tmp_path / "t.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("sentence", "word", "tag"))
        for i, each in enumerate(sentences):
            rows.writerows((i, *token) for token in zip(each.words, each.tags or (), strict=True))
    texts = [json.dumps({"tokens": each.words, "tags": each.tags}) for each in sentences]
    (tmp_path / "t.jsonl").write_text("\n".join(texts) + "\n")
    blocks = [[f"{tag}\tw={i % 7}" for i, tag in enumerate(each.tags or ())] for each in sentences]
    (tmp_path / "t.crfsuite").write_text("\n\n".join("\n".join(block) for block in blocks) + "\n\n")
    rows = [
        [f"{i}\t{word}" + "\t_" * 7 + "\tSpaceAfter=No" for i, word in enumerate(each.words, 1)] for each in sentences
    ]
    (tmp_path / "t.conllu").write_text("\n\n".join("\n".join(block) for block in rows) + "\n\n")
    (tmp_path / "t.txt").write_text("One day it rained. Two days it did not.\n\nThen it did!\n")
    np.savez(tmp_path / "r.npz", x=np.eye(4, 2), y=np.ones((3, 2)))
    (tmp_path / "r.tsv").write_text("r.npz#x\tab\nr.npz#y\tb\n" * 3)
    (tmp_path / "vectors.txt").write_text(". 1 2 3\nthe 0 1 0\n")
    (tmp_path / "template").write_text("U00:%x[0,0]\nB\n")
    (tmp_path / "half.conll").write_text((tmp_path / "t.conll").read_text().replace("B-PER", "?", 5))
    (tmp_path / "rerun_attributes.py").write_text(FUNCTION)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def made_twice(cli: Cli, folder: Path, *command: object) -> None:
    """Train by options, then by the settings that this leaves: the same bytes."""
    first = cli("train", *command, "--quiet", "--out", folder / "first", "--seed", "3")
    assert first.status == 0, first.err
    function = ["--features", command[command.index("--features") + 1]] if "--features" in command else []
    again = cli("train", folder / "first" / "config.toml", "--quiet", "--out", folder / "again", *function)
    assert again.status == 0, again.err
    assert (folder / "first" / "config.json").read_bytes() == (folder / "again" / "config.json").read_bytes()
    weights = [folder / name / "weights.safetensors" for name in ("first", "again")]
    if "--posterior" in command:  # the last bit of a gradient depends on where arrays lie, and samples add it up
        first, second = map(safetensors.numpy.load_file, weights)
        assert all(np.allclose(first[name], second[name], rtol=0, atol=1e-4) for name in first.keys() | second.keys())
    else:
        assert weights[0].read_bytes() == weights[1].read_bytes()
    settings = [(folder / name / "config.toml").read_text() for name in ("first", "again")]
    assert settings[0].replace(str(folder / "first"), str(folder / "again")) == settings[1]


def settings_of(model: str) -> list[str]:
    """Settings that make a model small; models that count and tokenisers have none."""
    entry = entry_of(model)
    if entry in by_title(ENTRIES.values())["Neural taggers"]:
        return PYRAMID if entry.values.get("encoder") == "none" else NETWORK
    if entry_of(model).learns_from == "pairs":
        database = ["--database", "facts.sqlite"] if model == "seq2sql" else []
        return [*database, *(["--epochs", "1", "--hidden", "8"] if entry_of(model).is_network else [])]
    if entry_of(model).learns_from == "recordings":
        return ["--epochs", "1", "--hidden", "8", "--channels", "4", "--stride", "1"]
    if entry_of(model).learns_from in OTHER_FILES:
        return [*(NETWORK if entry_of(model).is_network else ()), "--tokeniser", "rules"]
    if model == "vectors":
        return ["--least-count", "1", "--dim", "3"]
    if entry.learns_from == "plain text" and entry.is_network:
        return ["--epochs", "1", "--word-dim", "8"]
    return [] if model in ("hmm", "naive-bayes", "ngram", TOKENISER) else FEATURES


def write_pairs(folder: Path) -> None:
    """Strings, questions with terms, and questions with the database that they are about."""
    (folder / "pairs.tsv").write_text("ab\tA B\nba\tB A\nb\tB\n" * 4)
    (folder / "terms.tsv").write_text("which river\triver ( a )\nwhich town\ttown ( b )\n" * 4)
    (folder / "queries.tsv").write_text("which town\tSELECT NAME FROM TOWN ;\nhow large\tSELECT SIZE FROM TOWN ;\n" * 4)
    with contextlib.closing(sqlite3.connect(folder / "facts.sqlite")) as database:
        database.execute("CREATE TABLE TOWN (NAME TEXT, SIZE INTEGER)")
        database.execute("INSERT INTO TOWN VALUES ('ulm', 3)")
        database.commit()


def of_every_recipe() -> list[Any]:
    """All models but mixtures of trained ones; those with recipe and settings of an earlier one in thorough runs."""
    firsts = {(entry.recipe, entry.settings): model for model, entry in reversed(ENTRIES.items())}.values()
    return [pytest.param(model, marks=() if model in firsts else pytest.mark.thorough)
            for model in ENTRIES if model != "lm-mixture"]  # fmt: skip


@pytest.mark.parametrize("model", of_every_recipe())
def test_the_settings_of_every_model_make_it_again(cli: Cli, files: Path, model: str) -> None:
    file = FILES.get(learns_from := entry_of(model).learns_from, "")
    if learns_from == "pairs":
        file = OF_PAIRS.get(model, "pairs.tsv")
        write_pairs(files)
    elif not file:
        corpus, file = builtin_corpus(sizes=(12, 3, 3)), OTHER_FILES[learns_from]
        write_treebank(corpus, files)
        write_events(corpus, files)
    made_twice(cli, files, file, "--model", model, *settings_of(model))


@pytest.mark.parametrize(
    "command",
    [
        ["t.conll", "--dev", "d.conll", "--tag-column", 3, "--feature-columns", 2, "--delimiter", "tab", *WINDOW],
        ["t.conll", "--vectors", "vectors.txt", "--tune-vectors", "--scheme", "IOB2", *WINDOW],
        ["t.conll", "--feature-columns", "none", "--no-constrained", "--encoder", "gru", "--layers", 2, *WINDOW],
        ["t.csv", *WINDOW],
        ["t.jsonl", *WINDOW],
        ["t.conll", "--model", "crf", "--template", "template", "--c1", 0.3, "--min-freq", 2, *FEATURES],
        ["t.conll", "--model", "crf", "--features", "rerun_attributes:attributes", "--order", 2, *FEATURES],
        ["t.csv", "--model", "crf", "--algorithm", "sgd", "--all-states", "--hash-bits", 10, *FEATURES],
        ["t.jsonl", "--model", "crf", "--algorithm", "perceptron", "--cutoff", 2, *FEATURES],
        ["t.crfsuite", "--model", "crf", "--latent", 2, *FEATURES],
        ["half.conll", "--dev", "d.conll", "--model", "crf", "--partial", *FEATURES],
        ["t.conll", "--model", "crf", "--samples", 2, "--posterior", "hamiltonian", "--temperature", 0.1, *FEATURES],
        ["t.conll", "--model", "hucrf", "--pretrain", "d.conll", "--hidden-units", 3, *FEATURES],
    ],
    ids=lambda command: " ".join(map(str, command[:6])),
)
def test_the_settings_name_all_that_was_read(cli: Cli, files: Path, command: list[object]) -> None:
    made_twice(cli, files, *command)


class Killed(BaseException):
    """Ends a run without any of its own endings, as a kill does."""


@pytest.mark.parametrize(("model", "place"), [("window", "Tagger.loss"), ("crf", "FeatureTagger.evaluate")])
def test_settings_are_there_before_the_model(
    cli: Cli, files: Path, monkeypatch: pytest.MonkeyPatch, model: str, place: str
) -> None:
    def killing(*_: object, **__: object) -> Any:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(f"trelliswork.models.{place}", killing)
        with pytest.raises(Killed):
            cli("train", "t.conll", "--model", model, "--quiet", "--out", "killed", *settings_of(model))
    assert os.listdir("killed") == ["config.toml"]
    assert cli("train", "killed/config.toml", "--quiet").status == 0, "in the same folder"
    assert cli("train", "killed/config.toml", "--quiet", "--out", "other").status == 0


def test_an_error_puts_back_what_was_there(cli: Cli, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from trelliswork.errors import TrellisworkError

    def failing(*_: object, **__: object) -> Any:
        raise TrellisworkError("no")

    command = ["train", "t.conll", "--model", "hmm", "--quiet", "--out", "m"]
    assert cli(*command).status == 0
    before = Path("m/config.toml").read_text()
    with monkeypatch.context() as patch:
        patch.setattr("trelliswork.models.FeatureTagger.fit", failing)
        assert cli(*command, "--force", "--smoothing", "3").status == 2
        assert cli(*command[:-1], "n").status == 2
    assert Path("m/config.toml").read_text() == before and not Path("n").exists()


def seeds(answer: str) -> list[list[str]]:
    """The table without the seconds."""
    return [line.split()[:3] for line in answer.split("\n\n")[0].splitlines()]


def test_finished_seeds_are_not_trained_again(
    cli: Cli, files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from trelliswork.training.progress import LineProgress

    command = ["train", "t.conll", "--seeds", "3", "--epochs", "3", *WINDOW, "--out"]
    whole = cli(*command, "whole")
    assert whole.status == 0
    ended = []

    def interrupt(self: object, record: Any) -> None:
        ended.append(record.epoch)
        if len(ended) == 5:  # the second epoch of the second seed
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(LineProgress, "epoch", interrupt)
        stopped = cli(*command, "stopped")
    assert stopped.status == 130
    finished = Path("stopped/seed-0/weights.safetensors")
    made_at = finished.stat().st_mtime_ns
    again = cli(*command, "stopped", "--resume")
    assert again.status == 0, again.err
    assert again.err.count("finished already") == 1 and "seed 0: finished already" in again.err
    assert "resumed in epoch 3" in again.err and finished.stat().st_mtime_ns == made_at
    assert seeds(again.out) == seeds(whole.out)
    for seed in range(3):
        name = f"seed-{seed}/weights.safetensors"
        assert Path("whole", name).read_bytes() == Path("stopped", name).read_bytes()
    once_more = cli(*command, "stopped", "--resume")
    assert once_more.err.count("finished already") == 3 and once_more.out == again.out
    refused = cli(*command, "stopped", "--resume", "--dropout", "0.6")
    assert refused.status == 2 and "dropout was 0.4 and is 0.6; give the same again" in refused.err


def test_a_seed_that_is_not_finished_is_trained_again(cli: Cli, files: Path) -> None:
    command = ["train", "t.conll", "--seeds", "2", "--epochs", "3", *WINDOW, "--out", "m"]
    assert cli(*command).status == 0
    history = Path("m/seed-0/history.jsonl")
    history.write_text("".join(history.read_text().splitlines(keepends=True)[:2]))
    again = cli(*command, "--resume")
    assert "seed 1: finished already" in again.err and "seed 0" not in again.err
    assert len(history.read_text().splitlines()) == 3
    history.write_text("no JSON\n")
    assert "expected a line of JSON for each epoch" in cli(*command, "--resume").err
