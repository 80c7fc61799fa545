"""Processes that end when their parent is killed, by the word of Linux and by looking."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
# Starts a process that would compute for ever, says its number, and waits to be killed.
PARENT = """
import multiprocessing, os, sys, time
from trelliswork.runtime import parents
def child(parent):
    if sys.argv[1] == "looking":
        parents.sys = type("Sys", (), {"platform": "darwin"})
    parents.end_with_parent(parent)
    print(os.getpid(), flush=True)
    while True:
        sum(range(1000))
multiprocessing.get_context("fork").Process(target=child, args=(os.getpid(),), daemon=True).start()
time.sleep(1000)
"""


# What torchrun starts: processes of one run that say their numbers.
TOGETHER = """
import os, time
from trelliswork.training.processes import join
join()
os.write(1, b"%d\\n" % os.getpid())  # as a whole: the other process writes to the same pipe
time.sleep(1000)
"""


def is_running(process: int) -> bool:
    listed = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False)
    return listed.stdout.strip()[:1] not in ("", "Z")


@pytest.mark.parametrize("way", ["at once", "looking"])
def test_it_ends_with_its_parent(way: str) -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT, way], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert is_running(child)
        parent.kill()
    require_end([child])


def test_processes_of_one_run_end_with_torchrun(tmp_path: Path) -> None:
    (tmp_path / "together.py").write_text(TOGETHER, encoding="utf-8")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    with subprocess.Popen([*command, str(tmp_path / "together.py")], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        try:
            children = [int(parent.stdout.readline()) for _ in range(2)]
            assert all(map(is_running, children))
        finally:  # leaving the block waits for its end
            parent.kill()
        parent.stdout.close()
    require_end(children)


def require_end(children: list[int]) -> None:
    until = time.monotonic() + 60
    try:
        while any(map(is_running, children)):
            assert time.monotonic() < until
            time.sleep(0.05)
    except AssertionError:
        for child in filter(is_running, children):
            os.kill(child, signal.SIGKILL)
        raise
