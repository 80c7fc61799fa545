"""A file of JSON lines that is written durably: what was acknowledged is on the disk, whole.

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
from pathlib import Path
from typing import Any

from trelliswork.errors import DataError, OutputError


class Journal:
    """The records of a file. `append` returns when the line is on the disk, `pop` when the last line is gone.

    A line that a crash left half written is cut off when the file is opened: nobody was told that it was kept. The file
    is locked, so that a second server does not write into it.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
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

    def _read(self) -> tuple[list[dict[str, Any]], list[int], int]:
        """The records, where each begins, and where the last ends; half a line behind is cut off."""
        text = self.path.read_bytes()
        size = text.rfind(b"\n") + 1
        if size < len(text):
            self._cut(size)
        records, starts, place = [], [], 0
        for number, line in enumerate(text[:size].split(b"\n")[:-1], 1):
            try:
                record = json.loads(line)
            except ValueError as error:
                raise DataError(self.path, "expected a line of JSON, got something else", line=number) from error
            if not isinstance(record, dict):
                raise DataError(self.path, "expected an object, got something else", line=number)
            records.append(record)
            starts.append(place)
            place += len(line) + 1
        return records, starts, size

    def append(self, record: dict[str, Any]) -> None:
        """Write a record; if that fails, the file is as it was."""
        line = json.dumps(record, ensure_ascii=False).encode() + b"\n"
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

    def pop(self) -> dict[str, Any]:
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
