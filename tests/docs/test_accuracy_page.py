"""docs/results/accuracy.md is made from the results that are stored beside it."""

from __future__ import annotations

import pytest
from benchmarks import accuracy


def test_the_page_shows_every_stored_result() -> None:
    page = (accuracy.RESULTS / "accuracy.md").read_text(encoding="utf-8")
    results = accuracy.stored()
    if not results:
        pytest.skip("there are no results yet: python -m benchmarks.accuracy")
    for runs in (accuracy.NETWORKS, accuracy.FEATURES):
        for table in accuracy.lines(runs, results):
            assert table in page, "write the page anew: python -m benchmarks.accuracy --page"


def test_stored_results_are_of_the_commands_listed() -> None:
    commands = {run.name: run.command for run in accuracy.RUNS}
    for name, result in accuracy.stored().items():
        assert result["command"] == commands[name], f"run it again: python -m benchmarks.accuracy --only {name}"


def test_goals_and_the_order_of_models_are_checked() -> None:
    results = {"hmm": {"f1": 90.0}, "memm": {"f1": 92.0}, "crf": {"f1": 93.6}}
    assert accuracy.missed(results) == []
    assert accuracy.missed(results | {"memm": {"f1": 93.7}}) == ["the order HMM < MEMM < CRF does not hold"]
    assert accuracy.missed(results | {"crf-l1": {"f1": 93.5}}) == ["CRF with L1: F1 93.50, goal 93.6"]
