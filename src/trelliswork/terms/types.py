"""Simple types: e, t, i, <e,t>, and the type of a term, inferred by unification.

    >>> from trelliswork.terms import parse
    >>> print(inferred(parse("λp:<e,t>.λx:e.(p x)")))
    <<e,t>,<e,t>>

Church (1940), A formulation of the simple theory of types; Hindley (1969), The principal type-scheme of an object in
combinatory logic; Robinson (1965), A machine-oriented logic based on the resolution principle.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from trelliswork.errors import TermError
from trelliswork.terms.term import Abstraction, Application, Constant, Term

_TOKENS = re.compile(r"[<>,]|[^\s<>,]+")


@dataclass(frozen=True)
class Base:
    """A type without parts: e for entities, t for truth values, i for numbers; ?1 is one that is not known."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Arrow:
    """The type of functions from one type to another."""

    argument: Type
    result: Type

    def __str__(self) -> str:
        return f"<{self.argument},{self.result}>"


Type: TypeAlias = Base | Arrow
TRUTH = Base("t")


def parse_type(text: str) -> Type:
    """The type of a text; <e,e,t> is <e,<e,t>>.

    >>> print(parse_type("<e,e,t>"))
    <e,<e,t>>
    """
    found, rest = _read(_TOKENS.findall(text), text)
    if rest:
        raise TermError(f"expected one type such as <e,t>; got {text!r}")
    return found


def _read(tokens: Sequence[str], text: str) -> tuple[Type, Sequence[str]]:
    if not tokens or tokens[0] in (">", ","):
        raise TermError(f"expected a type such as e, t or <e,t>; got {text!r}")
    if tokens[0] != "<":
        return Base(tokens[0]), tokens[1:]
    parts, rest = [], tokens
    while rest and rest[0] in ("<", ","):
        part, rest = _read(rest[1:], text)
        parts.append(part)
    if not rest or rest[0] != ">" or len(parts) < 2:
        raise TermError(f"expected a type such as <e,t>, in brackets that close; got {text!r}")
    return arrows(parts[:-1], parts[-1]), rest[1:]


def arrows(arguments: Sequence[Type], result: Type) -> Type:
    """The type of a function of several arguments."""
    for argument in reversed(arguments):
        result = Arrow(argument, result)
    return result


def inferred(term: Term, known: Mapping[str, Type] | None = None) -> Type:
    """The most general type of a term; `known` has the types of constants and free variables, others are inferred.

    Arguments of `and`, `or` and `not` are truth values, as is what they make. A term without a type is an error.

    >>> from trelliswork.terms import parse
    >>> print(inferred(parse("λx.λy.x")))
    <?0,<?1,?0>>
    """
    unifier = _Unifier(dict(known or {}))
    return unifier.shown(unifier.type_of(term, {}))


CONNECTIVES = frozenset({"and", "or", "not"})


class _Unifier:
    """Types that are not known yet, and what has been found out about them."""

    def __init__(self, names: dict[str, Type]):
        self.names, self.values, self.n = names, dict[Base, Type](), 0

    def unknown(self) -> Base:
        self.n += 1
        return Base(f"?{self.n}")

    def type_of(self, term: Term, bound: Mapping[str, Type]) -> Type:
        if isinstance(term, Abstraction):
            argument = self.unknown() if term.type is None else parse_type(term.type)
            return Arrow(argument, self.type_of(term.body, {**bound, term.variable: argument}))
        if isinstance(term, Application):
            return self.applied(term, bound)
        if not isinstance(term, Constant) and term.name in bound:
            return bound[term.name]
        return self.names.setdefault(term.name, self.unknown())

    def applied(self, term: Application, bound: Mapping[str, Type]) -> Type:
        arguments = [self.type_of(each, bound) for each in term.arguments]
        if isinstance(term.function, Constant) and term.function.name in CONNECTIVES:
            for argument in arguments:
                self.unify(argument, TRUTH, term)
            return TRUTH
        result: Type = self.unknown()
        self.unify(self.type_of(term.function, bound), arrows(arguments, result), term)
        return result

    def unify(self, one: Type, other: Type, term: Term) -> None:
        one, other = self.found(one), self.found(other)
        if one == other:
            return
        if isinstance(one, Arrow) and isinstance(other, Arrow):
            self.unify(one.argument, other.argument, term)
            self.unify(one.result, other.result, term)
        elif isinstance(one, Base) and one.name.startswith("?"):
            self.bind(one, other, term)
        elif isinstance(other, Base) and other.name.startswith("?"):
            self.bind(other, one, term)
        else:
            raise TermError(f"expected types that fit in ({term}); got {self.shown(one)} and {self.shown(other)}")

    def bind(self, unknown: Base, value: Type, term: Term) -> None:
        if self.occurs(unknown, value):
            raise TermError(f"expected a term with a type; got ({term}), in which a function is its own argument")
        self.values[unknown] = value

    def occurs(self, unknown: Base, kind: Type) -> bool:
        kind = self.found(kind)
        if isinstance(kind, Arrow):
            return self.occurs(unknown, kind.argument) or self.occurs(unknown, kind.result)
        return kind == unknown

    def found(self, kind: Type) -> Type:
        while isinstance(kind, Base) and kind in self.values:
            kind = self.values[kind]
        return kind

    def shown(self, kind: Type) -> Type:
        """The type with all that is known, and what is not numbered from 0."""
        order: dict[Base, Base] = {}

        def whole(part: Type) -> Type:
            part = self.found(part)
            if isinstance(part, Arrow):
                return Arrow(whole(part.argument), whole(part.result))
            return order.setdefault(part, Base(f"?{len(order)}")) if part.name.startswith("?") else part

        return whole(kind)
