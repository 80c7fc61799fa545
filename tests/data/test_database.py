"""A database that is only read, within limits."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from trelliswork.data.database import Database
from trelliswork.errors import DataError, TrellisworkWarning

JUMP = "SELECT fts3_tokenizer('simple', x'4141414141414141')"  # an address that SQLite would call


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rivers #1.sqlite"
    with sqlite3.connect(path) as made:
        made.execute("CREATE TABLE river (river_name TEXT, length REAL)")
        made.executemany("INSERT INTO river VALUES (?, ?)", [("ohio", 1569.0), ("red", 1638.5), ("ohio", 1569)])
    return path


def test_answers_are_rows_in_no_order(file: Path) -> None:
    database = Database(file)
    assert database.schema == {"RIVER": ("RIVER_NAME", "LENGTH")}
    rows = (("ohio", 1569), ("ohio", 1569), ("red", 1638.5))
    assert database.answer("SELECT * FROM river ORDER BY length DESC") == rows
    assert database.answer("SELECT * FROM RIVER") == rows
    assert database.answer("SELECT * FROM river WHERE length > 9999") == ()


def test_what_does_not_run_is_none_and_nothing_is_written(file: Path) -> None:
    before = file.read_bytes()
    database = Database(file, rows=2)
    for query in (
        "SELECT nothing FROM river", "SELEC", "", "DELETE FROM river", "DROP TABLE river", "SELECT 1; SELECT 2",
        "SELECT * FROM river",  # more rows than allowed
        "ATTACH DATABASE 'other.sqlite' AS other; CREATE TABLE other.x (y)",
    ):  # fmt: skip
        assert not database.answer(query), query
    assert file.read_bytes() == before


def test_a_query_that_does_not_end_is_stopped(file: Path) -> None:
    forever = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n"
    assert Database(file, seconds=0.05).answer(forever) is None
    assert Database(file).answer("SELECT COUNT(*) FROM river") == ((3,),)


def test_a_file_that_is_no_database_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="got no such file"):
        Database(tmp_path / "missing.sqlite")
    text = tmp_path / "text.sqlite"
    text.write_text("name,length\n" * 10, encoding="utf-8")
    with pytest.raises(DataError, match="a file of another format"):
        Database(text)
    empty = tmp_path / "empty.sqlite"
    with sqlite3.connect(empty) as made:
        made.execute("CREATE TABLE t (x)")
        made.execute("DROP TABLE t")
    with pytest.raises(DataError, match="got none; make them first"):
        Database(empty)
    broken = tmp_path / "broken.sqlite"
    broken.write_bytes(b"SQLite format 3\x00" + b"x" * 4000)
    with pytest.raises(DataError, match="one that is broken"):
        Database(broken)


def test_a_query_only_reads(file: Path) -> None:
    """A connection that only reads still makes files by ATTACH, which a model's queries must not."""
    database, other = Database(file), file.with_name("made.sqlite")
    for query in (f"ATTACH DATABASE '{other}' AS more", "PRAGMA journal_mode = WAL", "CREATE TEMP TABLE t (x)"):
        assert database.answer(query) is None, query
    assert database.answer("SELECT LENGTH(zeroblob(100000000))") is None
    assert not other.exists()
    counted = "WITH RECURSIVE n(i) AS (SELECT 1 UNION SELECT i + 1 FROM n WHERE i < 3) SELECT SUM(i) FROM n"
    assert database.answer(counted) == ((6,),)


# --- from strangers ------------------------------------------------------------------------------------------


def test_a_query_cannot_call_what_runs_foreign_code(file: Path) -> None:
    with sqlite3.connect(file) as made:
        made.execute("CREATE TABLE plain (x)")
        made.execute("CREATE VIRTUAL TABLE words USING fts4(w)")
        made.execute("INSERT INTO words VALUES ('ohio')")
        made.execute("CREATE VIEW of_words AS SELECT * FROM words")
        made.execute(f"CREATE VIEW jump AS {JUMP}")
        made.execute("PRAGMA writable_schema = ON")
        hidden = "CREATE /* as nobody writes it */ VIRTUAL TABLE words"
        made.execute("UPDATE sqlite_master SET sql = replace(sql, 'CREATE VIRTUAL TABLE words', ?)", (hidden,))
    with pytest.warns(TrellisworkWarning, match="left out: words, of_words, jump"):
        database = Database(file)
    assert {"RIVER", "PLAIN"} <= database.schema.keys()
    assert not {"WORDS", "OF_WORDS", "JUMP"} & database.schema.keys()
    for query in (
        JUMP, "SELECT * FROM jump", "SELECT * FROM words", "SELECT * FROM of_words", "SELECT COUNT(*) FROM words",
        "SELECT * FROM json_each('[1]')", "SELECT 1 FROM json_each('[1]')", "SELECT * FROM pragma_table_info('river')",
        "SELECT COUNT(*) FROM pragma_function_list", "SELECT load_extension('x')", "SELECT sqlite_version()",
    ):  # fmt: skip
        assert database.answer(query) is None, query
    assert database.answer("SELECT COUNT(*) FROM river") == ((3,),)


def test_ordinary_functions_joins_and_names_are_answered(file: Path) -> None:
    database = Database(file)
    for query, expected in {
        "SELECT COUNT(*), MAX(length), UPPER(MIN(river_name)) FROM river": ((3, 1638.5, "OHIO"),),
        "SELECT river_name FROM river WHERE river_name LIKE 'o%' GROUP BY 1": (("ohio",),),
        "WITH long AS (SELECT * FROM river WHERE length > 1600) SELECT COUNT(*) FROM long": ((1,),),
        "SELECT COUNT(*) FROM river AS a JOIN river AS b ON a.length = b.length": ((5,),),
        "SELECT COUNT(*) FROM (SELECT DISTINCT river_name FROM river)": ((2,),),
        "SELECT RANK() OVER (ORDER BY length DESC), length FROM river LIMIT 1": ((1, 1638.5),),
        "SELECT strftime('%Y', '2020-01-02'), printf('%03d', 7), round(2.567, 1)": (("2020", "007", 2.6),),
        "SELECT x'00ff', 1e999, NULL, 9223372036854775807, 'a\nb', 0.1": (
            (b"\x00\xff", float("inf"), None, 2**63 - 1, "a\nb", 0.1),
        ),
    }.items():
        assert database.answer(query) == expected, query
    assert database.answer("SELECT '\ud800'") is None


@pytest.mark.parametrize(
    "query",
    [
        "SELECT printf('%.*c', 2000000000, 'x')",  # one call that looks at no clock
        "SELECT SUM(instr(g, '99a')) FROM big, many, many AS more",
        "SELECT * FROM slow",
        "SELECT COUNT(*) FROM many AS a, many AS b, many AS c, many AS d",
        "SELECT DISTINCT a.x || b.x || c.x FROM many AS a, many AS b, many AS c ORDER BY 1",
        "SELECT LENGTH(group_concat(a.x || b.x)) FROM many AS a, many AS b",
        "SELECT hex(zeroblob(400000)) FROM many LIMIT 900",
        "SELECT replace(printf('%500000s', x), ' ', 'y') FROM many LIMIT 900",  # 450 MB of rows
        "SELECT x LIKE '" + "%a" * 5000 + "' FROM many",
        "SELECT " + "abs(" * 3000 + "1" + ")" * 3000,
    ],
)
def test_no_query_escapes_the_limits(file: Path, query: str) -> None:
    with sqlite3.connect(file) as made:
        made.execute("CREATE TABLE many (x)")
        made.executemany("INSERT INTO many VALUES (?)", [(f"value {i}",) for i in range(2000)])
        made.execute("CREATE VIEW big AS SELECT group_concat(x || x || x || x) AS g FROM many")
        made.execute("CREATE VIEW slow AS SELECT printf('%.*c', 2000000000, x) FROM many")
    database = Database(file, seconds=0.2)
    began = time.monotonic()
    assert database.answer(query) is None
    assert time.monotonic() - began < 10, "printf alone takes several times as long"
    assert database.answer("SELECT COUNT(*) FROM many") == ((2000,),)  # from a new process, if the first one had to end


def test_nothing_is_written_next_to_the_file(file: Path) -> None:
    other = sqlite3.connect(file)
    other.execute("PRAGMA journal_mode = WAL")
    other.execute("INSERT INTO river VALUES ('platte', 499)")
    other.commit()  # is in the log alone as long as the connection is open
    beside = {name: (file.parent / name).read_bytes() for name in os.listdir(file.parent) if not name.endswith("-shm")}
    temporary = set(os.listdir(tempfile.gettempdir()))
    database = Database(file)
    assert database.answer("SELECT COUNT(*) FROM river") == ((4,),)
    assert beside.items() <= {name: (file.parent / name).read_bytes() for name in os.listdir(file.parent)}.items()
    other.close()
    assert os.listdir(file.parent) == [file.name]
    file.unlink()
    assert database.answer("SELECT COUNT(*) FROM river") == ((4,),), "a copy"
    mine = {name for name in os.listdir(tempfile.gettempdir()) if name.startswith("trelliswork-")}
    assert not mine - temporary


def test_without_room_for_a_copy_there_is_a_sentence(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(file))  # where no folder can be made
    with pytest.raises(DataError, match=r"expected a folder for a copy of it, got: .*; set TMPDIR to one"):
        Database(file)


def test_an_unfinished_transaction_is_said(file: Path) -> None:
    Path(f"{file}-journal").write_bytes(bytes.fromhex("d9d505f920a163d7") + bytes(600))
    with pytest.raises(DataError, match=r"got one with an unfinished transaction .*; open and close it"):
        Database(file)


def test_what_is_not_utf8_gets_a_sentence(file: Path, tmp_path: Path) -> None:
    with sqlite3.connect(file) as made:
        made.execute("CREATE TABLE place (name TEXT)")
        made.execute("INSERT INTO place VALUES (CAST(x'436166e9' AS TEXT)), ('Rhône')")
    with pytest.warns(TrellisworkWarning, match=r"expected texts in UTF-8, got b'Caf\\xe9'"):
        assert Database(file).answer("SELECT name FROM place") == (("Caf\\xe9",), ("Rhône",))
    for i, made_by in enumerate(("CREATE TABLE river (cafe TEXT)", "CREATE TABLE cafe (river TEXT)")):
        broken = tmp_path / f"names{i}.sqlite"
        with sqlite3.connect(broken) as made:
            made.execute(made_by)
        broken.write_bytes(broken.read_bytes().replace(b"cafe", b"caf\xe9"))
        with pytest.raises(DataError, match=r"expected names in UTF-8, got b'caf\\xe9'"):
            Database(broken)


PARENT = """
import os, sys, time
from trelliswork.data.database import Database
database = Database(sys.argv[1], seconds=60 if sys.argv[2] == "patient" else 1)
database.answer("SELECT 1")
if sys.argv[2] == "forked" and not os.fork():  # keeps the pipe open
    time.sleep(100)
    os._exit(0)
print(database._process._process.pid, flush=True)
if sys.argv[2] == "busy":
    database.answer("SELECT printf('%.*c', 2000000000, 'x')")
if sys.argv[2] == "patient":
    database.answer("WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT COUNT(*) FROM r")
time.sleep(1000)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="has no signals and no fork")
@pytest.mark.parametrize("how", ["idle", "busy", "patient", "forked"])
def test_the_process_of_queries_ends_with_its_parent(file: Path, how: str) -> None:
    command = [sys.executable, "-c", PARENT, str(file), how]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as parent:
        assert parent.stdout
        pid = int(parent.stdout.readline())
        os.kill(pid, 0)
        if how == "patient":
            time.sleep(1)  # so that its query has begun
        parent.kill()
        parent.wait()
        ends = time.monotonic() + 60
        while is_running(pid) and time.monotonic() < ends:
            time.sleep(0.05)
        assert not is_running(pid)
        if how == "forked":
            os.killpg(parent.pid, signal.SIGKILL)


def is_running(pid: int) -> bool:
    """Whether a process is there, and not only waits for somebody to collect its status."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return state.strip() != "" and not state.startswith("Z")


def ask(database: Database, results: Any) -> None:
    results.put([database.answer(f"SELECT {i} + COUNT(*) FROM river") for i in range(50)])


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
def test_forked_processes_ask_processes_of_their_own(file: Path) -> None:
    database, context = Database(file), multiprocessing.get_context("fork")
    first, results = database._running(), context.Queue()
    workers = [context.Process(target=ask, args=(database, results)) for _ in range(3)]
    for worker in workers:
        worker.start()
    expected = [((3 + i,),) for i in range(50)]
    assert [database.answer(f"SELECT {i} + COUNT(*) FROM river") for i in range(50)] == expected
    assert [results.get(timeout=60) for _ in workers] == [expected] * 3
    for worker in workers:
        worker.join()
    assert database._running() is first


def test_a_process_that_dies_is_replaced(file: Path) -> None:
    database = Database(file)
    before = database._running()
    before._process.kill()
    before._process.wait()
    assert database.answer("SELECT 1") == ((1,),)
    after = database._running()
    assert after is not before
    after._process.kill()
    after._process.wait()
    assert database.answer("SELECT 1") == ((1,),), "kept"
    assert not after.is_ours_and_alive()
