"""Clauses as trees and back: the same clause, up to names of variables and order of conjuncts."""

from __future__ import annotations

import random

import pytest

from tests.terms.test_clauses import by_enumeration, drawn
from trelliswork.terms.brackets import Nested
from trelliswork.terms.clauses import clause_text, variables
from trelliswork.terms.nesting import flat_clause, is_mark, nested_clause


def symbols_of(clause: Nested) -> list[str]:
    return [clause] if isinstance(clause, str) else [symbol for part in clause for symbol in symbols_of(part)]


def test_there_and_back_is_the_same_clause() -> None:
    rng, n_out_of_scope = random.Random(0), 0
    for _ in range(400):
        clause: Nested = ["&", "A", drawn(rng)]
        tree = nested_clause(clause)
        assert not list(variables(tree))
        assert by_enumeration(flat_clause(tree)) == by_enumeration(clause)
        n_out_of_scope += any(symbol.startswith("=") for symbol in symbols_of(tree))
    assert n_out_of_scope > 20  # such references are tried, too


def test_a_conjunct_stands_where_its_variable_is_new() -> None:
    clause: Nested = ["&", "X", ["&", ["state", "X"], ["const", "Y", "nile"], ["crosses", "Y", "X"]]]
    assert clause_text(nested_clause(clause)) == "(& (? (& (state ^0) (crosses (? (const ^0 nile)) ^1))))"
    assert clause_text(flat_clause(nested_clause(clause))) == "(& A (& (state A) (crosses B A) (const B nile)))"


def test_a_conjunction_inside_keeps_its_conjuncts() -> None:
    clause: Nested = ["&", "X", ["\\+", ["&", ["p", "X", "Y"], ["q", "Y"]]], ["q", "X"]]
    assert clause_text(nested_clause(clause)) == "(& (? (\\+ (& (p ^0 (? (q ^0))))) (q ^0)))"


def test_variables_of_a_term_are_in_scope_behind_them() -> None:
    clause: Nested = ["most", "X", "Y", ["&", ["p", "X", "Y"], ["q", "Y"]]]
    assert clause_text(nested_clause(clause)) == "(most ? ? (& (p ^1 ^0) (q ^0)))"


@pytest.mark.parametrize(
    ("tree", "clause"),
    [
        (["p", "^0"], "(p A)"),  # nothing is in scope
        (["p", "=3"], "(p A)"),
        (["p", "?", "^7"], "(p A A)"),  # fewer are
        (["p", "A", "?"], "(p A B)"),  # a name that is taken
        ("?", "A"),
        ([], "()"),
    ],
)
def test_any_tree_is_some_clause(tree: Nested, clause: str) -> None:
    assert clause_text(flat_clause(tree)) == clause


def test_marks() -> None:
    assert [symbol for symbol in ("?", "^0", "=12", "^", "=", "^x", "A", "??") if is_mark(symbol)] == ["?", "^0", "=12"]
