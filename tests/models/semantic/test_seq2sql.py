"""Seq2SQL: queries that always parse, aliases of subqueries, and the choice of what the database can answer."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import trelliswork as tw
from trelliswork.data import Sentence
from trelliswork.errors import ConstraintError, TrellisworkError
from trelliswork.models.transducers.semantic.config import SqlConfig
from trelliswork.models.transducers.semantic.seq2sql import Seq2SQL, filled
from trelliswork.models.transducers.semantic.sql import SqlForm, classes_of, sql_grammar

SCHEMA = {"CITY": ("CITY_NAME", "STATE_NAME", "POPULATION"), "RIVER": ("RIVER_NAME", "TRAVERSE", "LENGTH")}
SMALL: dict[str, Any] = {"word_dim": 8, "hidden": 8, "dropout": 0.0, "word_dropout": 0.0, "min_count": 1}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "places.sqlite"
    with sqlite3.connect(path) as made:
        for table, columns in SCHEMA.items():
            made.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
        made.execute(
            "INSERT INTO CITY VALUES ('austin', 'texas', 900), ('waco', 'texas', 100), ('reno', 'nevada', 200)"
        )
        made.execute("INSERT INTO RIVER VALUES ('red', 'texas', 1000)")
    return path


def pair(source: str, target: str) -> Sentence:
    return Sentence(tuple(source.split()), target=tuple(target.split()), file="pairs.tsv", line=1)


BIGGEST = (
    "SELECT CITYalias0.CITY_NAME FROM CITY AS CITYalias0 WHERE CITYalias0.POPULATION = ( SELECT MAX( "
    'CITYalias1.POPULATION ) FROM CITY AS CITYalias1 WHERE CITYalias1.STATE_NAME = "state_name0" ) ;'
)
PAIRS = [
    pair("biggest city in state_name0", BIGGEST),
    pair("how many rivers", "SELECT COUNT( RIVERalias0.RIVER_NAME ) FROM RIVER AS RIVERalias0 ;"),
    pair("cities of state_name0",
         'SELECT CITYalias0.CITY_NAME FROM CITY AS CITYalias0 WHERE CITYalias0.STATE_NAME = "state_name0" ;'),
    pair("rivers of state_name0",
         'SELECT RIVERalias0.RIVER_NAME FROM RIVER AS RIVERalias0 WHERE RIVERalias0.TRAVERSE = "state_name0" ;'),
]  # fmt: skip


def test_a_subquery_numbers_its_own_aliases() -> None:
    form = SqlForm()
    read = form.read(BIGGEST.split())
    assert "CITYalias1" not in read and read.count("CITYalias0") == 2
    assert " ".join(form.written(read)).count("MAX( CITYalias0.POPULATION )") == 1
    inner = "SELECT A FROM CITY AS CITYalias0 WHERE X = ( SELECT B FROM CITY AS CITYalias1 WHERE CITYalias0.Y = Z )"
    assert " ".join(form.read(inner.split())) == inner  # a name from outside would be hidden
    twice = "SELECT X FROM CITY AS CITYalias4 , CITY AS CITYalias2 WHERE CITYalias2.X = CITYalias4.X"
    renamed = "SELECT X FROM CITY AS CITYalias0 , CITY AS CITYalias1 WHERE CITYalias1.X = CITYalias0.X"
    assert " ".join(form.read(twice.split())) == renamed
    assert form.compared(twice.split()) == form.compared(renamed.split())


def accepts(text: str) -> bool:
    symbols = text.split()
    classes = classes_of(symbols, SCHEMA)
    try:
        grammar = sql_grammar(classes)
        state = grammar.start
        for symbol in symbols:
            state = grammar.step(state, classes.get(symbol, "nothing"))
    except ConstraintError:
        return False
    return grammar.is_complete(state)


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("SELECT CITY_NAME FROM CITY", True),
        ("SELECT CITY_NAME FROM CITY AS CITYalias0 WHERE CITYalias0.POPULATION > 5 AND NOT CITY_NAME IS NULL", True),
        ("SELECT COUNT ( DISTINCT CITY_NAME ) FROM CITY GROUP BY STATE_NAME HAVING COUNT ( CITY_NAME ) > 2", True),
        ("SELECT CITY_NAME FROM CITY ORDER BY POPULATION DESC LIMIT 1", True),
        ("SELECT LENGTH FROM RIVER WHERE TRAVERSE NOT IN ( SELECT STATE_NAME FROM CITY )", True),
        ("SELECT CITYalias0.LENGTH FROM CITY AS CITYalias0", False),  # no such column of this table
        ("SELECT ELEVATION FROM CITY", False),
        ("SELECT CITY_NAME FROM MOUNTAIN", False),
        ("SELECT CITY_NAME FROM CITY WHERE", False),
        ("SELECT FROM CITY", False),
        ("SELECT CITY_NAME FROM CITY LIMIT CITY_NAME", False),
        ("SELECT ( CITY_NAME FROM CITY", False),
        ("SELECT MAX ( COUNT ( CITY_NAME ) ) FROM CITY", False),
    ],
)
def test_the_grammar_knows_sql_and_the_schema(text: str, fits: bool) -> None:
    assert accepts(text) == fits


def test_what_it_writes_always_parses_whatever_its_weights(file: Path) -> None:
    for seed in range(3):
        model = Seq2SQL.from_data(PAIRS, SqlConfig(database=str(file), guided=False, beam=4, **SMALL), seed=seed)
        for found in model.transduced([("how", "many"), ("rivers",)], 4, sure=False):
            for query, _ in found.best:
                text = " ".join(model.form.read(query))
                assert accepts(text), text


def test_a_query_that_runs_and_finds_something_comes_first(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Seq2SQL.from_data(PAIRS, SqlConfig(database=str(file), beam=8, **SMALL), seed=1)
    plain = Seq2SQL.from_data(PAIRS, SqlConfig(database=str(file), beam=8, guided=False, **SMALL), seed=1)
    tried = {query: i % 3 == 2 for i, (query, _) in enumerate(plain.transduced([("rivers",)], 8, sure=False)[0].best)}
    monkeypatch.setattr(model, "_answers", lambda query: tried[query])
    found = [query for query, _ in model.transduced([("rivers",)], 8, sure=True)[0].best]
    expected = sorted(tried, key=lambda query: not tried[query])  # in order of probability otherwise
    assert found == expected
    assert found[0] != next(iter(tried))


def test_open_names_are_tried_with_values_of_their_columns(file: Path) -> None:
    model = Seq2SQL.from_data(PAIRS, SqlConfig(database=str(file), **SMALL))
    cities = PAIRS[2].target or ()
    assert model.answers(cities) == [(("reno",),), (("austin",), ("waco",))]  # those of nevada and of texas
    assert model.answers(cities, {"state_name0": "texas"}) == [(("austin",), ("waco",))]
    assert model._answers(cities)
    assert not model._answers((*["SELECT", "CITY_NAME", "FROM", "CITY", "WHERE", "CITY_NAME", "="], '"nowhere"'))
    assert not model._answers(("SELECT", "X"))
    assert filled('x = "a0" AND y = "b"', {"a0": 'say "hi"'}) == 'x = "say ""hi""" AND y = "b"'


def test_scores_count_answers_and_it_comes_back_from_disk(file: Path, tmp_path: Path) -> None:
    model = Seq2SQL.from_data(PAIRS, SqlConfig(database=str(file), **SMALL), seed=2)
    scores = model.evaluate(PAIRS)
    assert scores["metric"] == "answer" and scores["score"] >= scores["exact match"]
    model.save(tmp_path / "m")
    loaded: Any = tw.load(tmp_path / "m")
    assert loaded.predict("how many rivers")[0].value == model.predict("how many rivers")[0].value
    file.unlink()
    moved: Any = tw.load(tmp_path / "m")
    assert moved.database is None  # it still writes queries
    assert moved.predict("how many rivers")[0].value.endswith(";")
    with pytest.raises(TrellisworkError, match="got no such file"):
        moved.answers(("SELECT",))


def test_a_database_is_needed(tmp_path: Path) -> None:
    with pytest.raises(TrellisworkError, match="add --database FILE"):
        Seq2SQL.from_data(PAIRS)
    with pytest.raises(TrellisworkError, match="got no such file"):
        Seq2SQL.from_data(PAIRS, SqlConfig(database=str(tmp_path / "none.sqlite")))


def mean_reward(model: Seq2SQL, pair: Sentence, n: int = 40) -> float:
    torch.manual_seed(5)
    encoded = model.eval().encode([pair], with_tags=True)[0]
    with torch.no_grad():
        drawn = model.drawn([encoded.source], n)
    rewards = [model._reward(query, encoded) for query in drawn.decisions[0].tolist()]
    assert set(rewards) <= {-2.0, -1.0, 1.0}
    return sum(rewards) / n


def test_learning_by_reward_raises_the_expected_reward(file: Path) -> None:
    """Not always by the query that was given: others have the same answer."""
    model = Seq2SQL.from_data(PAIRS, SqlConfig(database=str(file), reward_epochs=1, n_samples=8, **SMALL), seed=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    found = []
    for epoch, data, steps in ((1, PAIRS, 40), (2, PAIRS[1:2], 12)):  # by likelihood, then by reward
        model.begin_epoch(epoch, 2)
        assert model.by_reward == (epoch == 2)
        torch.manual_seed(0)
        for _ in range(steps):
            optimizer.zero_grad()
            model.train().loss(data).backward()
            optimizer.step()
        found.append(mean_reward(model, PAIRS[1]))
    assert found[1] > found[0] + 0.1


def test_drawn_queries_have_the_probabilities_of_what_may_be_written(file: Path) -> None:
    model = Seq2SQL.from_data(PAIRS, SqlConfig(database=str(file), **SMALL), seed=1).eval()
    drawn = model.drawn([torch.tensor([1, 2])], 3)
    assert bool((drawn.scores <= 0).all()) and bool(drawn.finished.all())
    for query in drawn.decisions[0].tolist():
        symbols = [model.target[i] for i in query if i >= 0][:-1]
        assert accepts(" ".join(symbols))


def test_evaluate_survives_questions_and_a_database_of_strangers(file: Path, tmp_path: Path) -> None:
    """Gold queries are executed too; with some builds of SQLite, the second calls the address that the first names."""
    Seq2SQL.from_data(PAIRS, SqlConfig(database=str(file), seconds=0.2, **SMALL), seed=2).save(tmp_path / "m")
    with sqlite3.connect(file) as made:
        made.execute("CREATE VIRTUAL TABLE words USING fts4(w)")
        made.execute("PRAGMA writable_schema = ON")  # a name like those of SQLite's own tables
        renamed = "name = 'sqlite_words', tbl_name = 'sqlite_words', sql = replace(sql, 'words', 'sqlite_words')"
        made.execute(f"UPDATE sqlite_master SET {renamed} WHERE name = 'words'")
    pairs = [
        ("biggest city", "SELECT fts3_tokenizer('simple', x'4141414141414141') ;"),
        ("city", "SELECT * FROM sqlite_words ;"),
        ("how many rivers", "SELECT printf('%.*c', 2000000000, 'x') ;"),
        ("rivers", "SELECT RIVERalias0.RIVER_NAME FROM RIVER AS RIVERalias0 ;"),
    ]
    gold = tmp_path / "gold.tsv"
    gold.write_text("".join(f"{question}\t{query}\n" for question, query in pairs), encoding="utf-8")
    command = [sys.executable, "-m", "trelliswork", "evaluate", str(tmp_path / "m"), str(gold)]
    evaluated = subprocess.run(command, capture_output=True, text=True, check=False)
    assert evaluated.returncode == 0, (evaluated.returncode, evaluated.stderr)
    assert "answer" in evaluated.stdout
    with sqlite3.connect(file) as made:
        made.execute("CREATE TABLE cafe (x)")
    file.write_bytes(file.read_bytes().replace(b"cafe", b"caf\xe9"))
    evaluated = subprocess.run(command, capture_output=True, text=True, check=False)
    assert evaluated.returncode == 2 and "expected names in UTF-8, got b'caf" in evaluated.stderr
    assert "Traceback" not in evaluated.stderr
