"""Lambda terms without names: a variable is the number of abstractions between it and its own; free ones keep names.

Substitution shifts indices and never renames, so it shares nothing with `trelliswork.terms`.
"""

from __future__ import annotations

from typing import Any

from trelliswork.terms import Abstraction, Application, Constant, Term, Variable

# ("bound", i), ("free", x), ("constant", c), ("λ", type, body), ("apply", function, argument)
Nameless = tuple[Any, ...]


def nameless(term: Term, bound: tuple[str, ...] = ()) -> Nameless:
    """The term without names of bound variables; the innermost abstraction is the first of `bound`."""
    match term:
        case Variable(name):
            return ("bound", bound.index(name)) if name in bound else ("free", name)
        case Constant(name):
            return ("constant", name)
        case Abstraction(variable, body, kind):
            return ("λ", kind, nameless(body, (variable, *bound)))
        case Application():
            found = nameless(term.function, bound)
            for argument in term.arguments:
                found = ("apply", found, nameless(argument, bound))
            return found


def shifted(term: Nameless, by: int, level: int = 0) -> Nameless:
    """Indices that lead out of the term, moved."""
    if term[0] == "bound":
        return ("bound", term[1] + by) if term[1] >= level else term
    if term[0] == "λ":
        return ("λ", term[1], shifted(term[2], by, level + 1))
    if term[0] == "apply":
        return ("apply", shifted(term[1], by, level), shifted(term[2], by, level))
    return term


def put(term: Nameless, value: Nameless, level: int = 0) -> Nameless:
    """The term with a value for index `level`."""
    if term[0] == "bound":
        return shifted(value, level) if term[1] == level else term
    if term[0] == "λ":
        return ("λ", term[1], put(term[2], value, level + 1))
    if term[0] == "apply":
        return ("apply", put(term[1], value, level), put(term[2], value, level))
    return term


def put_free(term: Nameless, name: str, value: Nameless, level: int = 0) -> Nameless:
    """The term with a value for a free variable."""
    if term == ("free", name):
        return shifted(value, level)
    if term[0] == "λ":
        return ("λ", term[1], put_free(term[2], name, value, level + 1))
    if term[0] == "apply":
        return ("apply", put_free(term[1], name, value, level), put_free(term[2], name, value, level))
    return term


def reduced(term: Nameless) -> Nameless | None:
    """After the leftmost outermost step of β-reduction; None in normal form."""
    if term[0] == "λ":
        body = reduced(term[2])
        return None if body is None else ("λ", term[1], body)
    if term[0] != "apply":
        return None
    _, function, argument = term
    if function[0] == "λ":
        return shifted(put(function[2], shifted(argument, 1)), -1)
    if (found := reduced(function)) is not None:
        return ("apply", found, argument)
    found = reduced(argument)
    return None if found is None else ("apply", function, found)
