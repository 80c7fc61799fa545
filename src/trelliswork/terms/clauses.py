"""A canonical form of clauses: equal for clauses that differ only in variable names or the order of conjuncts.

>>> clause_text(canonical_clause(["&", "A", ["&", ["_loc", "A", "C"], ["_city", "A"]]]))
'(& A (& (_city A) (_loc A B)))'

A clause is nested lists with the head first, as in Prolog; variables begin with a capital letter and have the whole
clause as their scope. Conjuncts are sorted without the names of variables, which are told apart by where they occur
(colour refinement, as for graph isomorphism). Variables that it cannot distinguish are taken in the given order; they
are nearly always symmetric, and then any order gives the same clause.

Weisfeiler and Leman (1968), The reduction of a graph to canonical form and the algebra which appears therein.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import count
from string import ascii_uppercase

from trelliswork.terms.brackets import Nested

UNORDERED = frozenset({"&", "\\+"})  # conjunction, and negation of a conjunction
VARIABLE = re.compile(r"[A-Z]\w*")


def canonical_clause(clause: Nested) -> Nested:
    """Sort conjuncts, then name variables A, B, ... from the left."""
    colours = dict.fromkeys(variables(clause), 0)
    while True:
        colours = _refine(clause, colours)
        classes = list(colours.values())
        tied = [colour for colour in classes if classes.count(colour) > 1]
        if not tied:
            break
        first = classes.index(min(tied))
        # Break the tie: one of the variables gets a colour of its own, and refinement goes on from there.
        colours = {name: 2 * colour - (i == first) for i, (name, colour) in enumerate(colours.items())}
    ordered = _sort_conjuncts(clause, {name: f"#{colour}" for name, colour in colours.items()})
    return _rename(ordered, dict(zip(dict.fromkeys(variables(ordered)), variable_names(), strict=False)))


def variables(clause: Nested) -> Iterator[str]:
    """Yield the variables from left to right, once for each occurrence."""
    if isinstance(clause, str):
        if VARIABLE.fullmatch(clause):
            yield clause
        return
    for part in clause:
        yield from variables(part)


def clause_text(clause: Nested) -> str:
    """Write a clause as text."""
    return clause if isinstance(clause, str) else f"({' '.join(map(clause_text, clause))})"


def _refine(clause: Nested, colours: Mapping[str, int]) -> dict[str, int]:
    """Refine colours until two variables share one only if they occur in the same places, next to the same colours."""
    for _ in colours:
        labels = {name: f"#{colour}" for name, colour in colours.items()}
        places = {name: (colour, _places(clause, labels | {name: "#"})) for name, colour in colours.items()}
        numbers = {place: i for i, place in enumerate(sorted(set(places.values())))}
        refined = {name: numbers[place] for name, place in places.items()}
        if len(numbers) == len(set(colours.values())):
            return refined
        colours = refined
    return dict(colours)


def _places(clause: Nested, labels: Mapping[str, str]) -> str:
    return clause_text(_rename(_sort_conjuncts(clause, labels), labels))


def _sort_conjuncts(clause: Nested, labels: Mapping[str, str]) -> Nested:
    """Sort conjuncts by their text, with labels for variables; a variable among the conjuncts stays in front."""
    if isinstance(clause, str):
        return clause
    parts = [_sort_conjuncts(part, labels) for part in clause]
    if parts and parts[0] in UNORDERED:
        parts[1:] = sorted(parts[1:], key=lambda part: _key(part, labels))
    return parts


def _key(part: Nested, labels: Mapping[str, str]) -> tuple[bool, str]:
    return (False, "") if isinstance(part, str) and part in labels else (True, clause_text(_rename(part, labels)))


def _rename(clause: Nested, names: Mapping[str, str]) -> Nested:
    return names.get(clause, clause) if isinstance(clause, str) else [_rename(part, names) for part in clause]


def variable_names() -> Iterator[str]:
    """Yield A to Z, then A1 to Z1, and so on."""
    for number in count():
        yield from (f"{letter}{number or ''}" for letter in ascii_uppercase)
