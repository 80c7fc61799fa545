"""One process compiles a kernel; those that want it meanwhile wait for its file.

A turn is a lock on one byte of a file in the folder of the cache, so that the turns of a process end with it. Without a
folder or a system that can lock files, each process compiles for itself.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
import zlib
from typing import Any

from trelliswork.runtime.kernel_cache import PACKAGE, Codegen, KernelCache, UntrustedError, folders, require_own_folder

if sys.platform != "win32":
    import fcntl

LOOK = 0.02  # seconds between two looks at the lock of another process
PATIENCE = 300.0  # seconds of waiting for a process that may have been stopped
_LOCK_FILE = "compiling.lock"
_handles: dict[str, int | None] = {}  # open until the end: closing one would end all turns of this process


def can_share() -> bool:
    """Return True if a process can leave what it compiles to another."""
    return _handle() is not None


def take(name: str) -> bool:
    """Begin to compile a kernel, by the name of its file; False if another process is doing so, or none can know."""
    handle = _handle()
    if handle is None:
        return False
    try:
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _byte(name))
    except OSError:
        return False
    return True


def wait(name: str) -> bool:
    """Wait for the turn of this process; False if there is no lock, or another process keeps it for ever."""
    until = time.monotonic() + PATIENCE
    while can_share() and time.monotonic() < until:
        if take(name):
            return True
        time.sleep(LOOK)
    return False


def end(name: str | None = None) -> None:
    """End the turn of one kernel, or of all."""
    handle = _handle()
    if handle is not None:
        with contextlib.suppress(OSError):
            fcntl.lockf(handle, fcntl.LOCK_UN, *((1, _byte(name)) if name else ()))


class SharedCache(KernelCache):
    """A cache in which no two processes compile the same kernel at the same time."""

    def load_overload(self, signature: object, target: Any) -> Any:
        """Return the compiled kernel; after None, it is the turn of this process to compile it."""
        kept = super().load_overload(signature, target)
        name = self._name(signature, target.codegen())
        if kept is None and wait(name):
            kept = super().load_overload(signature, target)  # another process may have been at it
            if kept is not None:
                end(name)
        return kept

    def save_overload(self, signature: object, compiled: Any) -> None:
        super().save_overload(signature, compiled)
        end(self._name(signature, compiled.codegen))

    def take(self, signature: object, codegen: Codegen) -> bool:
        """Begin to compile for these types, unless another process is doing so."""
        return take(self._name(signature, codegen))


def _byte(name: str) -> int:
    return zlib.crc32(name.encode())


def _handle() -> int | None:
    """Return the open lock file; None if there is no folder for it."""
    place = "" if sys.platform == "win32" else os.environ.get("NUMBA_CACHE_DIR", "")
    if place not in _handles:
        _handles[place] = _open_lock()
    return _handles[place]


def _open_lock() -> int | None:
    if sys.platform == "win32":
        return None
    for folder in folders(PACKAGE / _LOCK_FILE):
        with contextlib.suppress(OSError, UntrustedError):
            require_own_folder(folder)
            return os.open(folder / _LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    return None
