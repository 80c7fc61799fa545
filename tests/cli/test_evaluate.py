"""`evaluate` and `info`: scores of a model, and what it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from trelliswork.data import Sentence, conll_text, json_text, read_conll
from trelliswork.models import Tagger
from trelliswork.tags.schemes import convert


def tagged(data: Path) -> list[Sentence]:
    return [Sentence(each.words, each.tags) for each in read_conll(data / "test.conll")]


def test_evaluate_prints_and_writes_the_same_scores(cli: Cli, model: Path, data: Path, tmp_path: Path) -> None:
    scores = tmp_path / "scores.json"
    answer = cli("evaluate", model, data / "test.conll", "--json", scores)
    assert answer.status == 0
    assert "word = 1, tag = 4 (IOB2)\n" in answer.err
    expected = Tagger.load(model).evaluate(tagged(data))
    written = json.loads(scores.read_text())
    assert written["conlleval"]["overall"]["f1"] == expected["f1"]
    assert written["accuracy"] == expected["accuracy"]
    assert 0 <= written["calibration"]["expected_error"] <= 1
    assert f"token accuracy          {100 * expected['accuracy']:6.2f}" in answer.out
    for line in ("PER", "overall", "F1 of spans, strict", "calibration error"):
        assert line in answer.out


@pytest.mark.parametrize("scheme", ["IOB1", "IOBES"])
def test_gold_tags_in_another_scheme_are_converted(
    cli: Cli, model: Path, data: Path, tmp_path: Path, scheme: str
) -> None:
    path = tmp_path / "other.conll"
    rows = [Sentence(each.words, tuple(convert(each.tags or (), "IOB2", scheme))) for each in tagged(data)]
    path.write_text("".join(map(conll_text, rows)))
    answer = cli("evaluate", model, path, "--tag-column", "2")
    assert f"tags converted from {scheme} to IOB2" in answer.err
    assert answer.out == cli("evaluate", model, data / "test.conll").out


def test_json_lines_score_the_same(cli: Cli, model: Path, data: Path, tmp_path: Path) -> None:
    path = tmp_path / "test.jsonl"
    path.write_text("".join(map(json_text, tagged(data))))
    assert cli("evaluate", model, path).out == cli("evaluate", model, data / "test.conll").out


def test_info_tells_data_labels_scores_and_transitions(cli: Cli, model: Path) -> None:
    answer = cli("info", model)
    assert answer.status == 0
    for told in ("parameters", "train.conll", "11 (IOB2): O, B-DATE", "21 labels (IOBES)", "best epoch", "O -> "):
        assert told in answer.out
    assert "I-PER -> O" not in answer.out  # illegal in IOBES, so never learned


def test_info_as_json(cli: Cli, model: Path) -> None:
    record = json.loads(cli("info", model, "--json").out)
    assert record["scheme"] == "IOB2" and len(record["labels"]) == 21
    assert record["transitions"][0]["score"] >= record["transitions"][-1]["score"]
