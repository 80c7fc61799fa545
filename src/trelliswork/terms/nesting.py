"""Clauses as trees: each conjunct stands where the variable that it is about is new, and variables need no names.

>>> clause = ["&", "A", ["&", ["_river", "A"], ["_loc", "A", "B"], ["_const", "B", ["_stateid", "texas"]]]]
>>> nested_clause(clause)
['&', ['?', ['&', ['_river', '^0'], ['_loc', '^0', ['?', ['_const', '^0', ['_stateid', 'texas']]]]]]]
>>> flat_clause(nested_clause(clause)) == clause
True

A clause is nested lists with the head first, as in `clauses.py`. `?` is a new variable, with the conjuncts of the
innermost conjunction that mention it as its arguments. A variable is in scope in these, and in the rest of the term
that has it; `^0` is the one that came into scope last, `^1` the one before. `=n` is the n-th new one of the clause,
for the few that are mentioned outside of their scope. Conjuncts have no order, and the way back has another one.

Liang, Jordan and Klein (2011), Learning dependency-based compositional semantics, write queries as such trees.
"""

from __future__ import annotations

import re
from itertools import islice

from trelliswork.terms.brackets import Nested
from trelliswork.terms.clauses import UNORDERED, VARIABLE, variable_names, variables

NEW = "?"
SCOPED, NUMBERED = re.compile(r"\^(\d{1,4})"), re.compile(r"=(\d{1,4})")
Scopes = tuple[str, ...]  # the variables in scope, the last one innermost


def nested_clause(clause: Nested) -> Nested:
    """The tree of a clause."""
    return _Nesting().part(clause, (), [])[0]


def flat_clause(tree: Nested) -> Nested:
    """A clause of a tree, with variables A, B, ... in the order in which they are new.

    A reference to a scope that is not there is one to the outermost; without any, it is a new variable.
    """
    return _Flattening(tree).part(tree, (), [])[0]


def is_mark(symbol: str) -> bool:
    """Whether a symbol stands for a variable in trees."""
    return symbol == NEW or bool(SCOPED.fullmatch(symbol) or NUMBERED.fullmatch(symbol))


class _Nesting:
    """The variables that were new so far."""

    def __init__(self) -> None:
        self.known: list[str] = []

    def part(self, part: Nested, scopes: Scopes, pool: list[Nested]) -> tuple[Nested, Scopes]:
        """A part as a tree, and the scopes behind it. `pool` has the conjuncts that wait for their variable."""
        if isinstance(part, str):
            return self._symbol(part, scopes, pool) if VARIABLE.fullmatch(part) else (part, scopes)
        if part and part[0] in UNORDERED:
            return [part[0], *self._conjuncts(part[1:], scopes)], scopes
        found, inner = list[Nested](), scopes
        for each in part:
            tree, inner = self.part(each, inner, pool)
            found.append(tree)
        return found, scopes

    def _symbol(self, name: str, scopes: Scopes, pool: list[Nested]) -> tuple[Nested, Scopes]:
        if name in scopes:
            return f"^{scopes[::-1].index(name)}", scopes
        if name in self.known:
            return f"={self.known.index(name)}", scopes
        self.known.append(name)
        about = [each for each in pool if name in variables(each)]
        pool[:] = [each for each in pool if each not in about]
        scopes, found = (*scopes, name), list[Nested]()
        while about:
            waiting = [*about[1:], *pool]
            found.append(self.part(about[0], scopes, waiting)[0])
            about = [each for each in about[1:] if each in waiting]
            pool[:] = [each for each in pool if each in waiting]
        return ([NEW, *found] if found else NEW), scopes

    def _conjuncts(self, conjuncts: list[Nested], scopes: Scopes) -> list[Nested]:
        """Those that mention a variable in scope come first, so that others are found through it."""
        pool, found = list(conjuncts), list[Nested]()
        while pool:
            first = next((i for i, each in enumerate(pool) if not set(scopes).isdisjoint(variables(each))), 0)
            found.append(self.part(pool.pop(first), scopes, pool)[0])
        return found


class _Flattening:
    """The names of variables that were new so far, none of which is another symbol of the tree."""

    def __init__(self, tree: Nested) -> None:
        taken = frozenset(variables(tree))
        self.names = (name for name in variable_names() if name not in taken)
        self.known: list[str] = []

    def part(self, part: Nested, scopes: Scopes, group: list[Nested]) -> tuple[Nested, Scopes]:
        """A part of the clause, and the scopes behind it; conjuncts about new variables are added to `group`."""
        if isinstance(part, str):
            return self._symbol(part, scopes)
        if part and part[0] in UNORDERED:
            return self._conjunction(part, scopes), scopes
        if part and part[0] == NEW:
            return self._described(part[1:], scopes, group)
        found, inner = list[Nested](), scopes
        for each in part:
            flat, inner = self.part(each, inner, group)
            found.append(flat)
        return found, scopes

    def _symbol(self, symbol: str, scopes: Scopes) -> tuple[Nested, Scopes]:
        if scoped := SCOPED.fullmatch(symbol):
            if scopes:
                return scopes[max(0, len(scopes) - 1 - int(scoped[1]))], scopes
        elif numbered := NUMBERED.fullmatch(symbol):
            if found := list(islice(self.known, int(numbered[1]), int(numbered[1]) + 1)):
                return found[0], scopes
        elif symbol != NEW:
            return symbol, scopes
        self.known.append(next(self.names))
        return self.known[-1], (*scopes, self.known[-1])

    def _described(self, about: list[Nested], scopes: Scopes, group: list[Nested]) -> tuple[Nested, Scopes]:
        name, scopes = self._symbol(NEW, scopes)
        for each in about:
            place = len(group)  # before the conjuncts about the variables that are new in it
            flat, _ = self.part(each, scopes, behind := list[Nested]())
            group[place:] = [flat, *behind]
        return name, scopes

    def _conjunction(self, part: list[Nested], scopes: Scopes) -> Nested:
        found = list[Nested](part[:1])
        for each in part[1:]:
            flat, _ = self.part(each, scopes, behind := list[Nested]())
            found += [flat, *behind]
        return found
