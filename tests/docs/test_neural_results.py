"""The page of the neural figures says what its file of runs holds."""

from __future__ import annotations

from inspect import signature
from pathlib import Path

import pytest
from benchmarks.neural_accuracy import (
    RESULTS,
    RUNS,
    TUTORIAL,
    Run,
    command,
    known,
    longest_span,
    page,
    remember,
    remembered,
    with_figures,
    with_settings,
)

from trelliswork.cli.train import train
from trelliswork.data import Sentence


def test_the_page_is_made_of_the_remembered_runs() -> None:
    assert (RESULTS / "neural.md").read_text("utf-8") == page(remembered(RESULTS / "neural.json"))


def test_the_tutorial_quotes_the_remembered_runs() -> None:
    text = TUTORIAL.read_text("utf-8")
    assert text == with_figures(text, remembered(RESULTS / "neural.json"))


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_the_settings_of_a_run_exist(run: Run) -> None:
    assert all(getattr(run.network, name) == value for name, value in run.settings.items())
    assert all(getattr(run.learning, name) == value for name, value in run.training.items())


def test_a_run_is_remembered_once_for_each_seed(tmp_path: Path) -> None:
    path, run = tmp_path / "neural.json", RUNS[0]
    for seed, test in ((1, 90.0), (0, 91.0), (1, 92.0)):
        settings = {"settings": run.network.to_dict(), "training": run.learning.to_dict()}
        remember({"name": run.name, "seed": seed, "test": test, **settings}, path)
    assert [record["test"] for record in known(run, remembered(path))] == [91.0, 92.0]
    assert not list(tmp_path.glob("tmp*"))


def test_other_settings_make_another_run() -> None:
    run = RUNS[0]
    other = with_settings(run, ["hidden=7", "training.epochs=1"])
    assert (other.settings["hidden"], other.training["epochs"]) == (7, 1)
    assert run.settings.get("hidden") != 7
    record = {"name": run.name, "seed": 0, "settings": other.network.to_dict(), "training": other.learning.to_dict()}
    assert known(other, [record]) and not known(run, [record])


def test_what_is_left_out_of_a_record_is_the_default() -> None:
    run = Run("x", "x", RUNS[0].corpus, 0.0, "window", settings={"dropout": 0.3})
    assert known(run, [{"name": "x", "seed": 0, "settings": {}, "training": {}}])
    assert not known(run, [{"name": "x", "seed": 0, "settings": {"dropout": 0.31}, "training": {}}])


def test_options_on_the_page_are_those_of_the_command_line() -> None:
    found = {part for run in RUNS for part in command(run).split() if part.startswith("--")}
    known_options = {f"--{name.replace('_', '-')}" for name in signature(train).parameters}
    assert found <= known_options
    run = Run("x", "x", RUNS[0].corpus, 0.0, "window", True, {"word_dim": 9}, {"epochs": 2})
    assert command(run) == "--model window --vectors FILE --word-dim 9 --epochs 2"


def test_the_longest_span_decides_whether_a_segmenter_can_learn_a_sentence() -> None:
    assert longest_span(Sentence(("a", "b", "c", "d"), ("B-X", "I-X", "B-X", "O"))) == 2
    assert longest_span(Sentence(("a",), ("O",))) == 0
