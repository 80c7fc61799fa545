"""Names in bulk annotation: links that somebody has planted, an input called quarantine, and errors about copies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from trelliswork.cli.answering import Job, Question
from trelliswork.cli.bulk import ray_engine
from trelliswork.cli.bulk import shards as bulk_shards
from trelliswork.cli.bulk.shards import Shard, annotate_shard, shards_of
from trelliswork.cli.inputs import load_reader
from trelliswork.data import Choices

JOB = Job(Question(), Choices())
GOOD, BAD = '{"tokens": ["Ann", "left"]}\n', '{"tokens": "no list"}\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two files of records, the first with a bad one."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.jsonl").write_text(GOOD + BAD + GOOD, encoding="utf-8")
    (folder / "b.jsonl").write_text(GOOD, encoding="utf-8")
    return folder


# Links


@pytest.mark.parametrize("workers", [1, 2])
def test_a_result_is_not_written_through_a_link(
    cli: Cli, model: Path, folder: Path, tmp_path: Path, workers: int
) -> None:
    out, victim = tmp_path / "out", tmp_path / "victim"
    out.mkdir()
    (out / "b.jsonl").symlink_to(victim)
    answer = cli("predict", model, folder, "--out", f"{out}/", "--workers", workers)
    assert answer.status == 1
    link = f"{out / 'b.jsonl'}: cannot be written: expected a file, got a link; remove it or choose another folder"
    assert link in answer.err and "1 file written" in answer.out
    assert not victim.exists()
    (out / "b.jsonl").unlink()
    assert cli("predict", model, folder, "--out", f"{out}/").status == 0
    assert (out / "b.jsonl").is_file() and not (out / "b.jsonl").is_symlink()


def test_a_link_that_is_planted_while_answers_are_written_is_replaced(
    model: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious", encoding="utf-8")
    _, shard = shards_of([str(folder)], str(tmp_path / "out"), None)
    shard.target.parent.mkdir()
    own = bulk_shards.write_answers

    def planting(*arguments: Any, **more: Any) -> int:
        shard.target.symlink_to(victim)
        return own(*arguments, **more)

    monkeypatch.setattr(bulk_shards, "write_answers", planting)
    assert annotate_shard(load_reader(str(model), None), shard, JOB).problem == ""
    assert victim.read_text(encoding="utf-8") == "precious" and not shard.target.is_symlink()


def test_what_is_set_aside_does_not_go_through_links(cli: Cli, model: Path, folder: Path, tmp_path: Path) -> None:
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    out.mkdir()
    elsewhere.mkdir()
    (out / "quarantine").symlink_to(elsewhere)
    answer = cli("predict", model, folder, "--out", f"{out}/")
    assert answer.status == 0 and f"1 bad record set aside, with the reasons, in {out / 'quarantine-2'}" in answer.out
    assert not list(elsewhere.iterdir()) and (out / "quarantine-2" / "a.jsonl.jsonl").is_file()


@pytest.mark.parametrize("place", ["folder", "file"])
def test_links_that_are_planted_in_the_quarantine_later(model: Path, folder: Path, tmp_path: Path, place: str) -> None:
    shard, _ = shards_of([str(folder)], str(tmp_path / "out"), None)
    shard.target.parent.mkdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    if place == "folder":
        shard.quarantine.parent.symlink_to(elsewhere)
    else:
        shard.quarantine.parent.mkdir()
        shard.quarantine.symlink_to(elsewhere / "victim")
    problem = annotate_shard(load_reader(str(model), None), shard, JOB).problem
    assert "got a link; remove it" in problem and str(shard.quarantine.parent) in problem
    assert not list(elsewhere.iterdir()) and not shard.target.exists()


def test_attempts_of_ray_are_not_counted_through_links(model: Path, folder: Path, tmp_path: Path) -> None:
    _, shard = shards_of([str(folder)], str(tmp_path / "out"), None)
    shard.target.parent.mkdir()
    victim = tmp_path / "victim"
    victim.write_text("precious", encoding="utf-8")
    shard.attempts.symlink_to(victim)
    problem = ray_engine.annotate_or_give_up(load_reader(str(model), None), shard, JOB).problem
    assert problem.startswith(f"{shard.source}: ") and ".part" not in problem
    assert victim.read_text(encoding="utf-8") == "precious"
    row = ray_engine._rows([Shard(shard.source, shard.attempts, shard.quarantine)])[0]
    assert row["target"] == str(shard.attempts), "the paths of actors keep links as they are"


# The quarantine


def test_an_input_called_quarantine(cli: Cli, model: Path, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (folder / "quarantine").write_text("Ann\nleft\n\n", encoding="utf-8")
    answer = cli("predict", model, folder, "--out", f"{out}/")
    assert answer.status == 0 and "3 files written" in answer.out
    assert (out / "quarantine").is_file()
    assert len((out / "quarantine-2" / "a.jsonl.jsonl").read_text(encoding="utf-8").splitlines()) == 1
    again = cli("predict", model, folder, "--out", f"{out}/")
    assert again.status == 0 and "3 files of 3 done before" in again.err


def test_an_input_called_quarantine_after_others(cli: Cli, model: Path, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert cli("predict", model, folder, "--out", f"{out}/").status == 0
    (folder / "quarantine").write_text("Ann\nleft\n\n", encoding="utf-8")
    answer = cli("predict", model, folder, "--out", f"{out}/")
    assert answer.status == 2
    assert (
        f"{out / 'quarantine'}: expected a file for the result of {folder / 'quarantine'}, got a folder" in answer.err
    )


# Errors


def test_a_file_of_bad_records_alone_is_named(cli: Cli, model: Path, folder: Path, tmp_path: Path) -> None:
    (folder / "a.jsonl").write_text(BAD * 2, encoding="utf-8")
    answer = cli("predict", model, folder, "--out", f"{tmp_path}/out/")
    assert answer.status == 1
    problem = answer.err.splitlines()[-1]
    assert problem.startswith(f"error: {folder / 'a.jsonl'}: expected ")
    assert "the first is line 1: expected a list of strings" in problem


def test_what_cannot_be_answered_is_at_the_line_of_the_file(
    model: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = json.dumps({"tokens": ["a"] * 20}) + "\n"
    (folder / "a.jsonl").write_text(GOOD + BAD + GOOD + long, encoding="utf-8")
    monkeypatch.setattr("trelliswork.cli.answering.MOST_TOKENS", 10)
    shard, _ = shards_of([str(folder)], str(tmp_path / "out"), None)
    shard.target.parent.mkdir()
    problem = annotate_shard(load_reader(str(model), None), shard, JOB).problem
    assert problem.startswith(f"{shard.source}:4: expected sentences of at most 10 tokens, got one of 20")


def test_notes_name_the_file(cli: Cli, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("".join(f"{word}\t{word.upper()}\n" for word in ("ab", "ba", "abba", "bab")), encoding="utf-8")
    assert cli("train", pairs, "--model", "pair-ngram", "--out", tmp_path / "m", "--quiet").status == 0
    source = tmp_path / "words.txt"
    source.write_bytes(b"ab\n\xff\nba\nzb\n")
    answer = cli("predict", tmp_path / "m", source, "--out", f"{tmp_path}/out/", "--workers", 1)
    assert answer.status == 0 and "1 bad record set aside" in answer.out
    assert f"first in {source}:4: " in answer.err


def test_a_full_disk_for_temporary_files_names_the_file(
    model: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "/tmp/tmp123/a.jsonl")

    monkeypatch.setattr("trelliswork.cli.bulk.shards.LineRecords.write", full)
    shard, _ = shards_of([str(folder)], str(tmp_path / "out"), None)
    shard.target.parent.mkdir()
    problem = annotate_shard(load_reader(str(model), None), shard, JOB).problem
    assert problem == f"{shard.source}: No space left on device"
