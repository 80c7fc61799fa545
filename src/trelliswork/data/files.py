"""Opening files to read: plain, gzip, standard input."""

from __future__ import annotations

import contextlib
import gzip
import sys
import zlib
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import BinaryIO, cast

from trelliswork.errors import DataError

READ_AT_A_TIME = 1 << 17  # bytes
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

    A byte order mark and Windows line ends are dropped. Bytes that are not text are an error with their line.
    """
    name = name_of(path)
    number = 0
    try:
        with open_bytes(path) as file:
            for group in _groups(file, one_by_one=str(path) == "-"):
                for line in _decoded(group, name, number + 1):
                    number += 1
                    yield number, line
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(name, "not a whole gzip file; copy or compress it again", line=number + 1) from error
    except OSError as error:
        raise DataError(name, _why_unreadable(error), line=number + 1) from error


def _groups(file: BinaryIO, *, one_by_one: bool) -> Iterator[list[bytes]]:
    """Lines, many at a time, or each as soon as it is there."""
    if one_by_one:
        yield from ([raw] for raw in file)
        return
    while group := file.readlines(READ_AT_A_TIME):
        yield group


def _decoded(group: list[bytes], name: str, first: int) -> Iterator[str]:
    """The lines of a group, which begins with line `first`: all at once, or one by one if something is unusual."""
    text = b"".join(group)
    if b"\0" not in text and b"\r" not in text:
        with contextlib.suppress(UnicodeDecodeError):
            decoded = text.decode("utf-8")
            lines = (decoded.removeprefix("\ufeff") if first == 1 else decoded).split("\n")
            return iter(lines[: len(group)])
    return (_decode(raw, name, number) for number, raw in enumerate(group, first))


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
