"""A database that is only read, within limits."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from trelliswork.data.database import Database
from trelliswork.errors import DataError


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
