"""An SQLite database that is only read: its schema, and answers to queries within limits of time and rows.

>>> database = Database("geography.sqlite")                                    # doctest: +SKIP
>>> database.answer("SELECT COUNT(*) FROM state")                              # doctest: +SKIP
((51,),)
"""

from __future__ import annotations

import sqlite3
import time
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote

from trelliswork.errors import DataError

Rows: TypeAlias = tuple[tuple[Any, ...], ...]
MAGIC = b"SQLite format 3\x00"
SECONDS, ROWS, STEPS = 1.0, 1000, 10_000  # of a query; STEPS of SQLite's machine between looks at the clock
LONGEST = 1_000_000  # bytes of a value or a query
READING = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)


class Database:
    """A file that nothing writes to. A missing file, one of another format, and one without tables are errors."""

    def __init__(self, file: str | Path, *, seconds: float = SECONDS, rows: int = ROWS) -> None:
        self.file, self.seconds, self.rows = Path(file), seconds, rows
        if not self.file.is_file():
            raise DataError(file, "expected an SQLite database, got no such file; check the name")
        with self.file.open("rb") as opened:
            if opened.read(len(MAGIC)) != MAGIC:
                raise DataError(file, "expected an SQLite database, got a file of another format; check the name")
        if not self.schema:
            raise DataError(file, "expected a database with tables, got none; make them first")

    @cached_property
    def _connection(self) -> sqlite3.Connection:
        found = sqlite3.connect(f"file:{quote(str(self.file.absolute()))}?mode=ro", uri=True)
        found.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
        return found

    @cached_property
    def schema(self) -> dict[str, tuple[str, ...]]:
        """The columns of each table, all names in upper case."""
        try:
            tables = self._connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
            names = [name for (name,) in tables if not name.startswith("sqlite_")]
            quoted = [(name, name.replace('"', '""')) for name in names]
            return {
                name.upper(): tuple(row[1].upper() for row in self._connection.execute(f'PRAGMA table_info("{each}")'))
                for name, each in quoted
            }
        except sqlite3.DatabaseError as error:
            raise DataError(self.file, f"expected an SQLite database, got one that is broken ({error})") from error

    def answer(self, query: str) -> Rows | None:
        """The rows of a query in no order, sorted; None if it does not run, takes too long, or has too many rows."""
        ends = time.monotonic() + self.seconds
        self._connection.set_progress_handler(lambda: time.monotonic() > ends, STEPS)
        self._connection.set_authorizer(_only_reading)
        try:
            found = self._connection.execute(query).fetchmany(self.rows + 1)
        except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError):
            return None
        finally:
            self._connection.set_progress_handler(None, 0)
            self._connection.set_authorizer(None)
        if len(found) > self.rows:
            return None
        return tuple(sorted((tuple(map(_plain, row)) for row in found), key=repr))


def _only_reading(action: int, *_: object) -> int:
    """What a query may do: ATTACH would make files, and a connection that only reads does not prevent it."""
    return sqlite3.SQLITE_OK if action in READING else sqlite3.SQLITE_DENY


def _plain(value: Any) -> Any:
    """Whole numbers alike, however they are stored."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
