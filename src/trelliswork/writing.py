"""Writing files all or nothing, and the temporary names next to them."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import gzip
import hashlib
import io
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from trelliswork import ctrl_c
from trelliswork.errors import OutputError

File = IO[Any]
PART = ".part"
LONGEST_STEM = 100  # bytes; file systems allow 143 to 255 in a name
_HERE, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE
_STREAMS = {"/dev/stdout": 1, "/dev/stderr": 2}
_DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/(\d+)")


@contextlib.contextmanager
def atomic_write(path: str | Path, mode: str = "w", *, follow: bool = True) -> Iterator[File]:
    """Write a whole file or nothing: the name appears, complete, when the block ends without error.

    The content goes to a temporary name in the same folder, is flushed to disk and renamed. `mode` is "w"
    (UTF-8 text, "\\n" line ends) or "wb". Whatever fails, the temporary file goes and an earlier file stays. A link
    keeps pointing where it points; a device, a pipe or /dev/stdout, which cannot be renamed onto, is written to as it
    is. With `follow=False`, for folders that others write to, a link is an error.

    Args:
        path: The file to write.
        mode: The mode of `open`.
        follow: Whether a link is followed.

    Yields:
        The open file.

    >>> with atomic_write("scores.json") as file:  # doctest: +SKIP
    ...     file.write("{}")
    """
    if mode not in ("w", "wb"):
        raise OutputError(f"mode must be 'w' or 'wb'; got {mode!r}")
    with contextlib.ExitStack() as stack:
        stack.enter_context(_explained(Path(path)))
        if not follow and os.path.islink(path):
            raise OSError(errno.ELOOP, "is a link")
        through = _open_through(path, mode) if follow else None
        target = Path(os.path.realpath(path) if follow else path)
        yield stack.enter_context(_renamed(target, mode) if through is None else through)


@contextlib.contextmanager
def write_packed(path: str | Path, *, binary: bool = False, follow: bool = True) -> Iterator[File]:
    """Write as `atomic_write` does; text is packed by gzip if the name ends with .gz, the same bytes every time.

    Args:
        path: The file to write.
        binary: Whether bytes are written, which are not packed whatever the name.
        follow: Whether a link is followed.

    Yields:
        The open file.
    """
    if binary or Path(path).suffix.lower() != ".gz":
        with atomic_write(path, "wb" if binary else "w", follow=follow) as file:
            yield file
        return
    with (
        atomic_write(path, "wb", follow=follow) as raw,
        gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0) as packed,
        io.TextIOWrapper(packed, encoding="utf-8", newline="\n") as text,
    ):
        yield text


def check_target(path: str | Path) -> None:
    """Raise what `atomic_write` would about a place that cannot be written to; cheap, to be asked before long work."""
    with _explained(Path(path)):
        if os.path.isdir(path):
            raise IsADirectoryError(errno.EISDIR, "is a folder")
        if _descriptor(path) is not None or (os.path.exists(path) and not os.path.isfile(path)):
            return
        folder = os.path.dirname(os.path.realpath(path))
        if not os.path.isdir(folder):
            missing = errno.ENOTDIR if os.path.exists(folder) else errno.ENOENT
            raise OSError(missing, os.strerror(missing))
        if not os.access(folder, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def _open_through(path: str | Path, mode: str) -> File | None:
    """Return an open stream, a device or a pipe; None for a file or what does not exist yet."""
    descriptor = _descriptor(path)
    if descriptor is not None:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()  # what was printed before stays before
        return _open(os.dup(descriptor), mode)
    try:
        os.stat(path)
    except FileNotFoundError:
        return None
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, "is a folder")
    return None if os.path.isfile(path) else _open(path, mode)


def _descriptor(path: str | Path) -> int | None:
    """Return the open stream that a path names: opened by name, a file behind it would be written from its beginning.

    >>> _descriptor("/dev/stdout"), _descriptor("/dev/fd/7"), _descriptor("stdout")
    (1, 7, None)
    """
    name = os.fspath(path)
    if name in _STREAMS and os.path.exists(name):
        return _STREAMS[name]
    match = _DESCRIPTOR.fullmatch(name)
    return int(match[1]) if match else None


@contextlib.contextmanager
def _renamed(target: Path, mode: str) -> Iterator[File]:
    """A temporary file that gets the name of `target` in the end."""
    handle, name = tempfile.mkstemp(prefix=part_prefix(target), suffix=PART, dir=target.parent)
    temporary = Path(name)
    with removed_at_end(temporary):
        with _open(handle, mode) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(_mode_for(target))
        os.replace(temporary, target)


@contextlib.contextmanager
def removed_at_end(path: Path) -> Iterator[None]:
    """Remove a temporary file or folder, if it is still there, however the block ends."""

    def remove() -> None:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        path.unlink(missing_ok=True)

    with ctrl_c.Undone(remove):
        try:
            yield
        finally:
            remove()


def _open(file: int | str | Path, mode: str) -> File:
    return open(file, "wb") if mode == "wb" else open(file, "w", encoding="utf-8", newline="\n")


def exchange(first: Path, second: Path) -> bool:
    """Exchange the names of two files or folders at once; False where the system cannot (renameat2 of Linux)."""
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError, TypeError):
        return False
    return call(_HERE, os.fsencode(first), _HERE, os.fsencode(second), _EXCHANGE) == 0


# Temporary names


def part_prefix(target: Path) -> str:
    """Return the beginning of the temporary names of a file or folder; short, however long its name is.

    >>> part_prefix(Path("models/ner")), len(part_prefix(Path("n" * 250)))
    ('.ner.', 18)
    """
    name = os.fsencode(target.name)
    stem = target.name if len(name) <= LONGEST_STEM else hashlib.blake2b(name, digest_size=8).hexdigest()
    return f".{stem}."


def is_part_of(name: str, target: Path) -> bool:
    """Return whether `tempfile` makes a name for this file or folder, not for another that begins like it.

    >>> is_part_of(".ner.x1y2z3_4.part", Path("ner")), is_part_of(".ner.old.x1y2z3_4.part", Path("ner"))
    (True, False)
    """
    return re.fullmatch(re.escape(part_prefix(target)) + r"[a-z0-9_]{8}" + re.escape(PART), name) is not None


# Errors


@contextlib.contextmanager
def _explained(target: Path) -> Iterator[None]:
    """Errors of writing `target` become an OutputError; a closed pipe and errors about other files pass untouched."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        named = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes | os.PathLike) else target
        real = Path(os.path.realpath(target))
        if named not in (target, real) and not is_part_of(named.name, real):
            raise
        raise OutputError(_why_unwritable(target, error)) from error


def _mode_for(target: Path) -> int:
    """Return the permissions an ordinary new file would get, or those of the file being replaced."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _why_unwritable(target: Path, error: OSError) -> str:
    fixes = {
        errno.ENOSPC: "the disk is full; free some space or choose another disk",
        errno.EDQUOT: "the disk quota is used up; free some space or choose another disk",
        errno.EACCES: "no permission to write there; choose another folder",
        errno.EPERM: "no permission to write there; choose another folder",
        errno.EROFS: "the disk is read-only; choose another folder",
        errno.EISDIR: "expected a file, got a folder; choose another name",
        errno.ENOENT: "the folder does not exist; create it first",
        errno.ENOTDIR: "a part of the path is a file, not a folder; choose another path",
        errno.ELOOP: "expected a file, got a link; remove it or choose another folder",
        errno.ENAMETOOLONG: "the name is too long; choose a shorter one",
    }
    reason = fixes.get(error.errno or 0, error.strerror or str(error))
    return f"{target}: cannot be written: {reason}"
