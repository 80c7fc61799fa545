"""Work in a process of its own that is killed: at a moment, or before its n-th change to the file system.

The process is forked, so that it need not import everything again; the kill is a real one.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

Work = Callable[[], Any]
STEPS = ("replace", "rename", "unlink", "remove", "rmdir", "link", "mkdir", "fsync", "ftruncate")
CRASHED = 70  # the status of work that raised
BLOCK = 4096  # what a file of one byte takes on a tmpfs


def forked(work: Work, said: Path, prepare: Work = lambda: None) -> int:
    """Begin work in another process; what it prints goes to a file. Returns its id."""
    pid = os.fork()
    if pid:
        return pid
    status = CRASHED
    with suppress(BaseException):
        os.setsid()
        out = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
        try:
            prepare()
            found = work()
            status = found if isinstance(found, int) else 0
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)


def ended(pid: int, seconds: float = 300.0) -> int:
    """The status of a process when it is over: negative for a signal."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    raise AssertionError(f"not done after {seconds} s")


def killed_after(work: Work, seconds: float, said: Path, with_signal: int = signal.SIGKILL) -> int:
    """Kill the work and whatever it started after some time, if it is not done by then."""
    pid = forked(work, said)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.0005)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, with_signal) if os.getpgid(pid) == pid else os.kill(pid, with_signal)
    return ended(pid)


def killed_before_step(work: Work, n: int, said: Path) -> int:
    """Kill the work right before its n-th change to the file system, from 0; it ends by itself if there are fewer."""

    def prepare() -> None:
        count = [0]
        for name in STEPS:
            setattr(os, name, _counting(getattr(os, name), count, n))

    return ended(forked(work, said, prepare))


def _counting(step: Callable[..., Any], count: list[int], n: int) -> Callable[..., Any]:
    def counted(*arguments: Any, **options: Any) -> Any:
        if count[0] == n:
            os.kill(os.getpid(), signal.SIGKILL)
        count[0] += 1
        return step(*arguments, **options)

    return counted


def n_steps(work: Work, said: Path) -> int:
    """How many changes to the file system the work makes."""
    counted = said.with_suffix(".steps")

    def prepare() -> None:
        count = [0]
        for name in STEPS:
            setattr(os, name, _counting(getattr(os, name), count, -1))
        prepare.count = count  # type: ignore[attr-defined]

    def work_and_tell() -> Any:
        status = work()
        counted.write_text(str(prepare.count[0]))  # type: ignore[attr-defined]
        return status

    assert ended(forked(work_and_tell, said, prepare)) == 0, said.read_text()
    return int(counted.read_text())


def with_small_files(work: Work, most: int) -> int:
    """The work where no file may grow beyond so many bytes, as on a disk that is full; what it says is not kept."""

    def prepare() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # an error instead of a signal, as ENOSPC is
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    return ended(forked(work, Path(os.devnull), prepare))


def as_nobody(work: Work, said: Path) -> int:
    """The work as a user who owns nothing; only for root."""

    def prepare() -> None:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)

    return ended(forked(work, said, prepare))


@contextmanager
def small_disk(place: Path, of: Path, room: int) -> Iterator[Callable[[], None] | None]:
    """A file system of its own (tmpfs) at `place` with a copy of a folder and room for so many bytes more.

    Gives what makes more room, or None where nothing may be mounted.
    """
    blocks = sum(-(-each.stat().st_size // BLOCK) + 2 for each in of.rglob("*")) + 2
    size = f"size={BLOCK * (blocks + -(-room // BLOCK))}"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(place)], capture_output=True).returncode:
        yield None
        return
    try:
        shutil.copytree(of, place, dirs_exist_ok=True)
        yield partial(_run, "mount", "-o", "remount,size=100m", place)
    finally:
        _run("umount", "--lazy", place)


def _run(*command: object) -> None:
    subprocess.run(list(map(str, command)), check=True)
