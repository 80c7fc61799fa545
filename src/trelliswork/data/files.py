"""Opening files to read (plain, gzip, standard input) and writing them all or nothing."""

from __future__ import annotations

import contextlib
import errno
import gzip
import io
import os
import sys
import tempfile
import zlib
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from trelliswork.errors import DataError, OutputError

READ_AT_A_TIME = 1 << 17  # bytes
LONGEST_LINE = 10_000_000  # bytes
GZIP_MAGIC = b"\x1f\x8b"


def name_of(path: str | Path) -> str:
    """How a path is called in messages: "-" reads as standard input."""
    return "<stdin>" if str(path) == "-" else str(path)


@contextlib.contextmanager
def open_bytes(path: str | Path) -> Iterator[BinaryIO]:
    """A file open for reading bytes; what gzip packed is unpacked, whatever its name, and "-" is standard input."""
    if str(path) == "-":
        yield sys.stdin.buffer
        return
    path = Path(path)
    if path.is_dir():
        raise DataError(path, "expected a file, got a folder; name one of the files in it")
    try:
        file = open(path, "rb")  # noqa: SIM115
    except OSError as error:
        raise DataError(path, _why_unreadable(error)) from error
    with file:
        packed = path.suffix == ".gz" or file.peek(2)[:2] == GZIP_MAGIC
        yield cast(BinaryIO, gzip.GzipFile(fileobj=file)) if packed else file


def _why_unreadable(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file; check the path"
    if isinstance(error, PermissionError):
        return "no permission to read the file"
    return f"cannot be read: {error.strerror or error}"


def numbered_lines(path: str | Path) -> Generator[tuple[int, str], None, None]:
    """The lines of a UTF-8 text file without their line ends, numbered from 1; read as they are asked for.

    A byte order mark and Windows line ends are dropped. Bytes that are not text are an error with their line, and so is
    a line that memory might not hold: no more than `LONGEST_LINE` bytes of it are read.
    """
    name = name_of(path)
    number = 0
    try:
        with open_bytes(path) as file:
            for group in _groups(file, one_by_one=str(path) == "-"):
                _require_lines(group, name, number + 1)
                for line in _decoded(group, name, number + 1):
                    number += 1
                    yield number, line
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(name, "not a whole gzip file; copy or compress it again", line=number + 1) from error
    except OSError as error:
        raise DataError(name, _why_unreadable(error), line=number + 1) from error


def _groups(file: BinaryIO, *, one_by_one: bool) -> Iterator[bytes]:
    """Whole lines, many at a time, or each as soon as it is there; of one that is too long no more than shows it."""
    if one_by_one:
        while raw := file.readline(LONGEST_LINE + 1):
            yield raw
        return
    while text := file.read(READ_AT_A_TIME):
        yield text if text.endswith(b"\n") else text + file.readline(LONGEST_LINE + 1)


def _require_lines(group: bytes, name: str, first: int) -> None:
    """Refuse a line that is too long."""
    if len(group) <= LONGEST_LINE:
        return
    for number, raw in enumerate(group.split(b"\n"), first):
        if len(raw) > LONGEST_LINE:
            raise DataError(
                name, f"expected lines of at most {LONGEST_LINE:,} bytes, got a longer one; break it up", line=number
            )


def _decoded(group: bytes, name: str, first: int) -> Iterator[str]:
    """The lines of a group, which begins with line `first`: all at once, or one by one if something is unusual."""
    if b"\0" not in group and b"\r" not in group:
        with contextlib.suppress(UnicodeDecodeError):
            decoded = group.decode("utf-8")
            lines = (decoded.removeprefix("\ufeff") if first == 1 else decoded).split("\n")
            return iter(lines[:-1] if group.endswith(b"\n") else lines)
    return (_decode(raw, name, number) for number, raw in enumerate(io.BytesIO(group), first))


def _decode(raw: bytes, name: str, number: int) -> str:
    if b"\0" in raw:
        raise DataError(name, "expected UTF-8 text, got a binary (or UTF-16) file: it holds a NUL", line=number)
    try:
        line = raw.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        found = f"expected UTF-8 text, got the byte 0x{raw[error.start]:02x}; convert the file to UTF-8"
        raise DataError(name, found, line=number, column=error.start + 1) from error
    return line.removeprefix("\ufeff") if number == 1 else line


@contextlib.contextmanager
def open_text(path: str | Path) -> Iterator[Iterator[str]]:
    """The lines of a text file (see `numbered_lines`) in a `with` block.

    >>> with open_text("train.conll.gz") as lines:  # doctest: +SKIP
    ...     first = next(lines)
    """
    lines = numbered_lines(path)
    with contextlib.closing(lines):
        yield (line for _, line in lines)


@contextlib.contextmanager
def atomic_write(path: str | Path, mode: str = "w") -> Iterator[IO[Any]]:
    """Write a whole file or nothing: the name appears, complete, when the block ends without error.

    The content goes to a temporary name in the same folder, is flushed to disk and renamed. `mode` is "w"
    (UTF-8 text, "\\n" line ends) or "wb". Whatever fails, the temporary file goes and an earlier file stays. A link
    keeps pointing where it points; a device or pipe, which cannot be renamed onto, is written to as it is.

    >>> with atomic_write("scores.json") as file:  # doctest: +SKIP
    ...     file.write("{}")
    """
    if mode not in ("w", "wb"):
        raise OutputError(f"mode must be 'w' or 'wb'; got {mode!r}")
    target = Path(os.path.realpath(path)) if os.path.islink(path) else Path(path)
    if target.exists() and not target.is_file() and not target.is_dir():
        with _explained(target), _open_to_write(target, mode) as file:
            yield file
        return
    with _explained(target):
        temporary = _temporary_for(target)
    try:
        with _explained(target), _open_to_write(temporary, mode) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        with _explained(target):
            temporary.chmod(_mode_for(target))
            os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _temporary_for(target: Path) -> Path:
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a folder")
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    os.close(handle)
    return Path(name)


def _open_to_write(path: Path, mode: str) -> IO[Any]:
    return open(path, "wb") if mode == "wb" else open(path, "w", encoding="utf-8", newline="\n")


@contextlib.contextmanager
def _explained(target: Path) -> Iterator[None]:
    """Errors of writing `target` become an OutputError; those about some other file pass untouched."""
    try:
        yield
    except OSError as error:
        named = Path(error.filename or target)
        if named != target and not named.name.startswith(f".{target.name}."):
            raise
        raise OutputError(_why_unwritable(target, error)) from error


def _mode_for(target: Path) -> int:
    """The permissions an ordinary new file would get, or those of the file being replaced."""
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
    }
    reason = fixes.get(error.errno or 0, error.strerror or str(error))
    return f"{target}: cannot be written: {reason}"
