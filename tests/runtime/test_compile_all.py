"""Kernels compiled by several processes, each once, and by this one where others could not leave theirs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.runtime.test_parents import require_end
from trelliswork.runtime import compile_all as module
from trelliswork.runtime.compile_all import Helpers, compile_all
from trelliswork.runtime.entries import Entry

SMALL = [
    Entry("trelliswork.runtime.kernel_math", "highest", f'["{kind}/1", "int64"]')
    for kind in ("float64", "float32", "readonly float64")
]
ASK = """
import os, sys, time
from tests.runtime.test_compile_all import SMALL
from trelliswork.runtime.compile_all import Helpers
with Helpers(SMALL * 1000, 2) as helpers:
    print(*(process.pid for process in helpers.processes), flush=True)
    time.sleep(1000)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    return tmp_path


def test_each_kernel_is_compiled_once_by_some_process(folder: Path) -> None:
    noted: list[tuple[int, int]] = []
    files = compile_all([*SMALL, *SMALL], 2, note=lambda *numbers: noted.append(numbers))
    assert noted == [(1, 3), (2, 3), (3, 3)]
    assert list(files) and set(files) == set(SMALL)
    kept = {file: file.stat().st_mtime_ns for file in folder.rglob("*.kernel")}
    assert {file for file in files.values() if file} <= kept.keys()
    assert [entry.state for entry in SMALL] == ["cached"] * 3
    assert compile_all(SMALL, 2) == files
    assert {file: file.stat().st_mtime_ns for file in folder.rglob("*.kernel")} == kept, "nothing is compiled again"


def test_where_nothing_can_be_kept_no_process_is_started(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(folder / "file"))
    with Helpers(SMALL, 2) as helpers:
        assert helpers.processes == []
    compiled: list[Entry] = []
    monkeypatch.setattr(module, "compile_here", lambda entry: compiled.append(entry))
    assert compile_all(SMALL, 2) == dict.fromkeys(SMALL) and compiled == SMALL
    with pytest.raises(RuntimeError, match="3 kernels need other settings"):
        compile_all(SMALL, 2, settings={"NUMBA_OPT": "1"})


def test_a_program_that_is_no_interpreter_is_not_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with Helpers(SMALL, 2) as helpers:
        assert helpers.processes == []


def test_a_process_that_is_killed_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PROGRAM", "import os, signal; os.kill(os.getpid(), 9)")
    with pytest.raises(RuntimeError, match="has ended with status"):
        compile_all(SMALL, 2)


@pytest.mark.skipif(os.name != "posix", reason="POSIX signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_processes_end_with_the_one_that_started_them(number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", ASK], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None and parent.stderr is not None
        processes = list(map(int, parent.stdout.readline().split()))
        assert len(processes) == 2
        time.sleep(0.1)
        parent.send_signal(number)
        said = parent.stderr.read()
    require_end(processes)
    assert said.count("KeyboardInterrupt") == (number == signal.SIGINT), "the parent's alone"
