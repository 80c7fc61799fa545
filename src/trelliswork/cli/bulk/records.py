"""The records of a file that has bad ones, to be taken out one by one: blocks of lines, lines, or rows of Parquet."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from trelliswork.data import atomic_write
from trelliswork.data.files import read_bytes
from trelliswork.data.readers import InputKind
from trelliswork.lazy import named

BLOCKS = ("conll", "brackets")  # formats whose records are blocks of lines between blank ones


class BadRecord(NamedTuple):
    """A record that could not be read: the number of its first line, or of its row, why, and its text."""

    line: int
    reason: str
    record: str


class Records(Protocol):
    """All records of a file that have not been taken out."""

    def write(self, path: Path) -> None:
        """Write the records to a file of the same format."""

    def take_out(self, number: int, reason: str) -> BadRecord:
        """Take out the record that has the line, or is the row, of this number in the file as `write` writes it."""

    def number(self, number: int) -> int:
        """Return the number that a line or row, which `write` writes as this one, has in the original file."""


def records_of(source: Path, kind: InputKind) -> Records:
    """The records of a file of this kind."""
    return RowRecords(source) if kind == "parquet" else LineRecords(source, in_blocks=kind in BLOCKS)


class LineRecords:
    """Lines with their numbers in the file; a record is a line, or all lines between two blank ones."""

    def __init__(self, source: Path, *, in_blocks: bool) -> None:
        self.lines = list(enumerate(io.BytesIO(read_bytes(source)), 1))
        self.in_blocks = in_blocks

    def write(self, path: Path) -> None:
        path.write_bytes(b"".join(content for _, content in self.lines))

    def take_out(self, number: int, reason: str) -> BadRecord:
        first, last = self._record_at(number)
        text = b"".join(content for _, content in self.lines[first:last]).decode("utf-8", "replace")
        bad = BadRecord(self.lines[first][0], reason, text)
        del self.lines[first:last]
        return bad

    def number(self, number: int) -> int:
        return self.lines[min(number, len(self.lines)) - 1][0]

    def _record_at(self, number: int) -> tuple[int, int]:
        """The lines [first, last) of the record that has the line of this number, counted from 1."""
        lines, at = self.lines, min(number, len(self.lines)) - 1
        if not self.in_blocks or not lines[at][1].strip():
            return at, at + 1
        first, last = at, at + 1
        while first > 0 and lines[first - 1][1].strip():
            first -= 1
        while last < len(lines) and lines[last][1].strip():
            last += 1
        return first, min(last + 1, len(lines))  # the blank line after it goes too


class RowRecords:
    """Rows of a Parquet file."""

    def __init__(self, source: Path) -> None:
        with named("trelliswork.data.parquet:opened_parquet")(source) as file:
            self.table: Any = file.read()
        self.numbers = list(range(1, self.table.num_rows + 1))

    def write(self, path: Path) -> None:
        with atomic_write(path, "wb") as file:
            named("trelliswork.data.parquet:pq").write_table(self.table, file)

    def take_out(self, number: int, reason: str) -> BadRecord:
        at = min(number, len(self.numbers)) - 1
        (row,) = self.table.slice(at, 1).to_pylist()
        bad = BadRecord(self.numbers.pop(at), reason, json.dumps(row, ensure_ascii=False, default=str))
        kept = [i for i in range(self.table.num_rows) if i != at]
        self.table = self.table.take(kept)
        return bad

    def number(self, number: int) -> int:
        return self.numbers[min(number, len(self.numbers)) - 1]
