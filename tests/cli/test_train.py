"""`train`: what it prints, what it refuses, what it leaves on disk."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from tests.cli.conftest import WINDOW, Cli
from trelliswork.models import Tagger


def test_train_prints_the_layout_the_sizes_and_the_dev_table(cli: Cli, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "chunker"
    answer = cli(
        "train", data / "train.conll", "--dev", data / "dev.conll", "--out", out, "--tag-column", "3",
        "--feature-columns", "2", "--epochs", "2", "--threads", "1", *WINDOW,
    )  # fmt: skip
    assert answer.status == 0
    assert "tab-separated, 4 columns: word = 1, tag = 3 (IOB2), features = 2" in answer.err
    assert "train: 150 sentences" in answer.err and "dev: 30 sentences" in answer.err
    assert "epoch 2: loss" in answer.err and "parameters" in answer.err
    assert "precision" in answer.out and f"model: {out}" in answer.out
    stored = json.loads((out / "metrics.json").read_text())["data"]
    assert stored["train"] == "train.conll" and stored["format"]["feature_columns"] == [2]
    assert Tagger.load(out).features.n_columns == 1


def test_without_dev_the_last_tenth_is_held_out(cli: Cli, data: Path, tmp_path: Path) -> None:
    answer = cli("train", data / "dev.conll", "--out", tmp_path / "m", "--epochs", "1", *WINDOW)
    assert answer.status == 0
    assert "dev: the last 3 of the sentences (10%), as there is no --dev" in answer.err
    assert "train: 27 sentences" in answer.err


def test_plain_tags_are_scored_by_accuracy(cli: Cli, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "pos"
    columns = ["--tag-column", "2", "--feature-columns", "none"]
    answer = cli("train", data / "dev.conll", "--out", out, "--epochs", "2", "--quiet", *columns, *WINDOW)
    assert answer.status == 0 and answer.err == ""
    assert "token accuracy" in answer.out and "precision" not in answer.out
    pretty = cli("tag", out, data / "test.conll", "--format", "pretty", "--confidence")
    assert "/" in pretty.out.splitlines()[0] and "%" in pretty.out


def test_a_model_is_replaced_only_by_force(cli: Cli, data: Path, tmp_path: Path) -> None:
    command = ["train", data / "dev.conll", "--out", tmp_path / "m", "--epochs", "1", "--quiet", *WINDOW]
    assert cli(*command).status == 0
    before = (tmp_path / "m" / "weights.safetensors").read_bytes()
    refused = cli(*command, "--seed", "1")
    assert refused.status == 2
    assert refused.err == (
        f"error: {tmp_path / 'm'}: holds a model already; add --force to replace it or choose another folder\n"
    )
    assert (tmp_path / "m" / "weights.safetensors").read_bytes() == before
    assert cli(*command, "--seed", "1", "--force").status == 0
    assert (tmp_path / "m" / "weights.safetensors").read_bytes() != before


def test_a_folder_of_other_files_is_never_touched(cli: Cli, data: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    answer = cli("train", data / "dev.conll", "--out", tmp_path / "mine", "--force")
    assert answer.status == 2 and "expected a model or an empty folder, got other files" in answer.err
    assert os.listdir(tmp_path / "mine") == ["thesis.txt"]


def test_tags_that_only_dev_has_are_told(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "train.conll").write_text("Ann B-PER\nsings O\n\nBob B-PER\n\n")
    (tmp_path / "dev.conll").write_text("Oslo B-LOC\n\n")
    command = ["train", tmp_path / "train.conll", "--dev", tmp_path / "dev.conll", "--out", tmp_path / "m"]
    answer = cli(*command, "--epochs", "1", *WINDOW)
    assert answer.status == 0
    assert f"first 'B-LOC' at {tmp_path / 'dev.conll'}:1; they count as mistakes" in answer.err


def test_tags_that_break_the_scheme_are_told(cli: Cli, tmp_path: Path) -> None:
    legal = "Ann B-PER\nsings O\n\n" * 8
    train = tmp_path / "train.conll"
    train.write_text(legal + "Bob O\nRoe I-PER\n\n" + legal)
    answer = cli("train", train, "--out", tmp_path / "m", "--epochs", "1", *WINDOW)
    assert answer.status == 0
    assert "note: 1 training tag broke the IOB2 scheme" in answer.err
    assert f"{train}:26 (I-PER after O" in answer.err


def test_ctrl_c_keeps_the_best_model(cli: Cli, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from trelliswork.training.progress import LineProgress

    def interrupt(self: object, record: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(LineProgress, "epoch", interrupt)
    answer = cli("train", data / "dev.conll", "--out", tmp_path / "m", "--epochs", "5", *WINDOW)
    assert answer.status == 130
    assert "interrupted: the best model (epoch 1) is saved in" in answer.err
    assert Tagger.load(tmp_path / "m").n_parameters > 0


def test_ctrl_c_elsewhere_is_one_line(cli: Cli, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(directory: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Tagger, "load", interrupt)
    assert cli("info", model) == (130, "", "error: interrupted; no file is left half-written\n")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--model crf --epochs 3", "--epochs is not used by --model crf; leave it out, or choose one of window, "),
        ("--model tokeniser --constrained", "--constrained is not used by --model tokeniser; .* choose one of window"),
        ("--model window --template nosuchfile", "--template is not used by --model window; .* one of crf, hucrf, "),
        (
            "--model hmm --c2 3",
            "--c2 is not used by --model hmm; .* one of crf, hucrf, memm, logistic",
        ),
        (
            "--model crf --smoothing 3",
            "--smoothing is not used by --model crf; .* hmm, naive-bayes",
        ),
    ],
)
def test_an_option_that_the_model_does_not_use_is_refused(cli: Cli, tmp_path: Path, options: str, said: str) -> None:
    (tmp_path / "t.conll").write_text("Ann B-X\n\nBob B-X\n\n", encoding="utf-8")
    answer = cli("train", tmp_path / "t.conll", "--out", tmp_path / "m", *options.split())
    assert answer.status == 2 and re.search(said, answer.err), answer.err
    assert not (tmp_path / "m" / "config.json").exists()
