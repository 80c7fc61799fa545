"""One run at a time in a folder: a lock of the operating system on a hidden file in it.

The lock of a killed process goes with it. Its file may stay; it counts for nothing and serves the next run.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from pathlib import Path

from trelliswork import ctrl_c
from trelliswork.errors import OutputError
from trelliswork.training.folder_names import LOCK
from trelliswork.training.strays import clear_strays

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

UNSUPPORTED = {errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK}  # some network file systems have no locks


_HELD: ContextVar[frozenset[Path]] = ContextVar("held", default=frozenset())  # folders that the caller has locked


@contextmanager
def exclusive_unless_held(out: Path) -> Iterator[None]:
    """`exclusive`, but for one who holds the folder already: what trains in a folder also saves there."""
    with nullcontext() if out.resolve() in _HELD.get() else exclusive(out):
        yield


@contextmanager
def exclusive(out: Path | None) -> Iterator[None]:
    """Refuse a second run into `out` while one is going on; the folder is made if there is none.

    What dead runs have left half-written there is removed once the lock is held. A folder that was made here and is
    empty in the end goes again.
    """
    if out is None:
        yield
        return
    made = _make(out)
    path = out / LOCK
    try:
        descriptor = _acquire(path)
    except BaseException:
        _unmake(made)
        raise

    def release() -> None:
        _release(path, descriptor)
        _unmake(made)

    before = _HELD.set(_HELD.get() | {out.resolve()})
    with ctrl_c.Undone(release):
        try:
            clear_strays(out)
            yield
        finally:
            _HELD.reset(before)
            release()


def _make(folder: Path) -> list[Path]:
    """Make a folder and those above it; the new ones, the innermost first."""
    new = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be made: {error.strerror}; choose another folder") from error
    return new


def _unmake(made: Sequence[Path]) -> None:
    with suppress(OSError):  # not empty
        for folder in made:
            folder.rmdir()


def _acquire(path: Path) -> int:
    """An open descriptor of the lock file, locked.

    The process that held the lock before may have removed the file after it was opened here: a lock counts only if its
    file still has the name.
    """
    while True:
        descriptor = _open(path)
        try:
            _lock(path, descriptor)
            if _has_name(descriptor, path):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _open(path: Path) -> int:
    """Without truncating anything, nor following a link: the folder may be one that others write to."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        descriptor = os.open(path, flags | getattr(os, "O_NONBLOCK", 0), 0o666)
    except OSError as error:
        raise _not_a_lock(path, error.strerror) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _not_a_lock(path, "not a regular file")
    return descriptor


def _not_a_lock(path: Path, reason: str | None) -> OutputError:
    return OutputError(
        f"{path}: expected to lock the folder by this file, got {reason}; remove it or choose another folder"
    )


def _lock(path: Path, descriptor: int) -> None:
    try:
        if sys.platform == "win32":
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in UNSUPPORTED:
            return
        problem = "another run is training there"
        raise OutputError(f"{path.parent}: {problem}; wait for its end, stop it, or choose another folder") from None


def _has_name(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False


def _release(path: Path, descriptor: int) -> None:
    """Remove the file while its lock is held; Windows can only remove it afterwards, and not while another has it."""
    if sys.platform != "win32":
        with suppress(OSError):
            path.unlink()
    os.close(descriptor)
    if sys.platform == "win32":
        with suppress(OSError):
            path.unlink()
