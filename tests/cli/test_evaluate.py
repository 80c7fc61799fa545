"""`evaluate` and `info`: scores of a model, and what it is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.pages import check_page, sections
from trelliswork.cli.main import run
from trelliswork.data import Sentence, conll_text, json_text, read_conll
from trelliswork.models import FeatureTagger, Tagger
from trelliswork.models.networks.features import normalize
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


@pytest.fixture(scope="module")
def rival(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another model of the same tags, which counts."""
    folder = tmp_path_factory.mktemp("models") / "counted"
    command = ["train", data / "train.conll", "--dev", data / "dev.conll", "--out", folder, "--quiet"]
    assert run([*map(str, command), "--feature-columns", "none", "--model", "naive-bayes"]) == 0
    return folder


def test_a_page_tells_where_a_model_fails(cli: Cli, rival: Path, data: Path, tmp_path: Path) -> None:
    answer = cli("evaluate", rival, data / "test.conll", "--html", tmp_path / "r.html")
    assert answer.status == 0 and f"written: {tmp_path / 'r.html'}" in answer.err
    check_page(page := (tmp_path / "r.html").read_text(encoding="utf-8"))
    assert sections(page) == [
        "Scores", "Spans by label", "What was taken for what", "Known and unknown words",
        "Can the confidences be trusted?", "Worst sentences",
    ]  # fmt: skip
    assert f"<title>{rival} on test.conll: Trelliswork report</title>" in page
    scores = FeatureTagger.load(rival).evaluate(tagged(data))
    ratios = " ".join(f"{100 * scores[name]:.2f}" for name in ("precision", "recall", "f1"))
    report = re.search("<pre>(.*?)</pre>", page, re.S)
    assert report is not None and f"overall {ratios} " in " ".join(report[1].split())
    for label in ("DATE", "LOC", "ORG", "PER"):
        assert f"\n{label} " in f"\n{answer.out}" and f"\n{label} " not in f"\n{report[1]}", "each score once"
        assert page.count(f"<tr><td>{label}</td>") == 1
    assert "<td>all</td>" not in page
    assert 'class="wrong"' in page and "Legend:" in page and "gold: " in page


def test_known_words_are_those_of_the_training_file(rival: Path, model: Path, data: Path) -> None:
    train = {word for each in read_conll(data / "train.conll") for word in each.words}
    test = {word for each in read_conll(data / "test.conll") for word in each.words}
    assert test - train
    of_features = FeatureTagger.load(rival)
    assert {word for word in test if of_features.knows(word)} == test & train
    network = Tagger.load(model)
    forms = set(network.features.vocabularies["word"].to_list())
    assert {word for word in test if network.knows(word)} == {word for word in test if normalize(word) in forms}


def test_a_model_is_compared_with_another(cli: Cli, model: Path, rival: Path, data: Path, tmp_path: Path) -> None:
    command = ["evaluate", model, data / "test.conll", "--quiet", "--against", rival]
    answer = cli(*command, "--json", tmp_path / "s.json", "--html", tmp_path / "r.html")
    assert answer.status == 0, answer.err
    record = json.loads((tmp_path / "s.json").read_text())["against"]
    ours, theirs = (each.load(folder).evaluate(tagged(data))["f1"] for each, folder in (
        (Tagger, model), (FeatureTagger, rival),
    ))  # fmt: skip
    assert (record["metric"], record["first"], record["second"]) == ("F1 of spans", ours, theirs)
    assert record["low"] <= ours - theirs <= record["high"] and 0 < record["p_value"] <= 1
    line = next(line for line in answer.out.splitlines() if line.startswith("F1 of spans   "))
    assert line.split()[3:6] == [f"{100 * ours:.2f}", f"{100 * theirs:.2f}", f"{100 * (ours - theirs):+.2f}"]
    assert f"A has fewer mistakes in {record['n_better']} sentence" in answer.out
    check_page(page := (tmp_path / "r.html").read_text(encoding="utf-8"))
    assert "Two models" in sections(page)
    assert any(each.startswith("Where ") and "is better" in each for each in sections(page))


def test_a_model_is_no_better_than_itself(cli: Cli, model: Path, data: Path) -> None:
    answer = cli("evaluate", model, data / "test.conll", "--quiet", "--against", model)
    assert "+0.00    +0.00 ..  +0.00   1.0000" in answer.out and "the difference is not significant" in answer.out


def test_what_cannot_be_compared(cli: Cli, model: Path, data: Path, tmp_path: Path) -> None:
    answer = cli("evaluate", model, "-", "--against", model)
    assert answer.status == 2 and "--against reads FILE twice" in answer.err
    command = ["train", data / "dev.conll", "--model", "naive-bayes", "--quiet", "--out", tmp_path / "pos"]
    assert cli(*command, "--tag-column", "2", "--feature-columns", "none").status == 0
    answer = cli("evaluate", model, data / "dev.conll", "--against", tmp_path / "pos", "--quiet", "--tag-column", "4")
    assert answer.status == 2 and answer.err.count("\n") == 1
    assert "expected F1 of spans from both models" in answer.err or "does not know the tag" in answer.err


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
