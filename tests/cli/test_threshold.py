"""`tag --threshold` and `evaluate --threshold`; a folder of several models."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from trelliswork.data import Sentence, read_conll
from trelliswork.models import Ensemble, Tagger


def test_tags_and_scores_are_those_of_the_threshold(cli: Cli, model: Path, data: Path, tmp_path: Path) -> None:
    out, scores = tmp_path / "tagged.conll", tmp_path / "scores.json"
    assert cli("tag", model, data / "test.conll", "--threshold", "0.02", "--out", out) == (0, "", "")
    gold = list(read_conll(data / "test.conll"))
    tagger, bare = Tagger.load(model), [Sentence(each.words) for each in gold]
    expected = tagger.tag(bare, threshold=0.02)
    assert expected != tagger.tag(bare)
    assert [list(each.tags or ()) for each in read_conll(out)] == expected
    assert cli("evaluate", model, data / "test.conll", "--threshold", "0.02", "--json", scores).status == 0
    found = json.loads(scores.read_text())["conlleval"]["overall"]
    assert found["recall"] == pytest.approx(
        tagger.evaluate([Sentence(each.words, each.tags) for each in gold], threshold=0.02)["recall"]
    )


def test_confidences_with_a_threshold(cli: Cli, model: Path, text_file: Path) -> None:
    rows = [line.split("\t") for line in cli(
        "tag", model, text_file, "--pretokenised", "--confidence", "--threshold", "0.05"
    ).out.splitlines() if line]  # fmt: skip
    sentences = [Sentence(tuple(line.split())) for line in text_file.read_text().splitlines() if line]
    found = Tagger.load(model).confidences(sentences, threshold=0.05)
    assert [row[1] for row in rows] == [tag for each in found for tag in each.tags]
    assert [float(row[2]) for row in rows] == pytest.approx([p for each in found for p in each.tokens], abs=1e-4)


def test_a_folder_of_models_answers_together(
    cli: Cli, model: Path, data: Path, text_file: Path, tmp_path: Path
) -> None:
    for seed in (0, 1):
        shutil.copytree(model, tmp_path / "seeds" / f"seed-{seed}")
    together = cli("tag", tmp_path / "seeds", text_file, "--pretokenised", "--confidence")
    assert together == cli("tag", model, text_file, "--pretokenised", "--confidence")
    assert len(Ensemble.load(tmp_path / "seeds").taggers) == 2
    assert cli("evaluate", tmp_path / "seeds", data / "test.conll").status == 0
    assert "2 models that answer together" in cli("info", tmp_path / "seeds").out


@pytest.mark.parametrize(
    ("options", "problem"),
    [(["--threshold", "0"], "threshold must lie in"), (["--threshold", "0.2", "--top-k", "2"], "leave one out")],
)
def test_bad_thresholds(cli: Cli, model: Path, text_file: Path, options: list[str], problem: str) -> None:
    answer = cli("tag", model, text_file, "--pretokenised", *options)
    assert answer.status == 2 and problem in answer.err and "Traceback" not in answer.err
