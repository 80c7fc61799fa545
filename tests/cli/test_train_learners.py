"""`train --model crf` with every learner, its measures, samples, and the bar on a terminal."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Cli
from trelliswork.models import FeatureTagger
from trelliswork.models.taggers.features.crf.chains import AveragedCRF
from trelliswork.models.taggers.features.learners.base import Progress
from trelliswork.training.progress import make_progress


@pytest.mark.parametrize(
    ("algorithm", "measure"),
    [("margin", "gap "), ("herding", "moment error "), ("perceptron", "moment error "), ("lbfgs", "gradient ")],
)
def test_iterations_are_reported(cli: Cli, data: Path, tmp_path: Path, algorithm: str, measure: str) -> None:
    options = ["--model", "crf", "--algorithm", algorithm, "--max-iterations", 10]
    answer = cli("train", data / "train.conll", "--out", tmp_path / "model", *options)
    assert answer.status == 0
    lines = [line for line in answer.err.splitlines() if line.startswith("iteration ")]
    assert lines and all(measure in line for line in lines)
    assert "iteration 10: " not in answer.err or ", dev " in lines[9]


def test_samples_are_drawn_and_kept(cli: Cli, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "model"
    options = ["--model", "crf", "--samples", 3, "--max-iterations", 5]
    assert cli("train", data / "train.conll", "--out", out, *options).status == 0
    crf = FeatureTagger.load(out).crf
    assert isinstance(crf, AveragedCRF) and len(crf.samples) == 3
    assert cli("tag", out, data / "test.conll", "--confidence").status == 0
    assert cli("info", out).status == 0


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (["--algorithm", "margin", "--c2", 0], "c2 must be above 0"),
        (
            ["--algorithm", "arow", "--samples", 2],
            "samples 2 cannot be combined with algorithm arow",
        ),
        (["--samples", 2, "--posterior", "x"], "posterior must be one of laplace, hamiltonian; got 'x'"),
        (["--algorithm", "svm"], "margin, herding; got 'svm'"),
    ],
)
def test_settings_that_cannot_be(cli: Cli, data: Path, tmp_path: Path, options: list[object], found: str) -> None:
    answer = cli("train", data / "train.conll", "--out", tmp_path / "model", "--model", "crf", *options)
    assert answer.status != 0 and found in answer.err and "Traceback" not in answer.err


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_a_bar_and_the_scored_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with make_progress() as progress:
        for number in range(1, 21):
            scored = number % 10 == 0
            line = Progress(number, np.zeros(1), 10.0 / number, 0.5).line() + (", dev f1 93.21" if scored else "")
            progress.iteration(number, line, most=20, stays=scored)
    shown = screen.getvalue()
    assert "iteration 10: loss 1, gradient 0.5" in shown and "dev f1 93.21" in shown


def test_quiet_is_silent(cli: Cli, data: Path, tmp_path: Path) -> None:
    options = ["--model", "crf", "--max-iterations", 10, "--quiet"]
    assert cli("train", data / "train.conll", "--out", tmp_path / "model", *options).err == ""


def test_a_line_has_what_the_learner_says() -> None:
    assert Progress(2, np.zeros(1), 3.25, measures={"gap": 0.5}).line() == "iteration 2: loss 3.25, gap 0.5"
