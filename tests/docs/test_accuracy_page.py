"""docs/results/accuracy.md and tables of other documents are made from the results that are stored beside them."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.accuracy.__main__ import keep, stored
from benchmarks.accuracy.measure import split
from benchmarks.accuracy.page import letters, missed, of, recipe, tables
from benchmarks.accuracy.quotes import QUOTES, quoted
from benchmarks.accuracy.runs import ENTITIES, FEATURES, NETWORKS, PARTS_OF_SPEECH, RUNS, Run
from benchmarks.report import RESULTS

from trelliswork.models.catalogue import ENTRIES

BY_NAME = {run.name: run for run in RUNS}


def result(name: str, seed: int = 0, **scores: float) -> dict[str, object]:
    return {"name": name, "seed": seed, "command": BY_NAME[name].command(seed), **scores}


@pytest.mark.parametrize("runs", [NETWORKS, PARTS_OF_SPEECH, ENTITIES, FEATURES], ids=lambda runs: runs[0].name)
def test_the_page_shows_every_stored_result(runs: list[Run]) -> None:
    page = (RESULTS / "accuracy.md").read_text(encoding="utf-8")
    for table in [*tables(runs, stored()), *recipe(), *letters()]:
        assert table in page, "write the page anew: python -m benchmarks.accuracy --page"


def test_stored_results_are_of_the_commands_listed() -> None:
    for each in stored():
        assert of(BY_NAME[each["name"]], [each]), f"run it again: python -m benchmarks.accuracy --only {each['name']}"


@pytest.mark.parametrize("path", QUOTES, ids=lambda path: path.name)
def test_documents_quote_the_stored_results(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text == quoted(path, stored()), "write it anew: python -m benchmarks.accuracy --page"


@pytest.mark.parametrize("run", [run for run in RUNS if "--model" in run.options], ids=lambda run: run.name)
def test_a_run_names_a_model(run: Run) -> None:
    words = run.options.split()
    assert words[words.index("--model") + 1] in ENTRIES


def test_goals_and_the_order_of_models_are_checked() -> None:
    good = [result("hmm", f1=90.0), result("memm", f1=92.0), result("crf", f1=93.6)]
    assert missed(good) == []
    assert missed([result("hmm", f1=90.0), result("memm", f1=93.7), result("crf", f1=93.6)]) == [
        "the order HMM < MEMM < CRF does not hold"
    ]
    assert missed([*good, result("crf-l1", f1=93.5)]) == ["CoNLL-2000 chunking, CRF with L1, seed 0: 93.50, goal 93.6"]
    assert missed([result("upos", 1, accuracy=94.0)]) == ["UD English EWT, UPOS, BiLSTM-CRF, seed 1: 94.00, goal 94.6"]


def test_a_result_is_kept_once_for_each_seed(tmp_path: Path) -> None:
    path = tmp_path / "accuracy.json"
    for name, seed, f1 in (("crf", 0, 93.0), ("bilstm", 1, 94.0), ("bilstm", 0, 95.0), ("bilstm", 1, 96.0)):
        keep(result(name, seed, f1=f1), path)
    assert [each["f1"] for each in of(BY_NAME["bilstm"], stored(path))] == [95.0, 96.0]
    assert stored(path)[-1]["name"] == "crf"
    assert [each.name for each in tmp_path.iterdir()] == ["accuracy.json"]


def test_a_result_of_another_command_is_not_shown() -> None:
    old = result("bilstm", f1=99.0) | {"command": "trelliswork train other"}
    assert of(BY_NAME["bilstm"], [old]) == [] and missed([old | {"f1": 1.0}]) == []


def test_the_last_tenth_is_dev(tmp_path: Path) -> None:
    source, train, dev = (tmp_path / name for name in ("all", "train", "dev"))
    source.write_text("".join(f"w{i} X\n\n" for i in range(20)))
    split(source, train, dev)
    assert dev.read_text() == "w18 X\n\nw19 X\n\n" and train.read_text().count("X") == 18
