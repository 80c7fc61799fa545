"""A file of records that is written durably: what was acknowledged is on the disk, whole.

>>> journal = Journal("decisions.jsonl")                     # doctest: +SKIP
>>> journal.append({"id": 3, "tags": ["O"]})                 # doctest: +SKIP
>>> journal.pop()                                            # doctest: +SKIP
{'id': 3, 'tags': ['O']}
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from trelliswork.errors import DataError, OutputError

Record = dict[str, Any]


class Form(NamedTuple):
    """Format of a record; `end` follows each and is in none. `read` raises ValueError for anything else."""

    end: bytes
    written: Callable[[Record], bytes]
    read: Callable[[bytes], Record]


def _line(record: Record) -> bytes:
    return json.dumps(record, ensure_ascii=False).encode()


def _object(line: bytes) -> Record:
    try:
        record = json.loads(line)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(record, dict):
        raise ValueError("expected an object")
    return record


JSON_LINES = Form(b"\n", _line, _object)


class Journal:
    """The records of a file. `append` returns when a record is on the disk, `pop` when the last one is gone.

    What a crash left half written is cut off when the file is opened: nobody was told that it was kept. The file is
    locked, so that a second server does not write into it.
    """

    def __init__(self, path: str | Path, form: Form = JSON_LINES) -> None:
        self.path, self._form = Path(path), form
        is_new = not self.path.exists()
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise OutputError(f"{path}: cannot be opened: {error.strerror}; check the folder of --teach") from error
        try:
            self._lock()
            if is_new:
                sync_folder(self.path.parent)
            self.records, self._starts, self._size = self._read()
        except BaseException:
            os.close(self._file)
            raise

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise OutputError(f"{self.path}: another server writes into it; stop that one") from error

    def _read(self) -> tuple[list[Record], list[int], int]:
        """Return the records, where each begins, and where the last ends; half a record behind is cut off."""
        text, end = self.path.read_bytes(), self._form.end
        size = text.rfind(end) + len(end) if end in text else 0
        if size < len(text):
            self._cut(size)
        records, starts, place = [], [], 0
        for piece in text[:size].split(end)[:-1]:
            try:
                records.append(self._form.read(piece))
            except ValueError as error:
                number = text.count(b"\n", 0, place) + 1
                raise DataError(self.path, "expected a decision, got something else", line=number) from error
            starts.append(place)
            place += len(piece) + len(end)
        return records, starts, size

    def append(self, record: Record) -> None:
        """Write a record; if that fails, the file is as it was."""
        line = self._form.written(record) + self._form.end
        try:
            written = 0
            while written < len(line):
                written += os.write(self._file, line[written:])
            os.fsync(self._file)
        except OSError as error:
            with contextlib.suppress(OSError):
                self._cut(self._size)
            problem = f"{self.path}: cannot be written: {error.strerror}; the decision was not kept"
            raise OutputError(f"{problem}; check the space on the disk") from error
        self.records.append(record)
        self._starts.append(self._size)
        self._size += len(line)

    def pop(self) -> Record:
        """Take the last record off the file."""
        self._cut(self._starts[-1])
        self._size = self._starts.pop()
        return self.records.pop()

    def _cut(self, size: int) -> None:
        os.ftruncate(self._file, size)
        os.fsync(self._file)

    def close(self) -> None:
        """Let another one write."""
        os.close(self._file)


def sync_folder(folder: str | Path) -> None:
    """Make sure that the names in a folder are on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
