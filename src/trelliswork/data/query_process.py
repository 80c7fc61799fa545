"""The process that answers queries on an untrusted database; `database.py` starts it, and nothing imports it.

It reads one JSON record from each line and writes one for it. SQLite meets both the file and the queries in here: a
crash, a call that does not end or a value that fills the memory ends this process and no other. It imports the standard
library only, so that it starts within a fraction of a second and knows nothing that is worth stealing.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import shutil
import signal
import sqlite3
import sys
import time
from collections.abc import Iterator
from typing import Any

try:
    import resource
except ImportError:
    resource = None  # type: ignore[assignment]

COPY = "database"  # in the current folder
VALUE_BYTES, RESULT_BYTES = 1_000_000, 10_000_000  # of a value or a query; of all rows together
HEAP, MEMORY = 256 << 20, 512 << 20  # bytes: what SQLite may allocate, and what the process may
STEPS = 1_000  # of SQLite's machine between looks at the clock
GRACE = 0.5  # seconds beyond the limit for what looks at no clock: a single call of a function
LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: VALUE_BYTES,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: VALUE_BYTES,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 100,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 100_000,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1_000,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
PRAGMAS = ("trusted_schema = OFF", "cell_size_check = ON", "temp_store = MEMORY", "mmap_size = 0",
           f"hard_heap_limit = {HEAP}")  # fmt: skip
SWITCHES = {  # of Python 3.12 and later
    "SQLITE_DBCONFIG_DEFENSIVE": True, "SQLITE_DBCONFIG_TRUSTED_SCHEMA": False,
    "SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION": False, "SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER": False,
    "SQLITE_DBCONFIG_ENABLE_TRIGGER": False,
}  # fmt: skip
FUNCTION_NAMES = """
    -> ->> abs char coalesce concat concat_ws format glob hex if ifnull iif instr length like likelihood likely lower
    ltrim max min nullif octet_length printf quote random replace round rtrim sign soundex substr substring trim
    typeof unhex unicode unlikely upper
    acos acosh asin asinh atan atan2 atanh ceil ceiling cos cosh degrees exp floor ln log log10 log2 mod pi pow power
    radians sin sinh sqrt tan tanh trunc
    current_date current_time current_timestamp date datetime julianday strftime time timediff unixepoch
    avg count group_concat median percentile percentile_cont percentile_disc string_agg sum total cume_dist
    dense_rank first_value lag last_value lead nth_value ntile percent_rank rank row_number
    json json_array json_array_length json_extract json_group_array json_group_object json_insert json_object
    json_patch json_quote json_remove json_replace json_set json_type json_valid
"""
FUNCTIONS = frozenset(FUNCTION_NAMES.split())
SCHEMA_TABLES = {"sqlite_master", "sqlite_schema"}
VIRTUAL = re.compile(rb"CREATE(?>[\s\xef\xbb\xbf]+|--[^\n]*|/\*.*?\*/)*+VIRTUAL\b", re.IGNORECASE | re.DOTALL)
JOURNAL = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"

Schema = list[tuple[str, list[str]]]
Message = dict[str, Any]  # a record of JSON


class UnreadableError(Exception):
    """A problem of the database, worded to follow its name."""


def copy_database(file: str) -> None:
    """Copy a file and what its write-ahead log adds to it, so that nothing is written next to the original."""
    with contextlib.suppress(FileNotFoundError), open(f"{file}-journal", "rb") as journal:
        if journal.read(len(JOURNAL)) == JOURNAL:
            problem = "expected a database that no program is writing, got one with an unfinished transaction"
            raise UnreadableError(f"{problem} ({file}-journal); open and close it with the program that writes it")
    try:
        shutil.copyfile(file, COPY)
        with contextlib.suppress(FileNotFoundError):
            shutil.copyfile(f"{file}-wal", f"{COPY}-wal")
    except OSError as error:
        problem = f"expected to copy it to {os.getcwd()}, got: {error.strerror or error}"
        raise UnreadableError(f"{problem}; free space, or set TMPDIR to another folder") from error


def connect(options: str) -> sqlite3.Connection:
    """Open the copy with the limits that SQLite knows."""
    connection = sqlite3.connect(f"file:{COPY}?{options}", uri=True, isolation_level=None)
    connection.text_factory = bytes
    for limit, value in LIMITS.items():
        connection.setlimit(limit, value)
    for name, value in SWITCHES.items():
        if hasattr(connection, "setconfig") and hasattr(sqlite3, name) and "immutable" in options:
            connection.setconfig(getattr(sqlite3, name), value)
    for pragma in PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")
    return connection


def settle_copy() -> list[str]:
    """Make the copy one file without virtual tables, whose modules run on whatever the file holds; return their names.

    They leave the schema, as SQLite calls a module before it asks whether a table may be read.
    """
    connection = connect("mode=rw")
    connection.execute("PRAGMA journal_mode = DELETE")
    entries = connection.execute("SELECT rowid, name, sql FROM sqlite_master").fetchall()
    virtual = [(rowid, text(name)) for rowid, name, sql in entries if VIRTUAL.match(sql or b"")]
    if virtual:
        connection.execute("PRAGMA writable_schema = ON")
        connection.executemany("DELETE FROM sqlite_master WHERE rowid = ?", [(rowid,) for rowid, _ in virtual])
    connection.close()
    return [name for _, name in virtual]


def text(name: bytes) -> str:
    """Return a name of the schema."""
    try:
        return name.decode()
    except UnicodeDecodeError:
        raise UnreadableError(f"expected names in UTF-8, got {name!r}; rename it, or write the file again") from None


def schema_of(connection: sqlite3.Connection) -> tuple[Schema, list[str]]:
    """Return tables and views with their columns, and the names of views that read what is not there."""
    names = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')").fetchall()
    schema, unread = Schema(), []
    for name in (text(name) for (name,) in names):
        quoted = name.replace('"', '""')
        try:
            columns = connection.execute(f'PRAGMA table_info("{quoted}")').fetchall()
        except sqlite3.OperationalError:
            unread.append(name)
        else:
            schema.append((name, [text(column[1]) for column in columns]))
    return schema, unread


class Reader:
    """A connection that answers queries within limits.

    Args:
        seconds: Time that a query may take.
        n_rows: Number of rows that it may answer with.
        parent: Process that it ends with.
    """

    def __init__(self, seconds: float, n_rows: int, parent: int) -> None:
        self.seconds, self.n_rows, self.parent = seconds, n_rows, parent
        virtual = settle_copy()
        self.connection = connect("mode=ro&immutable=1")
        schema, unread = schema_of(self.connection)
        self.readable = SCHEMA_TABLES | {name.lower() for name, _ in schema}
        self.hello = {
            "schema": [each for each in schema if not each[0].startswith("sqlite_")],
            "unread": virtual + unread,
        }
        self.modules = {text(name).lower() for (name,) in self.connection.execute("PRAGMA module_list")}
        self.not_utf8 = b""
        self.connection.text_factory = self._text
        self.connection.set_authorizer(self._permit)

    def _permit(self, action: int, first: str | None, second: str | None, *_: object) -> int:
        """Allow reading tables of the file, and functions that are known to be safe."""
        if action == sqlite3.SQLITE_READ:
            allowed = self._is_table((first or "").lower(), second or "")
        elif action == sqlite3.SQLITE_FUNCTION:
            allowed = (second or "").lower() in FUNCTIONS
        else:
            allowed = action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE)
        return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY

    def _is_table(self, name: str, column: str) -> bool:
        """Return whether a name is a table of the file or, with no column read, may be one of the WITH clause."""
        is_module = name in self.modules or name.startswith("pragma_")
        return name in self.readable or (column == "" and not is_module)

    def _text(self, value: bytes) -> str:
        try:
            return value.decode()
        except UnicodeDecodeError:
            self.not_utf8 = self.not_utf8 or value[:50]
            return value.decode(errors="backslashreplace")

    def answer(self, query: str) -> Message:
        """Return the rows of a query; None if it does not run or exceeds a limit."""
        ends, self.not_utf8 = time.monotonic() + self.seconds, b""
        self.connection.set_progress_handler(lambda: time.monotonic() > ends or has_lost(self.parent), STEPS)
        rows, n_bytes = list[tuple[object, ...]](), 0
        try:
            for row in self.connection.execute(query):
                rows.append(row)
                n_bytes += sum(len(value) if isinstance(value, str | bytes) else 8 for value in row)
                if len(rows) > self.n_rows or n_bytes > RESULT_BYTES:
                    return {"rows": None}
        except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, MemoryError):
            return {"rows": None}
        return {"rows": rows, "not_utf8": repr(self.not_utf8) if self.not_utf8 else None}


def limit_process(**limits: int) -> None:
    """Take from this process what it does not need: memory, other processes, files to write."""
    if resource is None:  # on Windows; the limits of SQLite and the clock of the parent remain
        return
    for name, value in limits.items():
        with contextlib.suppress(AttributeError, ValueError, OSError):  # what a system lacks or forbids to change
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value))


def has_lost(parent: int) -> bool:
    """Return True if the process that asks is gone; Windows does not say."""
    return os.name == "posix" and os.getppid() != parent


def lines(parent: int) -> Iterator[Message]:
    """Yield the messages of the parent until it ends: a process that it forked may keep the pipe open beyond that."""
    while True:
        if os.name == "posix":
            while not select.select([sys.stdin], [], [], 1.0)[0]:
                if has_lost(parent):
                    return
        line = sys.stdin.buffer.readline()
        if not line:
            return
        yield json.loads(line)


def tell(message: Message) -> None:
    sys.stdout.buffer.write(json.dumps(message, default=lambda blob: {"blob": blob.hex()}).encode() + b"\n")
    sys.stdout.buffer.flush()


def alarm(seconds: float) -> None:
    """End this process after so much time, whatever it does then; 0 forgets it."""
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # the parent may ignore it, which is inherited
        signal.setitimer(signal.ITIMER_REAL, seconds)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    limit_process(AS=MEMORY, CORE=0, NPROC=0)
    settings = json.loads(sys.stdin.buffer.readline())
    alarm(settings["start_seconds"])
    folder = settings["folder"]
    os.chdir(folder)
    try:
        copy_database(settings["file"])
        reader = Reader(settings["seconds"], settings["rows"], settings["parent"])
    except UnreadableError as error:
        return tell({"problem": str(error)})
    except (sqlite3.Error, MemoryError) as error:
        return tell({"problem": f"expected an SQLite database, got one that is broken ({error})"})
    finally:  # an open file needs no name; Windows keeps it, for the parent to remove
        shutil.rmtree(folder, ignore_errors=True)
    limit_process(FSIZE=0)
    alarm(0)
    tell(reader.hello)
    for message in lines(settings["parent"]):
        alarm(reader.seconds + GRACE)
        answer = reader.answer(message["query"])
        alarm(0)
        tell(answer)


if __name__ == "__main__":
    main()
