"""Bulk annotation of every format: what is killed, full or broken changes no byte of the results; also with Ray."""

from __future__ import annotations

import json
import mmap
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from trelliswork import writing
from trelliswork.cli.answering import Job, Question
from trelliswork.cli.bulk import local
from trelliswork.cli.bulk.local import annotate_locally
from trelliswork.cli.bulk.ray_engine import annotate_or_give_up
from trelliswork.cli.bulk.shards import TRIES, Outcome, Shard, annotate_shard, clear_parts, shards_of
from trelliswork.cli.inputs import load_reader
from trelliswork.data import Choices, Sentence, json_text, read_conll

JOB = Job(Question(confidence=True), Choices())
FORMATS = ("conll", "conllu", "jsonl", "parquet")
TRELLISWORK = (sys.executable, "-m", "trelliswork")
KILLED, FULL, POISONED, DAMAGED = "part-2", "part-1", "part-3", "part-4"

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason='Ray is not installed: pip install "trelliswork[ray]"')


def as_conllu(sentence: Sentence) -> str:
    rows = [[str(i), word, *"________"] for i, word in enumerate(sentence.words, 1)]
    return "".join("\t".join(row) + "\n" for row in rows) + "\n"


def write_shard(path: Path, sentences: Sequence[Sentence], *, poisoned: bool) -> None:
    """Sentences in the format of the suffix, one record that cannot be read among them if `poisoned`."""
    if path.suffix == ".parquet":
        rows = [list(each.words) for each in sentences]
        rows[1:1] = [["Ann", None]] if poisoned else []
        pq.write_table(pa.table({"id": list(range(len(rows))), "tokens": rows}), path)
        return
    formats = {".jsonl": lambda each: json_text(Sentence(each.words)), ".conllu": as_conllu}
    write = formats.get(path.suffix, lambda each: "\n".join(each.words) + "\n\n")
    records = [write(each).encode() for each in sentences]
    bad = b"{broken\n" if path.suffix == ".jsonl" else records[0].replace(b"\n", b"\xff\n", 1)
    records[1:1] = [bad] if poisoned else []
    path.write_bytes(b"".join(records))


def write_shards(folder: Path, data: Path, format: str) -> None:
    folder.mkdir()
    sentences = list(read_conll(data / "test.conll"))
    for i in range(5):
        path = folder / f"part-{i}.{format}"
        write_shard(path, sentences[i::5], poisoned=path.stem == POISONED)


def contents(folder: Path) -> dict[str, bytes]:
    """All files, hidden ones and those set aside too, but the lock."""
    paths = [path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(".lock")]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def annotated(model: Any, folder: Path, out: Path, n_workers: int = 1) -> dict[str, Outcome]:
    out.mkdir(exist_ok=True)
    todo = [shard for shard in shards_of([str(folder)], str(out), None) if not shard.is_done]
    return {shard.source.stem: outcome for shard, outcome in annotate_locally(todo, model, JOB, n_workers)}


@pytest.fixture(scope="module")
def loaded(model: Path) -> Any:
    return load_reader(str(model), None)


@pytest.mark.parametrize("format", FORMATS)
def test_a_kill_a_full_disk_and_damage_change_no_byte(
    loaded: Any, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    write_shards(folder, data, format)
    quiet = annotated(loaded, folder, tmp_path / "quiet")
    assert {name: each.n_bad for name, each in quiet.items() if each.n_bad} == {POISONED: 1}
    assert not any(each.problem for each in quiet.values())
    expected = contents(tmp_path / "quiet")
    assert len(expected) == 6  # five results, and what was set aside
    damaged = folder / f"{DAMAGED}.{format}"
    whole = damaged.read_bytes()
    damaged.write_bytes(b"\x1f\x8b" + whole[:50])  # the beginning of a gzip file that is none

    with monkeypatch.context() as patch:
        disturb(patch, tmp_path / "killed")
        found = annotated(loaded, folder, out, 2)
    assert (tmp_path / "killed").exists()
    assert {name for name, each in found.items() if each.problem} == {FULL, DAMAGED}
    assert "the disk is full" in found[FULL].problem
    so_far = contents(out)
    assert so_far == {name: each for name, each in expected.items() if FULL not in name and DAMAGED not in name}

    damaged.write_bytes(whole)
    assert annotated(loaded, folder, out, 2).keys() == {FULL, DAMAGED}
    assert contents(out) == expected


def disturb(patch: pytest.MonkeyPatch, killed: Path) -> None:
    """The process of one shard dies once, in the middle of writing; another shard is written to a full disk."""
    own = writing.atomic_write

    def killing(model: Any, shard: Shard, job: Job) -> Outcome:
        if shard.source.stem == KILLED and not killed.exists():
            killed.touch()
            (shard.target.parent / f".{shard.target.name}.abcdefgh.part").write_text("half", encoding="utf-8")
            os.kill(os.getpid(), signal.SIGKILL)
        return annotate_shard(model, shard, job)

    def full(path: Path, mode: str = "w", **how: Any) -> Any:
        return own("/dev/full", mode) if FULL in path.name else own(path, mode, **how)

    patch.setattr(local, "annotate_shard", killing)
    patch.setattr(writing, "atomic_write", full)


def test_what_is_set_aside_of_parquet_is_a_row(loaded: Any, data: Path, tmp_path: Path) -> None:
    write_shards(tmp_path / "in", data, "parquet")
    annotated(loaded, tmp_path / "in", tmp_path / "out")
    (path,) = (tmp_path / "out" / "quarantine").iterdir()
    bad = json.loads(path.read_text(encoding="utf-8"))
    assert bad == {
        "line": 2,
        "reason": 'expected a string at "tokens"[1], got null',
        "record": '{"id": 1, "tokens": ["Ann", null]}',
    }
    assert 1 not in pq.read_table(tmp_path / "out" / f"{POISONED}.parquet")["id"].to_pylist()


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="needs /proc")
def test_processes_share_the_memory_of_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = mmap.mmap(-1, 16 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)  # malloc may take parts of its heap
    weights = torch.frombuffer(pages, dtype=torch.float32).fill_(1.0)

    def measured(model: torch.Tensor, shard: Shard, job: Job) -> Outcome:
        assert model.sum() == len(model)  # all of it is read
        return Outcome(private_kib(model.data_ptr()))

    monkeypatch.setattr(local, "annotate_shard", measured)
    shards = [Shard(tmp_path / str(i), tmp_path / "out", tmp_path / "bad") for i in range(2)]
    for _, outcome in annotate_locally(shards, weights, JOB, 2):
        assert outcome.n_sentences < 1024  # of 16,384
    assert private_kib(weights.data_ptr()) >= 16_384


def private_kib(address: int) -> int:
    """How much of the memory around an address belongs to this process alone."""
    inside, found = False, 0
    for line in Path("/proc/self/smaps").read_text(encoding="ascii").splitlines():
        name, *rest = line.split()
        if "-" in name and ":" not in name:
            first, last = (int(end, 16) for end in name.split("-"))
            inside = first <= address < last
        elif inside and name.startswith("Private_"):
            found += int(rest[0])
    return found


@needs_ray
def test_ray_writes_the_same_bytes_though_an_actor_is_killed(
    model: Path, loaded: Any, data: Path, tmp_path: Path
) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    sentences = list(read_conll(data / "test.conll"))
    for i in range(24):
        path = folder / f"part-{i}.{FORMATS[i % 4]}"
        write_shard(path, [*sentences[i:], *sentences] * 4, poisoned=i >= 20)
    annotated(loaded, folder, tmp_path / "quiet")
    command = [*TRELLISWORK, "predict", str(model), f"{folder}/*", "--confidence"]
    command += ["--out", f"{out}/", "--engine", "ray", "--workers", "2"]
    with started(command) as job:
        os.kill(actor_that_writes(job.pid, out, seconds=300), signal.SIGKILL)
        n_done = len(list(out.glob("part-*")))
        done, told = job.communicate(timeout=300)
    assert job.returncode == 0, told
    assert 0 < n_done < 24, "killed before or after the work"
    assert "24 files written to" in done and "4 bad records set aside" in done
    assert contents(out) == contents(tmp_path / "quiet")


POISON = """import os, signal
def attributes(sentence):
    if "Poison" in sentence.words:
        os.kill(os.getpid(), signal.SIGKILL)
    return [{"word": word} for word in sentence.words]
"""


@needs_ray
def test_ray_gives_up_a_file_that_kills_every_actor(data: Path, tmp_path: Path) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    (tmp_path / "poison.py").write_text(POISON, encoding="utf-8")
    for name, words in {"a": "Ann left .", "b": "Poison left .", "c": "Bob left ."}.items():
        (folder / f"{name}.txt").write_text(f"{words}\n", encoding="utf-8")
    code = ["--features", "poison:attributes"]
    train = ["train", str(data / "train.conll"), "--model", "crf", "--max-iterations", "2", "--quiet", "--out", "crf"]
    assert started([*TRELLISWORK, *train, *code], tmp_path).wait(timeout=300) == 0
    predict = ["predict", "crf", "in/*", "--pretokenised", "--out", "out/", "--engine", "ray", "--workers", "2"]
    with started([*TRELLISWORK, *predict, *code], tmp_path) as job:
        _, told = job.communicate(timeout=600)
    assert job.returncode == 1, told
    assert "b.txt: 3 processes died on it; is memory short?" in told
    assert set(contents(out)) == {"a.txt", "c.txt"}


def test_a_shard_that_was_begun_too_often_is_given_up(loaded: Any, data: Path, tmp_path: Path) -> None:
    write_shards(tmp_path / "in", data, "conll")
    (tmp_path / "out").mkdir()
    shard, *_ = shards_of([str(tmp_path / "in")], str(tmp_path / "out"), None)
    shard.attempts.write_bytes(b"." * (TRIES - 1))
    assert not annotate_or_give_up(loaded, shard, JOB).problem and shard.is_done
    assert not shard.attempts.exists()
    shard.target.unlink()
    shard.attempts.write_bytes(b"." * TRIES)
    assert f"{TRIES} processes died on it" in annotate_or_give_up(loaded, shard, JOB).problem and not shard.is_done
    clear_parts([shard])
    assert contents(tmp_path / "out") == {}


def started(command: Sequence[str], folder: Path | None = None) -> subprocess.Popen[str]:
    """A command; its actors have the priority of other processes, since on a busy machine they would starve."""
    environment = {**os.environ, "RAY_worker_niceness": "0"}
    return subprocess.Popen(
        command, cwd=folder, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def actor_that_writes(job: int, out: Path, seconds: float) -> int:
    """An actor of a job in the middle of a file, when others are done."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for actor in actors_below(job) if list(out.glob("part-*")) else ():
            if any(path.startswith(f"{out}/.part-") for path in open_files(actor)):
                return actor
    raise AssertionError(f"no actor wrote in {seconds} s")


def open_files(process: int) -> list[str]:
    try:
        return [os.readlink(each) for each in Path(f"/proc/{process}/fd").iterdir()]
    except OSError:  # it ended, or closed one of them
        return []


def actors_below(job: int) -> Iterator[int]:
    """The processes of the actors of a job."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat, title = (folder / "stat").read_text(), (folder / "cmdline").read_text()
        except OSError:
            continue
        parents[int(folder.name)] = int(stat.rpartition(")")[2].split()[1]), title
    for process, (parent, title) in parents.items():
        while parent in parents and parent != job:
            parent = parents[parent][0]
        if parent == job and title.startswith("ray::") and "_Annotator" in title:
            yield process
