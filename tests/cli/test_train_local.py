"""`train --model memm|logistic|hmm|naive-bayes`, and the other commands on what it makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Cli


@pytest.mark.parametrize(
    ("model", "phrase"),
    [
        ("memm", "a maximum-entropy Markov model over features"),
        ("logistic", "logistic regression, token by token, over features"),
        ("hmm", "a hidden Markov model over features"),
        ("naive-bayes", "naive Bayes, token by token, over features"),
    ],
)
def test_every_command_takes_every_model(cli: Cli, data: Path, tmp_path: Path, model: str, phrase: str) -> None:
    out, test = tmp_path / "model", data / "test.conll"
    command = ["train", data / "train.conll", "--dev", data / "dev.conll", "--tag-column", 3, "--feature-columns", 2]
    iterations = ["--max-iterations", 20] if model in ("memm", "logistic") else []
    answer = cli(*command, "--model", model, *iterations, "--out", out)
    assert answer.status == 0 and "overall" in answer.out
    shown = cli("info", out).out
    assert phrase in shown and "-> B-NP" in shown and "(each attribute)" not in shown
    assert "overall" in cli("evaluate", out, test).out
    tagged = cli("tag", out, test, "--confidence", "--top-k", 2)
    assert tagged.status == 0 and "# analysis 2 of 2" in tagged.out
    explained = cli("explain", out, test, "--limit", 1)
    assert explained.status == 0 and "no next word" in explained.out
    assert ("(each attribute)" in explained.out) == (model in ("hmm", "naive-bayes"))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--model", "hmm", "--smoothing", 0], "smoothing must be above 0 and finite; got 0"),
        (
            ["--model", "hmm", "--c1", 1],
            "--c1 is not used by --model hmm; leave it out, or choose one of crf, hucrf",
        ),
        (["--model", "memm", "--algorithm", "pa"], "--algorithm is not used by --model memm"),
        (["--model", "svm"], "expected a model, got 'svm'; choose one of window, bilstm-crf"),
    ],
)
def test_settings_that_cannot_be(cli: Cli, data: Path, tmp_path: Path, options: list[object], problem: str) -> None:
    answer = cli("train", data / "train.conll", "--out", tmp_path / "model", *options)
    assert answer.status != 0
    assert problem in answer.err and "Traceback" not in answer.err
