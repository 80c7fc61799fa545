"""What the tests rest on: a kernel that one process compiles is waited for by the others, and afterwards by nobody."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numba
import pytest
from numba.core import event

from tests.one_compiler import OneCompiler

ASK = """
import fcntl, sys
try:
    fcntl.lockf(open(sys.argv[1], "ab"), fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    print("another process compiles")
"""
TARGET = SimpleNamespace(codegen=lambda: None)


class Cache:
    """Of a kernel that another process may have compiled."""

    def __init__(self, *found: Any) -> None:
        self.found = list(found)

    def _name(self, signature: Any, codegen: Any) -> str:
        return f"kernel-{signature}"

    def load_overload(self, signature: Any, target: Any) -> Any:
        return self.found.pop(0)

    def save_overload(self, signature: Any, compiled: Any) -> None:
        self.found.append(compiled)


@pytest.fixture
def one(tmp_path: Path) -> OneCompiler:
    found = OneCompiler(tmp_path / "lock")
    found.load, found.save = Cache.load_overload, Cache.save_overload
    return found


def is_free(one: OneCompiler) -> bool:
    """As another process sees it."""
    answer = subprocess.run([sys.executable, "-c", ASK, one.file.name], capture_output=True, text=True, check=True)
    return answer.stdout == ""


def test_others_wait_until_it_is_saved(one: OneCompiler) -> None:
    cache = Cache(None, None)
    assert one.load_or_wait(cache, "int64", TARGET) is None
    assert not is_free(one)
    one.save_for_all(cache, "int64", SimpleNamespace(codegen=None))
    assert is_free(one)
    assert len(cache.found) == 1


def test_what_another_has_compiled_meanwhile_is_read(one: OneCompiler) -> None:
    assert one.load_or_wait(Cache("at once"), "int64", TARGET) == "at once"
    assert one.load_or_wait(Cache(None, "after waiting"), "int64", TARGET) == "after waiting"
    assert is_free(one)


def test_nobody_waits_for_a_kernel_that_does_not_compile(one: OneCompiler) -> None:
    one.load_or_wait(Cache(None, None), "int64", TARGET)
    with event.install_listener("numba:compile", one):
        numba.njit(lambda x: x + 1)(1)
        assert not is_free(one)
        with pytest.raises(numba.TypingError):
            numba.njit(lambda x: x.nothing)(1)
    assert is_free(one)
