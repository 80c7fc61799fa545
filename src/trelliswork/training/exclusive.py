"""One run at a time in a folder: a lock of the operating system on a hidden file in it.

The lock of a killed process goes with it: the processes that it has forked do not inherit the lock. Its file may stay;
it counts for nothing and serves the next run. It says what is going on, for those who are refused.
"""

from __future__ import annotations

import errno
import os
import platform
import re
import shutil
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from pathlib import Path

from trelliswork import ctrl_c
from trelliswork.errors import OutputError
from trelliswork.writing import PART, is_part_of

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

UNSUPPORTED = {errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK}  # some network file systems have no locks


_NOTE = re.compile(r"(\w+) (\d+) (\S*)\n")  # in the lock file: what is done, by which process, on which machine
_descriptors: set[int] = set()  # of the locks that this process holds
_HELD: ContextVar[frozenset[Path]] = ContextVar("held", default=frozenset())  # folders that the caller has locked


@contextmanager
def exclusive_unless_held(out: Path, doing: str) -> Iterator[None]:
    """`exclusive`, but for one who holds the folder already: what trains in a folder also saves there."""
    with nullcontext() if out.resolve() in _HELD.get() else exclusive(out, doing):
        yield


@contextmanager
def exclusive(out: Path | None, doing: str = "training") -> Iterator[None]:
    """Refuse a second run into `out` while one is going on; the folder is made if there is none.

    `doing` is a word for others who want the folder: they read that another run is training there.

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
        _describe(descriptor, doing)
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
    """Return an open descriptor of the lock file, locked.

    The process that held the lock before may have removed the file after it was opened here: a lock counts only if its
    file still has the name.
    """
    while True:
        descriptor = _open(path)
        try:
            _lock(path, descriptor)
            if _has_name(descriptor, path):
                _descriptors.add(descriptor)
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _open(path: Path) -> int:
    """Open a file without truncating it, nor following a link: the folder may be one that others write to."""
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
        problem = _others(descriptor)
        raise OutputError(f"{path.parent}: {problem}; wait for its end, stop it, or choose another folder") from None


def _has_name(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False


def _describe(descriptor: int, doing: str) -> None:
    """Write what is going on into the lock file, unless it is a link to another file."""
    with suppress(OSError):
        if os.fstat(descriptor).st_nlink == 1 and (not (text := _read(descriptor)) or _NOTE.fullmatch(text)):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{doing} {os.getpid()} {platform.node()}\n".encode(), 0)


def _read(descriptor: int) -> str:
    return os.pread(descriptor, 1000, 0).decode(errors="replace")


def _others(descriptor: int) -> str:
    """Return what the holder of a lock does, as far as its file says."""
    note = None
    with suppress(OSError):
        note = _NOTE.fullmatch(_read(descriptor))
    if note is None:
        return "another run is using it"
    doing, process, machine = note.groups()
    place = "" if machine == platform.node() else f" on {machine}"
    return f"another run is {doing} there (process {process}{place})"


def _forget_locks() -> None:
    """Close the locks of the parent in a process that it has forked; the parent keeps them."""
    while _descriptors:
        os.close(_descriptors.pop())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_locks)


def _release(path: Path, descriptor: int) -> None:
    """Remove the file while its lock is held; Windows can only remove it afterwards, and not while another has it."""
    if descriptor not in _descriptors:  # in a forked process
        return
    _descriptors.remove(descriptor)
    if sys.platform != "win32":
        with suppress(OSError):
            path.unlink()
    os.close(descriptor)
    if sys.platform == "win32":
        with suppress(OSError):
            path.unlink()


# What a killed run leaves half-written in its folder, by the names that only this library gives.


def clear_strays(out: Path) -> None:
    """Remove half-written files of dead runs; only for the one who holds the lock of the folder."""
    clear_partial(out)
    CheckpointFolder(out).clear_partial()
    for path in out.iterdir():
        if is_stray(path.name):
            with suppress(OSError):
                shutil.rmtree(path) if path.is_dir() else path.unlink()


# What a run leaves in the folder of its model, by the names that only this library gives.

LOCK = ".trelliswork.lock"  # of the run that trains there
SETTINGS = "config.toml"
CHECKPOINT = "checkpoint"
STATE = "state.safetensors"  # in the checkpoint
HISTORY = "history.jsonl"
TOKENISER = "tokeniser"  # the folder of the tokeniser that a model reads raw text with
COLUMNS = "columns"  # the folder of the taggers for columns that new text may lack
LEMMAS = "lemmas"  # the folder of the lemmatiser that fills the column LEMMA
PARTS = "parts"  # the folders of the models that a mixture is made of
KEPT = (TOKENISER, COLUMNS, LEMMAS, PARTS)
# What a run leaves in a folder before there is a model.
OF_TRAINING = {CHECKPOINT, HISTORY, SETTINGS, LOCK, *KEPT}


def is_stray(name: str) -> bool:
    """Return whether a name in a model folder is temporary: settings or a tokeniser that a kill has left."""
    return is_part_of(name, Path(SETTINGS)) or is_part_of(name, Path(TOKENISER))


def clear_partial(directory: str | Path) -> None:
    """Remove what a process that was killed while it wrote this folder has left next to it."""
    target = Path(directory)
    for path in target.parent.iterdir():
        if is_part_of(path.name, target):
            shutil.rmtree(path, ignore_errors=True)


class CheckpointFolder:
    """The folder of a checkpoint within an output folder."""

    def __init__(self, out: str | Path) -> None:
        self.out = Path(out)
        self.folder = self.out / CHECKPOINT

    @property
    def exists(self) -> bool:
        """True if there is a state to go on from."""
        return (self.folder / STATE).is_file()

    def clear(self) -> None:
        """Remove the checkpoint; the state goes first, so that no half of one is left to go on from."""
        (self.folder / STATE).unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def clear_partial(self) -> None:
        """Remove what a killed run has left half-written; without a state, the whole folder is that."""
        if self.folder.is_dir() and not self.exists:
            self.clear()
        for path in self.folder.glob(f".*.safetensors{PART}"):
            path.unlink(missing_ok=True)
