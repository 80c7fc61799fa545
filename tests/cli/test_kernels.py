"""Compiling is announced when it takes long, and nothing is compiled that a command does not call."""

from __future__ import annotations

import pytest

from trelliswork.cli import kernels
from trelliswork.cli.messages import messages_shown
from trelliswork.runtime.compilation import EXACT, kernel


@kernel(EXACT)
def add_one(x):
    return x + 1


@kernel(EXACT)
def add_two(x):
    return add_one(x) + 1


@pytest.fixture
def announcer(monkeypatch: pytest.MonkeyPatch) -> kernels.Announcer:
    """One that has heard of nothing yet, and has no patience."""
    fresh = kernels.Announcer()
    monkeypatch.setattr(kernels.ANNOUNCER, "quiet", True)
    monkeypatch.setattr(kernels, "ANNOUNCER", fresh)
    monkeypatch.setattr(kernels, "PATIENCE", 0.0)
    kernels.event.register("numba:compile", fresh)
    with messages_shown():
        yield fresh
    kernels.event.unregister("numba:compile", fresh)


def compile_again(function: object) -> None:
    """Compile a kernel anew, whatever the cache holds."""
    for each in (add_one, add_two):
        each._cache.flush()
        each._make_finalizer()()
        each.overloads.clear()
    function.compile("(int64,)")


def test_kernels_are_announced_by_the_outermost(
    announcer: kernels.Announcer, capsys: pytest.CaptureFixture[str]
) -> None:
    kernels.announce_compiling()
    compile_again(add_two)
    first, second = capsys.readouterr().err.splitlines()
    assert first == "compiling kernels for this machine, once ..."
    assert second.startswith("test_kernels.add_two compiled in ") and second.endswith(" s")
    assert announcer.seconds > 0.0


def test_little_compiling_and_quiet_commands_say_nothing(
    announcer: kernels.Announcer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels.announce_compiling(quiet=True)
    compile_again(add_two)
    monkeypatch.setattr(kernels, "PATIENCE", 1000.0)
    kernels.announce_compiling()
    compile_again(add_two)
    assert capsys.readouterr().err == ""
