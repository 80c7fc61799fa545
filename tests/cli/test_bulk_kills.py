"""Bulk annotation by real processes that are killed: none is left, the folder is free, and the job can be resumed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.cli.test_bulk import contents
from trelliswork.cli.main import run

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
GENEROUS = 60.0  # seconds, on a busy machine
N_FILES = 6


@pytest.fixture(scope="module")
def command(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], list[str]]:
    """A job of some seconds in two processes, into a folder."""
    folder = tmp_path_factory.mktemp("kills")
    learn = ["train", data / "train.conll", "--dev", data / "dev.conll", "--model", "crf", "--out", folder / "ner"]
    assert run([*map(str, learn), "--quiet", "--feature-columns", "none", "--max-iterations", "5"]) == 0
    (folder / "in").mkdir()
    text = (data / "test.conll").read_text(encoding="utf-8")
    for i in range(N_FILES):
        (folder / "in" / f"part-{i}.conll").write_text(text * 200, encoding="utf-8")

    def into(out: Path) -> list[str]:
        job = [sys.executable, "-m", "trelliswork", "predict", f"{folder}/ner", f"{folder}/in/*", "--confidence"]
        return [*job, "--out", f"{out}/", "--workers", "2"]

    return into


@pytest.fixture(scope="module")
def undisturbed(command: Callable[[Path], list[str]], tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    out = tmp_path_factory.mktemp("undisturbed")
    assert subprocess.run(command(out), capture_output=True, check=False).returncode == 0
    return contents(out)


@pytest.fixture
def out(tmp_path: Path) -> Iterator[Path]:
    """Where results go; a test that fails leaves no process either."""
    yield tmp_path / "out"
    for process in processes_of(tmp_path / "out"):
        os.kill(process, signal.SIGKILL)


def processes_of(out: Path) -> list[int]:
    """The processes that have the folder in their command line; forked ones have that of their parent."""
    listed = subprocess.run(["ps", "-axww", "-o", "pid=,command="], capture_output=True, text=True, check=True).stdout
    return [int(line.split()[0]) for line in listed.splitlines() if str(out) in line]


def until(condition: Callable[[], object], seconds: float = GENEROUS) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def started(command: list[str], out: Path) -> subprocess.Popen[str]:
    """The job, with one file done and others being done."""
    job = subprocess.Popen(
        command, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8"
    )
    until(lambda: list(out.glob("part-*")) or job.poll() is not None)
    assert job.poll() is None and len(processes_of(out)) == 3
    return job


@pytest.mark.parametrize("to_all", [False, True], ids=["parent", "group"])
@pytest.mark.parametrize(
    ("number", "status", "word"),
    [(signal.SIGKILL, -9, ""), (signal.SIGTERM, 143, "terminated"), (signal.SIGINT, 130, "interrupted")],
    ids=["kill", "term", "ctrl-c"],
)
def test_a_killed_job_leaves_no_process_and_is_resumed(
    command: Callable[[Path], list[str]],
    undisturbed: dict[str, bytes],
    out: Path,
    number: int,
    status: int,
    word: str,
    to_all: bool,
) -> None:
    job = started(command(out), out)
    (os.killpg if to_all else os.kill)(job.pid, number)
    _, messages = job.communicate(timeout=GENEROUS)
    until(lambda: not processes_of(out), 10)
    assert job.returncode == status
    assert "Traceback" not in messages
    done = contents(out)
    whole = {name: content for name, content in done.items() if not name.startswith(".")}
    assert 0 < len(whole) < N_FILES and all(undisturbed[name] == content for name, content in whole.items())
    if word:
        assert f"error: {word}; no file is left half-written" in messages
        assert f"{len(whole)} of {N_FILES} files done; run the same command again to continue" in messages
        assert done == whole
    resumed = subprocess.run(command(out), capture_output=True, text=True, check=False)
    assert resumed.returncode == 0, resumed.stderr
    assert f"{len(whole)} files of {N_FILES} done before".replace("1 files", "1 file") in resumed.stderr
    assert contents(out) == undisturbed


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=["kill", "term", "ctrl-c"])
def test_a_killed_worker_is_replaced(
    command: Callable[[Path], list[str]], undisturbed: dict[str, bytes], out: Path, number: int
) -> None:
    job = started(command(out), out)
    worker = next(process for process in processes_of(out) if process != job.pid)
    os.kill(worker, number)
    _, messages = job.communicate(timeout=GENEROUS)
    assert job.returncode == 0 and "Traceback" not in messages
    assert contents(out) == undisturbed
    assert not processes_of(out)


def test_a_stopped_worker_does_not_outlive_the_job(command: Callable[[Path], list[str]], out: Path) -> None:
    job = started(command(out), out)
    worker = next(process for process in processes_of(out) if process != job.pid)
    os.kill(worker, signal.SIGSTOP)
    os.kill(job.pid, signal.SIGTERM)
    job.communicate(timeout=GENEROUS)
    assert job.returncode == 143
    until(lambda: not processes_of(out), 10)


def test_a_second_job_is_told_what_is_going_on(command: Callable[[Path], list[str]], out: Path) -> None:
    job = started(command(out), out)
    os.kill(job.pid, signal.SIGSTOP)  # so that it does not end before the second begins
    try:
        second = subprocess.run(command(out), capture_output=True, text=True, check=False)
    finally:
        job.kill()
        job.communicate()
    assert second.returncode == 2
    problem = f"{out}: another run is predicting there (process {job.pid})"
    assert f"error: {problem}; wait for its end, stop it, or choose another folder" in second.stderr


@pytest.mark.parametrize(("number", "status"), [(signal.SIGKILL, -9), (signal.SIGTERM, 143)], ids=["kill", "term"])
def test_a_job_of_ray_that_is_killed_is_resumed(
    command: Callable[[Path], list[str]], undisturbed: dict[str, bytes], out: Path, number: int, status: int
) -> None:
    if find_spec("ray") is None:
        pytest.skip('Ray is not installed: pip install "trelliswork[ray]"')
    job = subprocess.Popen([*command(out), "--engine", "ray"], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    until(lambda: list(out.glob("part-*")) or job.poll() is not None)
    job.send_signal(number)
    _, messages = job.communicate(timeout=GENEROUS)
    assert job.returncode == status and b"Traceback" not in messages
    if number == signal.SIGTERM:
        assert b"error: terminated; no file is left half-written" in messages
        assert not [name for name in contents(out) if name.startswith(".")]
    assert subprocess.run(command(out), capture_output=True, check=False).returncode == 0
    assert contents(out) == undisturbed
