"""A kernel that one process compiles is waited for by the others, and afterwards by nobody."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numba
import pytest

from trelliswork.runtime import turns
from trelliswork.runtime.compilation import EXACT
from trelliswork.runtime.compiler import dispatcher_of
from trelliswork.runtime.kernel_cache import KernelCache

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no locks on parts of files")
ASK = """
import sys
from trelliswork.runtime import turns
print(turns.take(sys.argv[1]))
"""
TARGET = SimpleNamespace(codegen=lambda: None)
NAME = "kernel-int64"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch) -> turns.SharedCache:
    """Of a kernel that another process may have compiled."""
    monkeypatch.setattr(KernelCache, "_name", lambda cache, signature, codegen: f"kernel-{signature}")
    monkeypatch.setattr(KernelCache, "save_overload", lambda *given: None)
    return turns.SharedCache(lambda x: x, EXACT)


def answers(monkeypatch: pytest.MonkeyPatch, *kept: Any) -> None:
    """What the folder has, each time that it is looked into."""
    left = list(kept)
    monkeypatch.setattr(KernelCache, "load_overload", lambda *given: left.pop(0))


def is_free() -> bool:
    """As another process sees it."""
    answer = subprocess.run([sys.executable, "-c", ASK, NAME], capture_output=True, text=True, check=True)
    return answer.stdout == "True\n"


def test_others_wait_until_it_is_saved(cache: turns.SharedCache, monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, None, None)
    assert cache.load_overload("int64", TARGET) is None
    assert not is_free()
    cache.save_overload("int64", SimpleNamespace(codegen=None))
    assert is_free()


def test_what_another_has_compiled_meanwhile_is_read(cache: turns.SharedCache, monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, "at once")
    assert cache.load_overload("int64", TARGET) == "at once"
    answers(monkeypatch, None, "after waiting")
    assert cache.load_overload("int64", TARGET) == "after waiting"
    assert is_free()


def test_a_process_that_is_stopped_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "PATIENCE", 0.1)
    monkeypatch.setattr(turns, "take", lambda name: False)
    assert not turns.wait(NAME)


def test_nobody_waits_for_a_kernel_that_does_not_compile() -> None:
    assert turns.wait(NAME)
    dispatcher_of(plus_one, EXACT, False)(1)
    assert not is_free()
    with pytest.raises(numba.TypingError):
        dispatcher_of(no_such_thing, EXACT, False)(1)
    assert is_free()


def plus_one(x):
    return x + 1


def no_such_thing(x):
    return x.nothing


def test_without_a_folder_each_process_compiles_for_itself(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(folder / "file"))
    assert not turns.can_share() and not turns.wait(NAME)
