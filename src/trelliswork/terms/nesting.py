"""Clauses as trees without variable names: each conjunct is placed where the variable it is about first occurs.

>>> clause = ["&", "A", ["&", ["_river", "A"], ["_loc", "A", "B"], ["_const", "B", ["_stateid", "texas"]]]]
>>> nested_clause(clause)
['&', ['?', ['&', ['_river', '^0'], ['_loc', '^0', ['?', ['_const', '^0', ['_stateid', 'texas']]]]]]]
>>> flat_clause(nested_clause(clause)) == clause
True

A clause is nested lists with the head first, as in `clauses.py`. `?` is a new variable; its arguments are the conjuncts
of the innermost conjunction that mention it. The variable is in scope in these and in the rest of the term it is in;
`^0` is the variable that came into scope last, `^1` the one before. `=n` is the n-th new variable of the clause, for
the few that are mentioned outside their scope. Conjuncts have no order: flattening may return them in another one.

Liang, Jordan and Klein (2011), Learning dependency-based compositional semantics, write queries as such trees.
"""

from __future__ import annotations

import re
from itertools import islice

from trelliswork.terms.brackets import Nested
from trelliswork.terms.clauses import UNORDERED, VARIABLE, variable_names, variables

NEW = "?"
SCOPED, NUMBERED = re.compile(r"\^(\d{1,4})"), re.compile(r"=(\d{1,4})")
Scopes = tuple[str, ...]  # the variables in scope, the innermost last


def nested_clause(clause: Nested) -> Nested:
    """Return the tree of a clause."""
    return _Nesting().part(clause, (), [])[0]


def flat_clause(tree: Nested) -> Nested:
    """Return the clause of a tree, with variables A, B, ... in the order in which they first occur.

    Every tree has a clause, so that models may write any: a reference beyond the outermost scope refers to the
    outermost, and without a scope it is a new variable.
    """
    return _Flattening(tree).part(tree, (), [])[0]


def is_mark(symbol: str) -> bool:
    """Return True if a symbol stands for a variable in trees."""
    return symbol == NEW or bool(SCOPED.fullmatch(symbol) or NUMBERED.fullmatch(symbol))


class _Nesting:
    """Conversion of one clause into a tree; `known` lists the variables seen so far, in order."""

    def __init__(self) -> None:
        self.known: list[str] = []

    def part(self, part: Nested, scopes: Scopes, pool: list[Nested]) -> tuple[Nested, Scopes]:
        """Return a part as a tree, and the scopes after it; `pool` holds the conjuncts that have no place yet."""
        if isinstance(part, str):
            return self._symbol(part, scopes, pool) if VARIABLE.fullmatch(part) else (part, scopes)
        if part and part[0] in UNORDERED:
            return [part[0], *self._conjuncts(part[1:], scopes)], scopes
        trees, inner = list[Nested](), scopes
        for child in part:
            tree, inner = self.part(child, inner, pool)
            trees.append(tree)
        return trees, scopes

    def _symbol(self, name: str, scopes: Scopes, pool: list[Nested]) -> tuple[Nested, Scopes]:
        if name in scopes:
            return f"^{scopes[::-1].index(name)}", scopes
        if name in self.known:
            return f"={self.known.index(name)}", scopes
        self.known.append(name)
        about = [conjunct for conjunct in pool if name in variables(conjunct)]
        pool[:] = [conjunct for conjunct in pool if conjunct not in about]
        scopes, children = (*scopes, name), list[Nested]()
        while about:
            # The first conjunct may introduce variables of its own, which take theirs out of `waiting`.
            waiting = [*about[1:], *pool]
            children.append(self.part(about[0], scopes, waiting)[0])
            about = [conjunct for conjunct in about[1:] if conjunct in waiting]
            pool[:] = [conjunct for conjunct in pool if conjunct in waiting]
        return ([NEW, *children] if children else NEW), scopes

    def _conjuncts(self, conjuncts: list[Nested], scopes: Scopes) -> list[Nested]:
        """Return the trees of a conjunction, beginning with conjuncts that mention a variable in scope."""
        pool, trees = list(conjuncts), list[Nested]()
        while pool:
            first = next((i for i, part in enumerate(pool) if not set(scopes).isdisjoint(variables(part))), 0)
            trees.append(self.part(pool.pop(first), scopes, pool)[0])
        return trees


class _Flattening:
    """Conversion of one tree into a clause; variables get names that occur nowhere else in the tree."""

    def __init__(self, tree: Nested) -> None:
        taken = frozenset(variables(tree))
        self.names = (name for name in variable_names() if name not in taken)
        self.known: list[str] = []

    def part(self, part: Nested, scopes: Scopes, group: list[Nested]) -> tuple[Nested, Scopes]:
        """Return a part of the clause, and the scopes after it; conjuncts about new variables are added to `group`."""
        if isinstance(part, str):
            return self._symbol(part, scopes)
        if part and part[0] in UNORDERED:
            return self._conjunction(part, scopes), scopes
        if part and part[0] == NEW:
            return self._describe(part[1:], scopes, group)
        flat_parts, inner = list[Nested](), scopes
        for child in part:
            flat, inner = self.part(child, inner, group)
            flat_parts.append(flat)
        return flat_parts, scopes

    def _symbol(self, symbol: str, scopes: Scopes) -> tuple[Nested, Scopes]:
        if scoped := SCOPED.fullmatch(symbol):
            if scopes:
                return scopes[max(0, len(scopes) - 1 - int(scoped[1]))], scopes
        elif numbered := NUMBERED.fullmatch(symbol):
            if names := list(islice(self.known, int(numbered[1]), int(numbered[1]) + 1)):
                return names[0], scopes
        elif symbol != NEW:
            return symbol, scopes
        self.known.append(next(self.names))
        return self.known[-1], (*scopes, self.known[-1])

    def _describe(self, about: list[Nested], scopes: Scopes, group: list[Nested]) -> tuple[Nested, Scopes]:
        name, scopes = self._symbol(NEW, scopes)
        for conjunct in about:
            place = len(group)
            flat, _ = self.part(conjunct, scopes, nested := list[Nested]())
            # A conjunct comes before those about variables that are new in it.
            group[place:] = [flat, *nested]
        return name, scopes

    def _conjunction(self, part: list[Nested], scopes: Scopes) -> Nested:
        conjunction = list[Nested](part[:1])
        for conjunct in part[1:]:
            flat, _ = self.part(conjunct, scopes, nested := list[Nested]())
            conjunction += [flat, *nested]
        return conjunction
