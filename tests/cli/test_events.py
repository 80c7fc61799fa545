"""Models of events through the commands: trained by name from JSON lines, asked, scored and shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from trelliswork.data.corpus import builtin_corpus, builtin_documents, write_documents, write_events

SMALL = ["--epochs", "1", "--hidden", "8", "--word-dim", "8", "--quiet"]


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("events")
    write_events(builtin_corpus(sizes=(6, 2, 2)), folder)
    return folder


@pytest.mark.parametrize("name", ["joint-events", "event-factors", "sling"])
def test_a_model_is_trained_asked_scored_and_shown(cli: Cli, events: Path, tmp_path: Path, name: str) -> None:
    out, test = tmp_path / "model", events / "test.jsonl"
    trained = cli("train", events / "train.jsonl", "--dev", events / "dev.jsonl", "--model", name, "--out", out, *SMALL)
    assert trained.status == 0, trained.err
    assert f'name = "{name}"' in (out / "config.toml").read_text()
    asked = cli("predict", out, test)
    assert asked.status == 0, asked.err
    for line, given in zip(asked.out.splitlines(), test.read_text().splitlines(), strict=True):
        found = json.loads(line)
        parts = {"frames", "mentions", "slots"} if name == "sling" else {"entities", "events"}
        assert set(found.pop("value")) == parts
        assert found == json.loads(given)  # everything else comes back as it was
    lines = cli("predict", out, test, "--format", "pretty").out.splitlines()  # with its value as JSON
    assert [set(json.loads(line.split("\t")[1])) for line in lines] == [parts] * 2
    for format in ("conll", "conllu", "csv"):
        refused = cli("predict", out, test, "--format", format)
        assert refused.status == 2 and f"events cannot be written as {format}; add --format jsonl" in refused.err
    sure = cli("predict", out, test, "--confidence", "--top-k", "2")
    assert sure.status == 0, sure.err
    for line in sure.out.splitlines():
        found = json.loads(line)
        assert found["search"] and all(0 <= each["probability"] <= 1 for each in found.get("alternatives", []))
        assert ("probability" in found) == bool(found.get("alternatives"))
    words = tmp_path / "words.txt"
    words.write_text("Ann met Bob . She left .\n", encoding="utf-8")
    if name == "sling":  # the others read dependencies
        plain = cli("predict", out, words, "--pretokenised")  # JSON lines are the default, whatever is read
        assert plain.status == 0 and all(set(json.loads(line)["value"]) == parts for line in plain.out.splitlines())
    scored = cli("evaluate", out, test)
    assert scored.status == 0 and "precision" in scored.out
    assert "parameters" in cli("info", out).out


def test_documents_are_read_answered_and_written(cli: Cli, tmp_path: Path) -> None:
    write_documents(builtin_documents(sizes=(4, 1, 1)), tmp_path)
    files = tmp_path / "train.jsonl", "--dev", tmp_path / "dev.jsonl"
    small = [each for each in SMALL if each != "--quiet"]
    trained = cli("train", *files, "--model", "event-factors", "--reach", "1", "--out", tmp_path / "m", *small)
    assert trained.status == 0, trained.err
    assert "train: 4 documents, " in trained.err + trained.out
    asked = cli("predict", tmp_path / "m", tmp_path / "test.jsonl")
    assert asked.status == 0, asked.err
    for line, given in zip(asked.out.splitlines(), (tmp_path / "test.jsonl").read_text().splitlines(), strict=True):
        found = json.loads(line)
        assert set(found.pop("value")) == {"entities", "events"} and found == json.loads(given)
    broken = json.loads((tmp_path / "test.jsonl").read_text().splitlines()[0])
    broken["sentences"][0][1] -= 1
    (tmp_path / "broken.jsonl").write_text(json.dumps(broken) + "\n")
    refused = cli("evaluate", tmp_path / "m", tmp_path / "broken.jsonl")
    assert refused.status == 2 and "one after another from 0" in refused.err and "broken.jsonl:1" in refused.err


def test_what_is_wrong_with_a_file_is_said(cli: Cli, events: Path, tmp_path: Path) -> None:
    columns = tmp_path / "words.conll"
    columns.write_text("Ann B-PER\nsings O\n")
    refused = cli("train", columns, "--model", "sling", "--out", tmp_path / "model")
    assert refused.status == 2 and "expected JSON lines with tokens, tags and events" in refused.err
    lines = (events / "train.jsonl").read_text().splitlines()
    record = json.loads(lines[2])
    record["events"] = [{"trigger": 99, "type": "Sing"}]
    broken = tmp_path / "broken.jsonl"
    broken.write_text("\n".join([*lines[:2], json.dumps(record)]))
    refused = cli("train", broken, "--model", "joint-events", "--out", tmp_path / "model")
    assert refused.status == 2 and f"{broken}:3" in refused.err and 'as "trigger", got 99' in refused.err
    assert not (tmp_path / "model").exists()
