"""An SQLite database that is only read: its schema, and answers to queries within limits of time, memory and size.

>>> database = Database("geography.sqlite")                                    # doctest: +SKIP
>>> database.answer("SELECT COUNT(*) FROM state")                              # doctest: +SKIP
((51,),)

Files and queries may not be trustworthy: a process of its own (`query_process.py`) opens a copy of the file. One is
kept for each database, and a new one is started where it died or was stopped.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import threading
import time
import warnings
import weakref
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

from trelliswork.data.json_values import JsonObject
from trelliswork.errors import DataError, TrellisworkWarning

Value: TypeAlias = int | float | str | bytes | None
Rows: TypeAlias = tuple[tuple[Value, ...], ...]
MAGIC = b"SQLite format 3\x00"
SECONDS, ROWS = 1.0, 1000  # of a query
LONGEST = 86_400.0  # seconds; clocks overflow beyond some limit
START_SECONDS, GRACE = 60.0, 1.0  # for copying and opening a file; beyond the limit of a query
REPLY_BYTES, PIPE_BYTES = 64_000_000, 1 << 16  # rows as text, where a character may take six; read at once
N_KEPT, KEPT_LENGTH = 2000, 5000  # answers, and the characters of one: the queries of a beam repeat those of others
PROGRAM = Path(__file__).with_name("query_process.py")


class Database:
    """A file that nothing writes to. A missing file, one of another format, and one without tables are errors.

    Args:
        file: An SQLite file.
        seconds: The time limit of a query.
        rows: The largest number of rows of an answer.
    """

    def __init__(self, file: str | Path, *, seconds: float = SECONDS, rows: int = ROWS) -> None:
        self.file, self.seconds, self.rows = Path(file), min(seconds, LONGEST), rows
        self._lock, self._kept = threading.Lock(), dict[str, Rows | None]()
        self._process: _QueryProcess | None = None
        if not os.path.isfile(file):
            raise DataError(file, "expected an SQLite database, got no such file; check the name")
        with self.file.open("rb") as opened:
            if opened.read(len(MAGIC)) != MAGIC:
                raise DataError(file, "expected an SQLite database, got a file of another format; check the name")
        hello = self._running().hello
        self.schema = {name.upper(): tuple(column.upper() for column in columns) for name, columns in hello["schema"]}
        if hello["unread"]:
            names = ", ".join(hello["unread"])
            _warn(f"{file}: virtual tables, and views of what is not there, are not read; left out: {names}")
        if not self.schema:
            raise DataError(file, "expected a database with tables, got none; make them first")

    def answer(self, query: str) -> Rows | None:
        """Return the rows of a query in no order, sorted; None if it does not run, takes too long, or has too many
        rows.
        """
        with self._lock:
            if query in self._kept:
                return self._kept[query]
            rows = self._ask(query)
            if len(self._kept) >= N_KEPT:
                self._kept.clear()
            if len(query) + len(repr(rows)) <= KEPT_LENGTH:
                self._kept[query] = rows
            return rows

    def _ask(self, query: str) -> Rows | None:
        reply = self._running().ask({"query": query}, self.seconds + GRACE)
        if reply is None or reply["rows"] is None:
            return None
        if reply["not_utf8"]:
            _warn(f"{self.file}: expected texts in UTF-8, got {reply['not_utf8']}; such bytes are written as \\x..")
        return tuple(sorted((tuple(map(_plain, row)) for row in reply["rows"]), key=repr))

    def _running(self) -> _QueryProcess:
        """Return the process of this database; a forked process needs its own."""
        process = self._process
        if process is None or not process.is_ours_and_alive():
            process = self._process = _QueryProcess(self.file, self.seconds, self.rows)
        return process


class _QueryProcess:
    """A process that ends when this one does."""

    def __init__(self, file: Path, seconds: float, rows: int) -> None:
        self.owner = os.getpid()
        try:
            folder = TemporaryDirectory(prefix="trelliswork-", ignore_cleanup_errors=True)
        except OSError as error:
            problem = f"expected a folder for a copy of it, got: {error.strerror or error}"
            raise DataError(file, f"{problem}; set TMPDIR to one that can be written") from error
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-X", "utf8", str(PROGRAM)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.end = weakref.finalize(self, _end, self._process, folder, self.owner)
        settings = {"file": str(file.absolute()), "folder": folder.name, "parent": self.owner}
        limits = {"start_seconds": START_SECONDS, "seconds": seconds, "rows": rows}
        reply = self.ask({**settings, **limits}, START_SECONDS)
        if reply is None or "problem" in reply:
            self.end()
            died = f"expected an SQLite database, got one that SQLite fails to open (status {self._process.returncode})"
            raise DataError(file, reply["problem"] if reply else died)
        self.hello = reply

    def is_ours_and_alive(self) -> bool:
        """Return whether this process started it and nobody has killed it."""
        return self.end.alive and self.owner == os.getpid() and self._process.poll() is None

    def ask(self, message: JsonObject, seconds: float) -> JsonObject | None:
        """Return the reply to a message; None if there is none within the time, and the process is ended."""
        assert self._process.stdin and self._process.stdout
        reply = None
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
            line = self._line(seconds)
            reply = json.loads(line, object_hook=_blob) if line.endswith(b"\n") else None
        except (OSError, ValueError, RecursionError):
            pass
        finally:  # a question that was interrupted must not have its reply taken for that of the next
            if reply is None:
                self.end()
        return reply

    def _line(self, seconds: float) -> bytes:
        """Read what the process writes until the end of a line, of its life, or of the time."""
        stream = self._process.stdout
        assert stream
        if not hasattr(select, "poll"):  # on Windows; a thread for each question takes much longer
            timer = threading.Timer(seconds, self._process.kill)
            timer.start()
            try:
                return stream.readline(REPLY_BYTES)
            finally:
                timer.cancel()
        poll, ends, line = select.poll(), time.monotonic() + seconds, bytearray()
        poll.register(stream, select.POLLIN)
        while len(line) < REPLY_BYTES and poll.poll(max(0.0, 1000 * (ends - time.monotonic()))):
            part = os.read(stream.fileno(), PIPE_BYTES)
            line += part
            if not part or part.endswith(b"\n"):
                break
        return bytes(line)


def _end(process: subprocess.Popen[bytes], folder: TemporaryDirectory[str], owner: int) -> None:
    """End a process; where this one was forked from its owner, only close the pipes."""
    assert process.stdin and process.stdout
    with contextlib.suppress(OSError):
        process.stdin.close()
    process.stdout.close()
    if owner == os.getpid():
        process.kill()
        process.wait()
        folder.cleanup()


def _blob(value: JsonObject) -> JsonObject | bytes:
    return bytes.fromhex(value["blob"]) if "blob" in value else value


def _plain(value: Value) -> Value:
    """Return a whole number as an int, however it is stored."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _warn(sentence: str) -> None:
    warnings.warn(sentence, TrellisworkWarning, stacklevel=3)
