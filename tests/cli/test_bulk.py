"""Many files at once: the same bytes as one by one, whatever is killed, broken or full on the way."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from trelliswork.cli.answering import Job, Question
from trelliswork.cli.bulk import local
from trelliswork.cli.bulk import shards as bulk_shards
from trelliswork.cli.bulk.local import annotate_all, annotate_locally
from trelliswork.cli.bulk.shards import Outcome, Shard, annotate_shard, shards_of
from trelliswork.cli.inputs import load_reader
from trelliswork.data import Choices

JOB = Job(Question(), Choices())


@pytest.fixture
def shards(tmp_path: Path, data: Path) -> Path:
    """A folder of five files, one of them packed."""
    folder = tmp_path / "in"
    folder.mkdir()
    blocks = [block for block in (data / "test.conll").read_text(encoding="utf-8").split("\n\n") if block.strip()]
    for i in range(5):
        (folder / f"part-{i}.conll").write_text("\n\n".join(blocks[i::5]) + "\n\n", encoding="utf-8")
    packed = folder / "part-0.conll"
    (folder / "part-0.conll.gz").write_bytes(gzip.compress(packed.read_bytes()))
    packed.unlink()
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def jsonl(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def expected(cli: Cli, model: Path, shards: Path, tmp_path: Path) -> dict[str, bytes]:
    """What `predict` writes for each file by itself."""
    for path in shards.iterdir():
        out = tmp_path / path.name.removesuffix(".gz")
        assert cli("predict", model, path, "--confidence", "--out", out).status == 0
    return {path.name: (tmp_path / path.name.removesuffix(".gz")).read_bytes() for path in shards.iterdir()}


@pytest.mark.parametrize("workers", [1, 2])
def test_results_are_those_of_each_file_alone(
    cli: Cli, model: Path, shards: Path, tmp_path: Path, expected: dict[str, bytes], workers: int
) -> None:
    answer = cli("predict", model, f"{shards}/*", "--confidence", "--out", f"{tmp_path}/out/", "--workers", workers)
    assert answer.status == 0
    assert "5 files written to" in answer.out and "30 sentences" in answer.out
    assert "5/5" in answer.err and "0 s left" in answer.err
    found = contents(tmp_path / "out")
    found["part-0.conll.gz"] = gzip.decompress(found["part-0.conll.gz"])
    assert found == expected


def test_what_is_done_is_not_done_again(cli: Cli, model: Path, shards: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert cli("predict", model, shards, "--out", f"{out}/").status == 0
    before = contents(out)
    (out / "part-3.conll").write_text("mine\n", encoding="utf-8")
    (out / "part-4.conll").unlink()
    (out / ".part-4.conll.abcdefgh.part").write_text("half", encoding="utf-8")
    answer = cli("predict", model, shards, "--out", f"{out}/")
    assert answer.status == 0 and "4 files of 5 done before" in answer.err
    assert contents(out) == {**before, "part-3.conll": b"mine\n"}


def test_bad_records_are_set_aside(cli: Cli, model: Path, data: Path, tmp_path: Path) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    lines = ['{"tokens": ["Ann", "left"]}', "{broken", '{"tokens": "no list"}', '{"tokens": ["Bob"]}']
    (folder / "a.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    answer = cli("predict", model, folder, "--out", f"{out}/")
    assert answer.status == 0
    assert "2 bad records set aside" in answer.out
    assert [len(each["tokens"]) for each in jsonl(out / "a.jsonl")] == [2, 1]
    bad = jsonl(out / "quarantine" / "a.jsonl.jsonl")
    assert [(each["line"], each["record"]) for each in bad] == [(2, "{broken\n"), (3, '{"tokens": "no list"}\n')]
    assert all(each["reason"] for each in bad)


def test_a_bad_block_of_columns_is_set_aside_whole(model: Path, data: Path, tmp_path: Path) -> None:
    first, second, rest = (data / "test.conll").read_bytes().split(b"\n\n", 2)
    broken = second.replace(b"\n", b"\xff\n", 1)
    (tmp_path / "a.conll").write_bytes(b"\n\n".join([first, broken, rest]))
    (shard,) = shards_of([str(tmp_path / "a.conll")], str(tmp_path / "out"), None)
    shard.target.parent.mkdir()
    found = annotate_shard(load_reader(str(model), None), shard, JOB)
    assert (found.n_sentences, found.n_bad, found.problem) == (29, 1, "")
    (bad,) = jsonl(shard.quarantine)
    assert bad["line"] == first.count(b"\n") + 3
    assert bad["record"] == broken.decode("utf-8", "replace") + "\n\n"


def test_a_file_of_nothing_but_bad_records_is_given_up(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_shards, "MOST_BAD", 3)
    (tmp_path / "a.jsonl").write_text("{\n" * 4, encoding="utf-8")
    (shard,) = shards_of([str(tmp_path / "a.jsonl")], str(tmp_path / "out"), None)
    shard.target.parent.mkdir()
    assert "is it in the format of the others?" in annotate_shard(load_reader(str(model), None), shard, JOB).problem
    assert not shard.target.exists()


def test_a_damaged_file_does_not_stop_the_others(
    cli: Cli, model: Path, shards: Path, tmp_path: Path, expected: dict[str, bytes]
) -> None:
    whole = (shards / "part-0.conll.gz").read_bytes()
    (shards / "part-0.conll.gz").write_bytes(whole[: len(whole) // 2])
    out = tmp_path / "out"
    answer = cli("predict", model, shards, "--confidence", "--out", f"{out}/", "--workers", 2)
    assert answer.status == 1
    assert "1 file of 5 could not be annotated" in answer.err and "not a whole gzip file" in answer.err
    assert {name: each for name, each in expected.items() if "-0" not in name} == contents(out)
    (shards / "part-0.conll.gz").write_bytes(whole)
    assert cli("predict", model, shards, "--confidence", "--out", f"{out}/").status == 0
    assert gzip.decompress((out / "part-0.conll.gz").read_bytes()) == expected["part-0.conll.gz"]


def test_a_file_that_kills_every_process_is_given_up(
    model: Path, shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killing(*arguments: Any) -> Any:
        if "part-2" in str(arguments[1].source):
            os.kill(os.getpid(), signal.SIGKILL)
        return annotate_shard(*arguments)

    monkeypatch.setattr(local, "annotate_shard", killing)
    problems = [outcome.problem for _, outcome in _annotated(model, shards, tmp_path / "out") if outcome.problem]
    assert len(problems) == 1
    assert "part-2.conll: 3 processes died on it, the last with signal 9" in problems[0]
    assert len(contents(tmp_path / "out")) == 4


def _annotated(model: Path, shards: Path, out: Path) -> list[Any]:
    out.mkdir()
    return list(annotate_locally(shards_of([str(shards)], str(out), None), load_reader(str(model), None), JOB, 2))


def test_what_an_engine_leaves_half_written_is_removed(shards: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()

    def engine(todo: Sequence[Shard]) -> Iterator[tuple[Shard, Outcome]]:
        for shard in todo:
            (out / f".{shard.target.name}.abcdefgh.part").touch()  # of a process that was killed
            shard.target.write_text("done", encoding="utf-8")
            yield shard, Outcome(1)

    annotate_all(shards_of([str(shards)], str(out), None), out, engine)
    assert {name for name in contents(out) if not name.endswith(".lock")} == {path.name for path in shards.iterdir()}


def test_kill_of_the_whole_job_loses_nothing(cli: Cli, data: Path, shards: Path, tmp_path: Path) -> None:
    model, out = tmp_path / "crf", tmp_path / "out"
    train = ["train", data / "dev.conll", "--model", "crf", "--max-iterations", "5", "--quiet", "--out", model]
    assert cli(*train).status == 0
    predict = ["predict", str(model), f"{shards}/*.conll", "--confidence", "--workers", "2", "--out"]
    assert cli(*predict, f"{tmp_path}/undisturbed/").status == 0
    wanted = contents(tmp_path / "undisturbed")
    command = [sys.executable, "-m", "trelliswork", *predict, f"{out}/"]
    job = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while not list(out.glob("part-*")) and job.poll() is None and time.monotonic() < until:
        time.sleep(0.005)
    os.killpg(job.pid, signal.SIGKILL)
    job.wait()
    done = contents(out)
    assert cli(*predict, f"{out}/").status == 0
    assert contents(out) == wanted
    assert all(wanted[name] == each for name, each in done.items() if name.startswith("part-"))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["{shards}/*.nothing", "--out", "{tmp}/out/"], "expected files to read, got none that match"),
        (["{shards}/*"], "expected --out DIR/ for the results of several files, got none"),
        (["{shards}", "--out", "{shards}/part-1.conll"], "expected a folder for the results of several files"),
        (["{shards}", "--out", "{shards}"], "its result would replace it; choose another folder for --out"),
        (["{shards}/part-1.conll", "--workers", "2"], "--workers is for many files; give a pattern"),
        (["{shards}", "--out", "{tmp}/out/", "--engine", "ray"], "--engine ray needs Ray; install it with"),
    ],
)
def test_what_cannot_be_done_is_a_sentence(
    cli: Cli, model: Path, shards: Path, tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    if "ray" in arguments and _has_ray():
        pytest.skip("Ray is installed here")
    answer = cli("predict", model, *(each.format(shards=shards, tmp=tmp_path) for each in arguments))
    assert answer.status == 2
    assert sentence in answer.err


def _has_ray() -> bool:
    try:
        import ray  # noqa: F401
    except ImportError:
        return False
    return True


def test_two_files_with_one_result_are_refused(cli: Cli, model: Path, shards: Path, tmp_path: Path) -> None:
    (shards / "part-1.txt").write_text("Ann left .\n", encoding="utf-8")
    answer = cli("predict", model, shards, "--format", "jsonl", "--out", f"{tmp_path}/out/")
    assert answer.status == 2
    assert "would both be written to" in answer.err
