"""`trelliswork export`: a folder for other programs, or a sentence why not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import SMALL, WINDOW, Cli
from trelliswork.models import load_tagger
from trelliswork.models.taggers.networks.onnx_export.onnx_tagger import OnnxTagger

FILES = ["README.md", "model.json", "model.onnx", "onnx_tagger.py"]


def test_a_model_becomes_a_folder(cli: Cli, model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "graph"
    answer = cli("export", model, "--onnx", folder)
    assert (answer.status, answer.err) == (0, "")
    assert answer.out.startswith(f"{folder}: {', '.join(FILES)} (") and answer.out.endswith(" MB)\n")
    assert sorted(path.name for path in folder.iterdir()) == FILES
    words = ["Dr", "May", "Lincoln", "smiled", "in", "Oslo", "."]
    assert OnnxTagger(folder).tag(words) == load_tagger(model).tag(words)


def test_the_folder_is_that_of_the_model_unless_named(cli: Cli, data: Path, tmp_path: Path) -> None:
    command = [
        "train",
        data / "train.conll",
        "--out",
        tmp_path / "chunker",
        "--model",
        "bilstm-semicrf",
        "--epochs",
        1,
    ]
    assert cli(*command, "--quiet", *SMALL).status == 0
    assert cli("export", tmp_path / "chunker", "--onnx").status == 0
    described = json.loads((tmp_path / "chunker" / "onnx" / "model.json").read_text(encoding="utf-8"))
    assert described["kind"] == "Segmenter"
    assert cli("evaluate", tmp_path / "chunker", data / "dev.conll").status == 0, "the model is as it was"
    again = cli("export", tmp_path / "chunker", "--onnx")
    assert again.status == 2 and "there is an export already" in again.err
    assert cli("export", tmp_path / "chunker", "--onnx", "--force").status == 0


def test_a_folder_without_a_model(cli: Cli, tmp_path: Path) -> None:
    answer = cli("export", tmp_path / "nothing", "--onnx")
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.count("\n") == 1 and "expected a model folder, got nothing" in answer.err
    assert not any(tmp_path.iterdir())


def test_a_model_that_has_no_graph(cli: Cli, data: Path, tmp_path: Path) -> None:
    command = ["train", data / "train.conll", "--out", tmp_path / "crf", "--model", "crf", "--quiet"]
    assert cli(*command).status == 0
    answer = cli("export", tmp_path / "crf", "--onnx", tmp_path / "graph")
    assert answer.status == 2 and "got a FeatureTagger" in answer.err
    assert not (tmp_path / "graph").exists()


def test_a_format_must_be_named(cli: Cli, model: Path) -> None:
    answer = cli("export", model)
    told = "error: expected one format to export to, got none; say --onnx, --crfsuite, --python, --arpa or --vectors\n"
    assert answer == (2, "", told)


def test_help_says_what_comes_out(cli: Cli) -> None:
    said = cli("export", "--help").out
    assert all(name in said for name in ("--onnx", "--force", "OUT", "onnxruntime"))


def test_several_seeds_are_shown_and_exported_one_by_one(cli: Cli, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "seeds"
    command = ["train", data / "dev.conll", "--seeds", 2, "--out", out, "--epochs", 1, "--feature-columns", "none"]
    assert cli(*command, "--quiet", *WINDOW).status == 0
    shown = cli("info", out)
    assert shown.status == 0 and "2 models that answer together" in shown.out and "seed-1  dev f1 " in shown.out
    answer = cli("export", out, "--onnx")
    assert answer.status == 0 and answer.out.count("model.onnx") == 2
    words = ["May", "smiled"]
    for i in range(2):
        (wanted,) = load_tagger(out / f"seed-{i}").confidences([words])
        found = OnnxTagger(out / "onnx" / f"seed-{i}").confidences(words)
        assert found["tags"] == wanted.tags and found["tokens"] == pytest.approx(wanted.tokens, abs=1e-4)
    assert load_tagger(out).tag(words), "the folder is as it was"
