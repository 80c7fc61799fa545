"""Clauses in one form, against all orders of conjuncts and all names of variables."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

from trelliswork.terms.brackets import Nested
from trelliswork.terms.clauses import canonical_clause, clause_text, variables


def orders(clause: Nested) -> Iterator[Nested]:
    """Every order of the conjuncts, a variable staying before them."""
    if isinstance(clause, str):
        yield clause
        return
    for parts in itertools.product(*(list(orders(part)) for part in clause)):
        if parts[0] not in ("&", "\\+"):
            yield list(parts)
            continue
        first = [part for part in parts[1:] if isinstance(part, str)]
        rest = [part for part in parts[1:] if not isinstance(part, str)]
        for each in itertools.permutations(rest):
            yield [parts[0], *first, *each]


def by_enumeration(clause: Nested) -> str:
    """The least text of all orders, variables numbered as they come."""
    texts = []
    for each in orders(clause):
        numbers = {name: str(i) for i, name in enumerate(dict.fromkeys(variables(each)))}
        texts.append(clause_text(_named(each, numbers)))
    return min(texts)


def _named(clause: Nested, names: dict[str, str]) -> Nested:
    return names.get(clause, clause) if isinstance(clause, str) else [_named(part, names) for part in clause]


def drawn(rng: random.Random, depth: int = 2) -> Nested:
    """A conjunction of few different predicates over few variables, so that many are alike."""
    goals: list[Nested] = []
    for _ in range(rng.randint(1, 3)):
        if depth and rng.random() < 0.4:
            head = rng.choice(["\\+", "most"])
            goals.append([head, drawn(rng, depth - 1)] if head == "\\+" else [head, rng.choice("ABCD"), drawn(rng, 0)])
        else:
            goals.append([rng.choice("pq"), *rng.choices("ABCD", k=rng.randint(1, 2))])
    return ["&", *goals]


def test_clauses_are_one_exactly_if_some_order_and_some_names_make_them_equal() -> None:
    rng = random.Random(0)
    clauses: list[Nested] = [["&", "A", drawn(rng)] for _ in range(150)]
    clauses += [_named(rng.choice(list(orders(each))), dict(zip("ABCD", "DABC", strict=True))) for each in clauses]
    forms, expected = {}, {}
    for clause in clauses:
        forms.setdefault(clause_text(canonical_clause(clause)), set()).add(by_enumeration(clause))
        expected.setdefault(by_enumeration(clause), set()).add(clause_text(canonical_clause(clause)))
    assert len(expected) > 100
    assert all(len(each) == 1 for each in forms.values())
    assert all(len(each) == 1 for each in expected.values())


def test_the_form_is_one_of_the_orders_and_stays_as_it_is() -> None:
    rng = random.Random(1)
    for _ in range(50):
        clause = ["&", "A", drawn(rng)]
        form = canonical_clause(clause)
        assert by_enumeration(form) == by_enumeration(clause)
        assert canonical_clause(form) == form


def test_variables_that_nothing_tells_apart_are_any() -> None:
    assert clause_text(canonical_clause(["&", ["p", "X"], ["p", "Y"]])) == "(& (p A) (p B))"
    assert clause_text(canonical_clause(["&", ["p", "X", "Y"], ["p", "Y", "X"]])) == "(& (p A B) (p B A))"


def test_more_than_26_variables_have_numbers() -> None:
    clause: Nested = ["&", *[["p", f"V{i}"] for i in range(28)]]
    assert clause_text(canonical_clause(clause)).endswith("(p Z) (p A1) (p B1))")
