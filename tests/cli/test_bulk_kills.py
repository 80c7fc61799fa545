"""Bulk annotation by real processes that are killed: none is left, the folder is free, and the job can be resumed.

The feature function of the model waits while there is a file: so one file is done and two are begun when a job is
killed, however fast or busy the machine is.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.conftest import Answer, Cli
from tests.cli.test_bulk import contents
from trelliswork.cli.main import run

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
GENEROUS = 60.0  # seconds, on a busy machine
N_FILES = 6
FUNCTION = """
import os, time
def attributes(sentence):
    while sentence.words[0] == "Wait" and os.path.exists({gate!r}):
        time.sleep(0.01)
    return [{{"word": word}} for word in sentence.words]
"""


class Kills(NamedTuple):
    """A command that annotates files in two processes, and what it waits for."""

    folder: Path
    gate: Path

    def into(self, out: Path) -> list[str]:
        job = [sys.executable, "-m", "trelliswork", "predict", "ner", f"{self.folder}/in/*", "--confidence"]
        return [*job, "--features", "own:attributes", "--out", f"{out}/", "--workers", "2"]

    def run(self, cli: Cli, out: Path) -> Answer:
        """Run the whole job, from the process of the test."""
        with contextlib.chdir(self.folder), pytest.MonkeyPatch.context() as patch:
            patch.delitem(sys.modules, "own", raising=False)
            answer = cli(*self.into(out)[3:])
            sys.modules.pop("own", None)
        return answer

    def started(self, out: Path) -> subprocess.Popen[str]:
        """Start the job; when one file is done and two are begun, return."""
        self.gate.touch()
        job = subprocess.Popen(
            self.into(out), cwd=self.folder, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8",
        )  # fmt: skip
        until(lambda: (list(out.glob("part-*")) and len(list(out.glob(".part-*"))) == 2) or job.poll() is not None)
        assert job.poll() is None and len(processes_of(out)) == 3
        return job


@pytest.fixture(scope="module")
def kills(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Kills:
    """A model and six files, all but the first of which have to wait."""
    folder = tmp_path_factory.mktemp("kills")
    given = Kills(folder, folder / "gate")
    (folder / "own.py").write_text(FUNCTION.format(gate=str(given.gate)), encoding="utf-8")
    learn = ["train", str(data / "train.conll"), "--model", "crf", "--features", "own:attributes", "--out", "ner"]
    with contextlib.chdir(folder), pytest.MonkeyPatch.context() as patch:
        patch.delitem(sys.modules, "own", raising=False)
        assert run([*learn, "--quiet", "--max-iterations", "5"]) == 0
        del sys.modules["own"]
    (folder / "in").mkdir()
    text = (data / "test.conll").read_text(encoding="utf-8")
    for i in range(N_FILES):
        waiting = "Wait\tVB\tO\tO\n\n" if i else ""
        (folder / "in" / f"part-{i}.conll").write_text(f"{text}{waiting}{text}", encoding="utf-8")
    return given


@pytest.fixture(scope="module")
def undisturbed(kills: Kills, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    out = tmp_path_factory.mktemp("undisturbed")
    subprocess.run(kills.into(out), cwd=kills.folder, capture_output=True, check=True)
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


@pytest.mark.parametrize(
    ("number", "status", "word", "to_all"),
    [
        pytest.param(signal.SIGKILL, -9, "", False, id="kill-parent"),
        pytest.param(signal.SIGKILL, -9, "", True, id="kill-group", marks=pytest.mark.thorough),
        pytest.param(signal.SIGTERM, 143, "terminated", False, id="term-parent"),
        pytest.param(signal.SIGTERM, 143, "terminated", True, id="term-group", marks=pytest.mark.thorough),
        pytest.param(signal.SIGINT, 130, "interrupted", False, id="ctrl-c-parent", marks=pytest.mark.thorough),
        pytest.param(signal.SIGINT, 130, "interrupted", True, id="ctrl-c-group"),
    ],
)
def test_a_killed_job_leaves_no_process_and_is_resumed(
    cli: Cli, kills: Kills, undisturbed: dict[str, bytes], out: Path, number: int, status: int, word: str, to_all: bool
) -> None:
    job = kills.started(out)
    (os.killpg if to_all else os.kill)(job.pid, number)
    _, messages = job.communicate(timeout=GENEROUS)
    until(lambda: not processes_of(out), 10)
    assert job.returncode == status
    assert "Traceback" not in messages
    done = contents(out)
    whole = {name: content for name, content in done.items() if not name.startswith(".")}
    assert len(whole) == 1 and all(undisturbed[name] == content for name, content in whole.items())
    if word:
        assert f"error: {word}; no file is left half-written" in messages
        assert f"1 of {N_FILES} files done; run the same command again to continue" in messages
        assert done == whole
    kills.gate.unlink()
    resumed = kills.run(cli, out)
    assert resumed.status == 0, resumed.err
    assert f"1 file of {N_FILES} done before" in resumed.err
    assert contents(out) == undisturbed


@pytest.mark.parametrize(
    "number",
    [signal.SIGKILL, *(pytest.param(each, marks=pytest.mark.thorough) for each in (signal.SIGTERM, signal.SIGINT))],
)
def test_a_killed_worker_is_replaced(kills: Kills, undisturbed: dict[str, bytes], out: Path, number: int) -> None:
    job = kills.started(out)
    worker = next(process for process in processes_of(out) if process != job.pid)
    os.kill(worker, number)
    kills.gate.unlink()
    _, messages = job.communicate(timeout=GENEROUS)
    assert job.returncode == 0 and "Traceback" not in messages
    assert contents(out) == undisturbed
    assert not processes_of(out)


def test_a_stopped_worker_does_not_outlive_the_job(kills: Kills, out: Path) -> None:
    job = kills.started(out)
    worker = next(process for process in processes_of(out) if process != job.pid)
    os.kill(worker, signal.SIGSTOP)
    os.kill(job.pid, signal.SIGTERM)
    job.communicate(timeout=GENEROUS)
    assert job.returncode == 143
    until(lambda: not processes_of(out), 10)


def test_a_second_job_is_told_what_is_going_on(cli: Cli, kills: Kills, out: Path) -> None:
    job = kills.started(out)
    second = kills.run(cli, out)
    job.kill()
    job.communicate()
    assert second.status == 2
    problem = f"{out}: another run is predicting there (process {job.pid})"
    assert f"error: {problem}; wait for its end, stop it, or choose another folder" in second.err


@pytest.mark.parametrize(("number", "status"), [(signal.SIGKILL, -9), (signal.SIGTERM, 143)], ids=["kill", "term"])
def test_a_job_of_ray_that_is_killed_is_resumed(
    cli: Cli, kills: Kills, undisturbed: dict[str, bytes], out: Path, number: int, status: int
) -> None:
    if find_spec("ray") is None:
        pytest.skip('Ray is not installed: pip install "trelliswork[ray]"')
    kills.gate.touch()
    job = subprocess.Popen(
        [*kills.into(out), "--engine", "ray"], cwd=kills.folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    until(lambda: list(out.glob("part-*")) or job.poll() is not None)
    job.send_signal(number)
    _, messages = job.communicate(timeout=GENEROUS)
    assert job.returncode == status and b"Traceback" not in messages
    if number == signal.SIGTERM:
        assert b"error: terminated; no file is left half-written" in messages
        assert not [name for name in contents(out) if name.startswith(".")]
    kills.gate.unlink()
    assert kills.run(cli, out).status == 0
    assert contents(out) == undisturbed
