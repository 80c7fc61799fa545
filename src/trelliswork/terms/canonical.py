"""A canonical form: equal for terms that differ only in the names of bound variables or the order of `and` and `or`.

    >>> from trelliswork.terms import parse_brackets, format_brackets
    >>> format_brackets(canonical(parse_brackets("( lambda x e ( and ( to x denver ) ( flight x ) ) )")))
    '( lambda $0 e ( and ( flight $0 ) ( to $0 denver ) ) )'

The order must not depend on the names of bound variables: for sorting, each variable is replaced by the number of
abstractions between it and the one that binds it.

De Bruijn (1972), Lambda calculus notation with nameless dummies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count

from trelliswork.terms.brackets import BINDERS
from trelliswork.terms.term import Abstraction, Application, Constant, Term, Variable, free_variables

UNORDERED = frozenset({"and", "or"})


def canonical(term: Term) -> Term:
    """Sort the arguments of `and` and `or`, then name bound variables $0, $1, ... from the top down and the left."""
    taken = free_variables(term)
    names = (name for name in (f"${i}" for i in count()) if name not in taken)
    return _name_variables(_sort_arguments(term, ()), {}, names)


def _sort_arguments(term: Term, bound: tuple[str, ...]) -> Term:
    if isinstance(term, Abstraction):
        return Abstraction(term.variable, _sort_arguments(term.body, (*bound, term.variable)), term.type)
    if not isinstance(term, Application):
        return term
    function, *arguments = [_sort_arguments(part, bound) for part in term.parts]
    if isinstance(function, Constant) and function.name in UNORDERED:
        arguments.sort(key=lambda argument: nameless_text(argument, bound))
    return Application(function, tuple(arguments))


def nameless_text(term: Term, bound: tuple[str, ...] = ()) -> str:
    """Write a term without the names of bound variables (de Bruijn indices).

    Args:
        bound: Variables bound around the term, the innermost last.
    """
    if isinstance(term, Variable):
        if term.name in bound:
            return f"#{bound[::-1].index(term.name)}"
        return f"?{term.name}"
    if isinstance(term, Constant):
        return term.name
    if isinstance(term, Abstraction):
        return f"(λ {term.type} {nameless_text(term.body, (*bound, term.variable))})"
    return f"({' '.join(nameless_text(part, bound) for part in term.parts)})"


def _name_variables(term: Term, values: Mapping[str, str], names: Iterator[str]) -> Term:
    if isinstance(term, Variable):
        return Variable(values.get(term.name, term.name))
    if isinstance(term, Abstraction):
        name = next(names)
        return Abstraction(name, _name_variables(term.body, {**values, term.variable: name}, names), term.type)
    if not isinstance(term, Application):
        return term
    if binds_together(term):
        name = next(names)
        bodies = [_name_variables(each.body, {**values, each.variable: name}, names) for each in term.arguments]  # type: ignore[union-attr]
        return Application(term.function, tuple(Abstraction(name, body) for body in bodies))
    function, *arguments = [_name_variables(part, values, names) for part in term.parts]
    return Application(function, tuple(arguments))


def binds_together(term: Application) -> bool:
    """Return True if all arguments share one variable in bracket notation, as those of argmax do."""
    is_binder = isinstance(term.function, Constant) and term.function.name in BINDERS
    return is_binder and all(isinstance(each, Abstraction) and each.type is None for each in term.arguments)
