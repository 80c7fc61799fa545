"""The page of the neural figures says what its file of runs holds."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.neural_accuracy import (
    RESULTS,
    RUNS,
    TUTORIAL,
    Run,
    known,
    longest_span,
    page,
    remember,
    remembered,
    with_figures,
    with_settings,
)

from trelliswork.data import Sentence
from trelliswork.models import TaggerConfig
from trelliswork.training import TrainingConfig


def test_the_page_is_made_of_the_remembered_runs() -> None:
    assert (RESULTS / "neural.md").read_text("utf-8") == page(remembered(RESULTS / "neural.json"))


def test_the_tutorial_quotes_the_remembered_runs() -> None:
    text = TUTORIAL.read_text("utf-8")
    assert text == with_figures(text, remembered(RESULTS / "neural.json"))


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_the_settings_of_a_run_exist(run: Run) -> None:
    TaggerConfig(**run.settings)
    TrainingConfig(**run.training)


def test_a_run_is_remembered_once_for_each_seed(tmp_path: Path) -> None:
    path, run = tmp_path / "neural.json", RUNS[0]
    for seed, test in ((1, 90.0), (0, 91.0), (1, 92.0)):
        settings = {"settings": run.settings, "training": run.training}
        remember({"name": run.name, "seed": seed, "test": test, **settings}, path)
    assert [record["test"] for record in known(run, remembered(path))] == [91.0, 92.0]
    assert not list(tmp_path.glob("tmp*"))


def test_other_settings_make_another_run() -> None:
    run = RUNS[0]
    other = with_settings(run, ["hidden=7", "training.epochs=1"])
    assert (other.settings["hidden"], other.training["epochs"]) == (7, 1)
    assert run.settings.get("hidden") != 7
    record = {"name": run.name, "seed": 0, "settings": other.settings, "training": other.training}
    assert known(other, [record]) and not known(run, [record])


def test_the_longest_span_decides_whether_a_segmenter_can_learn_a_sentence() -> None:
    assert longest_span(Sentence(("a", "b", "c", "d"), ("B-X", "I-X", "B-X", "O"))) == 2
    assert longest_span(Sentence(("a",), ("O",))) == 0
