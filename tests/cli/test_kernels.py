"""Compiling is announced when it takes long, and nothing is compiled that a command does not call."""

from __future__ import annotations

import subprocess
import sys

import pytest

from trelliswork.cli import compiling
from trelliswork.cli.messages import show_messages
from trelliswork.runtime.compilation import EXACT, kernel


@kernel(EXACT)
def add_one(x):
    return x + 1


@kernel(EXACT)
def add_two(x):
    return add_one(x) + 1


@pytest.fixture
def announcer(monkeypatch: pytest.MonkeyPatch) -> compiling.Announcer:
    """One that has heard of nothing yet, and has no patience."""
    fresh = compiling.Announcer()
    monkeypatch.setattr(compiling.ANNOUNCER, "quiet", True)
    monkeypatch.setattr(compiling, "ANNOUNCER", fresh)
    monkeypatch.setattr(compiling, "PATIENCE", 0.0)
    compiling.event.register("numba:compile", fresh)
    with show_messages():
        yield fresh
    compiling.event.unregister("numba:compile", fresh)


def compile_again(function: object) -> None:
    """Compile a kernel anew, whatever the cache holds."""
    for each in (add_one, add_two):
        each._cache.flush()
        each._make_finalizer()()
        each.overloads.clear()
    function.compile("(int64,)")


def test_kernels_are_announced_by_the_outermost(
    announcer: compiling.Announcer, capsys: pytest.CaptureFixture[str]
) -> None:
    compiling.announce_compiling()
    compile_again(add_two)
    first, second = capsys.readouterr().err.splitlines()
    assert first == "compiling kernels for this machine, once ..."
    assert second.startswith("test_kernels.add_two compiled in ") and second.endswith(" s")
    assert announcer.seconds > 0.0


def test_little_compiling_and_quiet_commands_say_nothing(
    announcer: compiling.Announcer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    compiling.announce_compiling(quiet=True)
    compile_again(add_two)
    monkeypatch.setattr(compiling, "PATIENCE", 1000.0)
    compiling.announce_compiling()
    compile_again(add_two)
    assert capsys.readouterr().err == ""


LATER = """
import sys
from trelliswork.cli.inputs import announce_compiling
from trelliswork.structures.frontier_kernels import offer
announce_compiling()
print("numba" in sys.modules, end=" ")
offer.dispatcher
print(sys.modules["trelliswork.cli.compiling"].ANNOUNCER.quiet)
"""


def test_compiling_is_announced_once_numba_is_needed() -> None:
    done = subprocess.run([sys.executable, "-c", LATER], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"
