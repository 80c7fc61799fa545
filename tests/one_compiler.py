"""The processes of a test run compile each kernel once: while one of them does, the others that want it wait for it."""

from __future__ import annotations

import contextlib
import fcntl
import zlib
from pathlib import Path
from typing import Any

from numba.core import event

from trelliswork.runtime.kernel_cache import KernelCache


class OneCompiler(event.Listener):
    """A lock for each kernel and signature, as a byte of one file: the lock of a process that ends goes with it."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("ab")
        self.load, self.save = KernelCache.load_overload, KernelCache.save_overload

    def load_or_wait(self, cache: KernelCache, signature: Any, target: Any) -> Any:
        """In place of `KernelCache.load_overload`; after None, this process is the one that compiles."""
        found = self.load(cache, signature, target)
        if found is None:
            place = _place(cache, signature, target.codegen())
            with contextlib.suppress(OSError):  # where files cannot be locked, each process compiles for itself
                fcntl.lockf(self.file, fcntl.LOCK_EX, 1, place)
            found = self.load(cache, signature, target)
            if found is not None:
                self._unlock(1, place)
        return found

    def save_for_all(self, cache: KernelCache, signature: Any, compiled: Any) -> None:
        """In place of `KernelCache.save_overload`."""
        self.save(cache, signature, compiled)
        self._unlock(1, _place(cache, signature, compiled.codegen))

    def on_start(self, event: Any) -> None:
        """Nothing to do."""

    def on_end(self, event: Any) -> None:
        """A kernel that does not compile is not saved, and neither are those that call it."""
        if event._exc_details is not None:  # `is_failed` of numba 0.68 says the opposite
            self._unlock()

    def _unlock(self, *bytes_from: int) -> None:
        with contextlib.suppress(OSError):
            fcntl.lockf(self.file, fcntl.LOCK_UN, *bytes_from)


def _place(cache: KernelCache, signature: Any, codegen: Any) -> int:
    return zlib.crc32(cache._name(signature, codegen).encode())


def compile_once(path: Path) -> None:
    """From now on, of the processes that were given the same path, one compiles each kernel."""
    one = OneCompiler(path)
    event.register("numba:compile", one)
    KernelCache.load_overload = lambda *given: one.load_or_wait(*given)  # type: ignore[method-assign]
    KernelCache.save_overload = lambda *given: one.save_for_all(*given)  # type: ignore[method-assign]
