"""One form for all clauses that differ in the names of variables and the order of conjuncts alone.

>>> printed(canonical_clause(["&", "A", ["&", ["_loc", "A", "C"], ["_city", "A"]]]))
'(& A (& (_city A) (_loc A B)))'

A clause is nested lists with the head first, as Prolog has it; variables begin with a capital letter and belong to the
whole clause. Conjuncts are sorted without the names of variables: what tells variables apart is where they occur
(colour refinement, as for isomorphic graphs). Variables that this cannot tell apart are taken in the given order; they
are nearly always symmetric, and then any order gives the same clause.

Weisfeiler and Leman (1968), The reduction of a graph to canonical form and the algebra which appears therein.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import count
from string import ascii_uppercase

from trelliswork.terms.brackets import Nested

UNORDERED = frozenset({"&", "\\+"})  # a conjunction, and the negation of one
VARIABLE = re.compile(r"[A-Z]\w*")


def canonical_clause(clause: Nested) -> Nested:
    """Conjuncts sorted, then variables named A, B, ... from the left."""
    colours = dict.fromkeys(variables(clause), 0)
    while True:
        colours = _refined(clause, colours)
        classes = list(colours.values())
        tied = [colour for colour in classes if classes.count(colour) > 1]
        if not tied:
            break
        first = classes.index(min(tied))  # one of them becomes different from the others
        colours = {name: 2 * colour - (i == first) for i, (name, colour) in enumerate(colours.items())}
    ordered = _ordered(clause, {name: f"#{colour}" for name, colour in colours.items()})
    return _renamed(ordered, dict(zip(dict.fromkeys(variables(ordered)), variable_names(), strict=False)))


def variables(clause: Nested) -> Iterator[str]:
    """The variables from the left, as often as they occur."""
    if isinstance(clause, str):
        if VARIABLE.fullmatch(clause):
            yield clause
        return
    for part in clause:
        yield from variables(part)


def printed(clause: Nested) -> str:
    """A clause as text."""
    return clause if isinstance(clause, str) else f"({' '.join(map(printed, clause))})"


def _refined(clause: Nested, colours: Mapping[str, int]) -> dict[str, int]:
    """Numbers of variables that are equal only if they occur in the same places, beside variables that do so."""
    for _ in colours:
        shown = {name: f"#{colour}" for name, colour in colours.items()}
        places = {name: (colour, _places(clause, shown | {name: "#"})) for name, colour in colours.items()}
        numbers = {place: i for i, place in enumerate(sorted(set(places.values())))}
        refined = {name: numbers[place] for name, place in places.items()}
        if len(numbers) == len(set(colours.values())):
            return refined
        colours = refined
    return dict(colours)


def _places(clause: Nested, shown: Mapping[str, str]) -> str:
    return printed(_renamed(_ordered(clause, shown), shown))


def _ordered(clause: Nested, shown: Mapping[str, str]) -> Nested:
    """With sorted conjuncts, given what is shown for each variable; a variable stays before them."""
    if isinstance(clause, str):
        return clause
    parts = [_ordered(part, shown) for part in clause]
    if parts and parts[0] in UNORDERED:
        parts[1:] = sorted(parts[1:], key=lambda part: _key(part, shown))
    return parts


def _key(part: Nested, shown: Mapping[str, str]) -> tuple[bool, str]:
    return (False, "") if isinstance(part, str) and part in shown else (True, printed(_renamed(part, shown)))


def _renamed(clause: Nested, names: Mapping[str, str]) -> Nested:
    return names.get(clause, clause) if isinstance(clause, str) else [_renamed(part, names) for part in clause]


def variable_names() -> Iterator[str]:
    """A to Z, then A1 to Z1, and so on."""
    for number in count():
        yield from (f"{letter}{number or ''}" for letter in ascii_uppercase)
