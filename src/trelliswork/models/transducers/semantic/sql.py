"""SQL as a form of targets: queries whose subqueries stand for themselves, and the grammar of what may be written."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from trelliswork.models.transducers.semantic.forms import CLOSE, OPEN, Form, Symbols
from trelliswork.structures.grammar.prefixes import PrefixGrammar

_ALIAS = re.compile(r"(?P<table>[A-Z_]+)alias(?P<number>\d+)(?P<column>\..+)?")
FIELD = "DERIVED_FIELD"  # an alias of a column, not of a table
END_OF_QUERY = ";"


class SqlForm(Form):
    """SQL: aliases are numbered anew in each query and subquery, so that a subquery can be written on its own.

    >>> form = SqlForm()
    >>> query = "SELECT MAX( CITYalias1.POPULATION ) FROM CITY AS CITYalias1 ;"
    >>> " ".join(form.read(query.split()))
    'SELECT MAX ( CITYalias0.POPULATION ) FROM CITY AS CITYalias0'
    """

    name = "sql"

    def read(self, target: Sequence[str]) -> Symbols:
        apart = [part for symbol in target for part in _apart(symbol)]
        if apart[-1:] == [END_OF_QUERY]:
            apart.pop()
        super().read(apart)
        return _renumbered(apart)

    def written(self, symbols: Sequence[str]) -> Symbols:
        written: list[str] = []
        for symbol in symbols:
            if symbol == OPEN and written and written[-1] in AGGREGATES:
                written[-1] += OPEN
            else:
                written.append(symbol)
        return (*written, END_OF_QUERY)


def _apart(symbol: str) -> list[str]:
    """Return a function and its bracket as two symbols."""
    if len(symbol) > 1 and symbol.endswith(OPEN):
        return [symbol[:-1], OPEN]
    return [symbol]


class _Scope(NamedTuple):
    """A query: the one around it, and the aliases that it declares, by their new names."""

    around: int | None
    names: dict[str, str]


def _renumbered(symbols: Sequence[str]) -> Symbols:
    """Number the aliases of each query from 0 by table; none change where a name would hide one from outside."""
    scopes, places = _scopes(symbols)
    counts: defaultdict[tuple[int, str], int] = defaultdict(int)
    for place, symbol in enumerate(symbols):
        alias = _ALIAS.fullmatch(symbol)
        if alias and not alias["column"] and alias["table"] != FIELD and place and symbols[place - 1] == "AS":
            key = (places[place], alias["table"])
            scopes[key[0]].names.setdefault(symbol, f"{alias['table']}alias{counts[key]}")
            counts[key] += 1
    changed: list[str] = []
    for place, symbol in enumerate(symbols):
        name = _in_scope(symbol, places[place], scopes)
        if name is None:
            return tuple(symbols)
        changed.append(name)
    return tuple(changed)


def _scopes(symbols: Sequence[str]) -> tuple[list[_Scope], list[int]]:
    """Return all queries, and the innermost one around each symbol."""
    scopes, path, places = [_Scope(None, {})], [0], list[int]()
    for place, symbol in enumerate(symbols):
        if symbol == OPEN:
            places.append(path[-1])
            if symbols[place + 1 : place + 2] == ["SELECT"]:
                scopes.append(_Scope(path[-1], {}))
                path.append(len(scopes) - 1)
            else:
                path.append(path[-1])
            continue
        if symbol == CLOSE and len(path) > 1:
            path.pop()
        places.append(path[-1])
    return scopes, places


def _in_scope(symbol: str, scope: int | None, scopes: Sequence[_Scope]) -> str | None:
    """Return the new name of a symbol; None if another table has that name there."""
    match = _ALIAS.fullmatch(symbol)
    if not match or match["table"] == FIELD:
        return symbol
    alias = f"{match['table']}alias{match['number']}"
    hidden: set[str] = set()
    while scope is not None:
        names = scopes[scope].names
        if alias in names:
            return None if names[alias] in hidden else names[alias] + (match["column"] or "")
        hidden |= set(names.values())
        scope = scopes[scope].around
    return None if alias in hidden else symbol


AGGREGATES = ("AVG", "COUNT", "MAX", "MIN", "SUM")
COMPARISONS = ("=", "<", ">", "<=", ">=", "<>", "!=", "LIKE")
OPERATORS = ("+", "-", "*", "/")
_WORDS = """ALL AND AS ASC BETWEEN BY DESC DISTINCT EXISTS FROM GROUP HAVING IN IS JOIN LEFT LIMIT NOT NULL ON OR ORDER
OUTER SELECT WHERE , ( )"""
KEYWORDS = frozenset(_WORDS.split())
GRAMMAR = """
Query -> Head | Head Rest
Head -> 'SELECT' Items 'FROM' Sources | 'SELECT' 'DISTINCT' Items 'FROM' Sources
Rest -> Where | Where AfterWhere | AfterWhere
Where -> 'WHERE' Condition
AfterWhere -> Group | Group AfterGroup | AfterGroup
Group -> 'GROUP' 'BY' Items
AfterGroup -> Having | Having AfterHaving | AfterHaving
Having -> 'HAVING' Condition
AfterHaving -> Order | Order Limit | Limit
Order -> 'ORDER' 'BY' Items | 'ORDER' 'BY' Items 'DESC' | 'ORDER' 'BY' Items 'ASC'
Limit -> 'LIMIT' 'number'
Items -> Item | Item ',' Items
Item -> Expression | Expression 'AS' 'alias'
Expression -> Term | Term 'operator' Expression
Term -> 'column' | 'number' | 'value' | Aggregate | '(' Query ')' | '(' Expression ')'
Aggregate -> 'aggregate' '(' Plain ')' | 'aggregate' '(' 'DISTINCT' Plain ')'
Plain -> PlainTerm | PlainTerm 'operator' Plain
PlainTerm -> 'column' | 'number' | 'value'
Sources -> Source | Source ',' Sources | Source Joins
Source -> 'table' | 'table' 'AS' 'alias' | '(' Query ')' 'AS' 'alias'
Joins -> Join | Join Joins
Join -> 'JOIN' Source 'ON' Condition | 'LEFT' 'OUTER' 'JOIN' Source 'ON' Condition | 'LEFT' 'JOIN' Source 'ON' Condition
Condition -> Test | Test 'AND' Condition | Test 'OR' Condition
Test -> Expression 'comparison' Expression | Expression 'comparison' 'ALL' '(' Query ')' | '(' Condition ')'
Test -> Expression 'IN' '(' Query ')' | Expression 'NOT' 'IN' '(' Query ')' | 'EXISTS' '(' Query ')' | 'NOT' Test
Test -> Expression 'IS' 'NULL' | Expression 'IS' 'NOT' 'NULL' | Expression 'BETWEEN' Term 'AND' Term
"""


def classes_of(symbols: Iterable[str], schema: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the class of each symbol in the grammar, given the tables and columns; others cannot be written."""
    columns = {column for each in schema.values() for column in each}
    classes = {symbol: _class_of(symbol, schema, columns) for symbol in symbols}
    return {symbol: name for symbol, name in classes.items() if name is not None}


def _class_of(symbol: str, schema: Mapping[str, Sequence[str]], columns: set[str]) -> str | None:
    if symbol in KEYWORDS:
        return symbol
    for names, name in ((AGGREGATES, "aggregate"), (COMPARISONS, "comparison"), (OPERATORS, "operator")):
        if symbol in names:
            return name
    if symbol.upper() in schema:
        return "table"
    if re.fullmatch(r"\d+(\.\d+)?", symbol):
        return "number"
    if symbol[:1] in "\"'":
        return "value"
    alias = _ALIAS.fullmatch(symbol)
    if alias and not alias["column"]:
        return "alias"
    return "column" if _is_column(symbol, alias, schema, columns) else None


def _is_column(
    symbol: str, alias: re.Match[str] | None, schema: Mapping[str, Sequence[str]], columns: set[str]
) -> bool:
    """Return whether the schema has a column; columns of derived tables are known to the query alone."""
    table, _, column = symbol.rpartition(".")
    if alias:
        known = schema.get(alias["table"])
        return known is None or column.upper() in known
    return column.upper() in (schema.get(table.upper(), ()) if table else columns)


def sql_grammar(classes: Mapping[str, str]) -> PrefixGrammar:
    """Return the queries that can be written with some symbols."""
    return PrefixGrammar(GRAMMAR, words=set(classes.values()))
