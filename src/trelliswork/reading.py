"""Opening files to read: plain, gzip, standard input."""

from __future__ import annotations

import contextlib
import gzip
import os
import stat
import sys
import zlib
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import BinaryIO, cast

from trelliswork.errors import DataError

READ_AT_A_TIME = 1 << 17  # bytes
LONGEST_LINE = 10_000_000  # bytes; a longer line is damage, or a file made to fill the memory
GZIP_MAGIC = b"\x1f\x8b"
GZIP_DAMAGE = (EOFError, gzip.BadGzipFile, zlib.error)
A_FOLDER = "expected a file, got a folder; name one of the files in it"
_TO_TEXT = {  # how to make text of a file that has none, by suffixes
    (".xlsx", ".xls", ".ods"): "save the sheet as .csv",
    (".docx", ".doc", ".odt", ".rtf", ".pdf"): "save its text as .txt and add --text",
    (".spacy",): "write its documents as JSON lines, columns or CoNLL-U",
}
NOT_WHOLE = "not a whole gzip file; copy or compress it again"


def name_of(path: str | Path) -> str:
    """Return the name of a path in messages: "-" reads as standard input."""
    return "<stdin>" if str(path) == "-" else str(path)


@contextlib.contextmanager
def open_bytes(path: str | Path) -> Iterator[BinaryIO]:
    """A file open for reading bytes; what gzip packed is unpacked, whatever its name, and "-" is standard input."""
    if str(path) == "-":
        yield sys.stdin.buffer
        return
    path = Path(path)
    if path.is_dir():
        raise DataError(path, A_FOLDER)
    try:
        file = open(path, "rb")  # noqa: SIM115
    except OSError as error:
        raise DataError(path, _why_unreadable(error)) from error
    with file:
        packed = path.suffix == ".gz" or file.peek(2)[:2] == GZIP_MAGIC
        yield cast(BinaryIO, gzip.GzipFile(fileobj=file)) if packed else file


def require_file(path: str | Path) -> None:
    """Raise what `open_bytes` would about a file that cannot be read; it is not opened, as a pipe is read once."""
    if str(path) == "-":
        return
    try:
        is_folder = stat.S_ISDIR(os.stat(path).st_mode)
    except OSError as error:
        raise DataError(path, _why_unreadable(error)) from error
    if is_folder:
        raise DataError(path, A_FOLDER)
    if not os.access(path, os.R_OK):
        raise DataError(path, _why_unreadable(PermissionError()))


def _why_unreadable(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file; check the path"
    if isinstance(error, PermissionError):
        return "no permission to read the file"
    return f"cannot be read: {error.strerror or error}"


def read_bytes(path: str | Path, n: int = -1) -> bytes:
    """Return the first `n` bytes of a file, or all of them; no more than that is unpacked."""
    try:
        with open_bytes(path) as file:
            return file.read(n)
    except GZIP_DAMAGE as error:
        raise DataError(name_of(path), NOT_WHOLE) from error
    except OSError as error:
        raise DataError(name_of(path), _why_unreadable(error)) from error


def numbered_lines(
    path: str | Path, keep: Callable[[bytes], None] | None = None
) -> Generator[tuple[int, str], None, None]:
    """Yield the lines of a UTF-8 text file without their line ends, numbered from 1; read as they are asked for.

    A byte order mark and Windows line ends are dropped. Bytes that are not text are an error with their line, and so is
    a line without end: memory stays bounded whatever the file unpacks to. `keep` is given all bytes, whole lines at a
    time, before their lines are.
    """
    name = name_of(path)
    number = 0
    try:
        with open_bytes(path) as file:
            for text in _groups(file, one_by_one=str(path) == "-"):
                if keep is not None:
                    keep(text)
                for line in _decoded(text, name, number + 1):
                    number += 1
                    yield number, line
    except GZIP_DAMAGE as error:
        raise DataError(name, NOT_WHOLE, line=number + 1) from error
    except OSError as error:
        raise DataError(name, _why_unreadable(error), line=number + 1) from error


def _groups(file: BinaryIO, *, one_by_one: bool) -> Iterator[bytes]:
    """Yield whole lines, many at a time, or each as soon as it is there; `_decode` refuses what is cut at
    LONGEST_LINE.
    """
    if one_by_one:
        yield from iter(lambda: file.readline(LONGEST_LINE + 1), b"")
        return
    begun: list[bytes] = []  # a line whose end has not been read
    n_begun = 0
    while block := file.read(READ_AT_A_TIME):
        whole, end, rest = block.rpartition(b"\n")
        if end:
            yield b"".join([*begun, whole, end])
            begun, n_begun = [], 0
        begun.append(rest)
        n_begun += len(rest)
        if n_begun > LONGEST_LINE or b"\0" in rest:
            break
    if n_begun:
        yield b"".join(begun)


def _decoded(text: bytes, name: str, first: int) -> Iterator[str]:
    """Return the lines of a text that begins with line `first`: all at once, or one by one if something is unusual."""
    if b"\0" not in text and b"\r" not in text and len(text) <= LONGEST_LINE:
        with contextlib.suppress(UnicodeDecodeError):
            decoded = text.decode("utf-8")
            lines = (decoded.removeprefix("\ufeff") if first == 1 else decoded).split("\n")
            return iter(lines[:-1] if text.endswith(b"\n") else lines)
    lines_of_bytes = text.split(b"\n")[:-1] if text.endswith(b"\n") else text.split(b"\n")
    return (_decode(raw, name, number) for number, raw in enumerate(lines_of_bytes, first))


def _decode(raw: bytes, name: str, number: int) -> str:
    if b"\0" in raw:
        problem = f"expected UTF-8 text, got a binary (or UTF-16) file: it holds a NUL; {_as_text(name)}"
        raise DataError(name, problem, line=number)
    if len(raw) > LONGEST_LINE:
        raise DataError(
            name, f"expected lines of at most {LONGEST_LINE:,} bytes, got a longer one; break it up", line=number
        )
    try:
        line = raw.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        problem = f"expected UTF-8 text, got the byte 0x{raw[error.start]:02x}; {_as_text(name)}"
        raise DataError(name, problem, line=number, column=error.start + 1) from error
    return line.removeprefix("\ufeff") if number == 1 else line


def _as_text(name: str) -> str:
    """Return how to make text of a file, judged by its suffix.

    >>> _as_text("a/News.XLSX"), _as_text("a.conll.gz")
    ('save the sheet as .csv', 'convert the file to UTF-8')
    """
    suffix = Path(name.removesuffix(".gz")).suffix.lower()
    return next((fix for suffixes, fix in _TO_TEXT.items() if suffix in suffixes), "convert the file to UTF-8")


@contextlib.contextmanager
def open_text(path: str | Path) -> Iterator[Iterator[str]]:
    """The lines of a text file (see `numbered_lines`) in a `with` block.

    >>> with open_text("train.conll.gz") as lines:  # doctest: +SKIP
    ...     first = next(lines)
    """
    lines = numbered_lines(path)
    with contextlib.closing(lines):
        yield (line for _, line in lines)
