"""Simple types such as e, t, i and <e,t>, and inference of the type of a term by unification.

    >>> from trelliswork.terms import parse
    >>> print(infer_type(parse("λp:<e,t>.λx:e.(p x)")))
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
    """A type without parts: e for entities, t for truth values, i for numbers; ?1 is an unknown type."""

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
    """Parse a type; <e,e,t> is short for <e,<e,t>>.

    >>> print(parse_type("<e,e,t>"))
    <e,<e,t>>
    """
    kind, rest = _read(_TOKENS.findall(text), text)
    if rest:
        raise TermError(f"expected one type such as <e,t>; got {text!r}")
    return kind


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
        raise TermError(f"expected a type such as <e,t>, with closed brackets; got {text!r}")
    return arrows(parts[:-1], parts[-1]), rest[1:]


def arrows(arguments: Sequence[Type], result: Type) -> Type:
    """Return the type of a function of several arguments."""
    for argument in reversed(arguments):
        result = Arrow(argument, result)
    return result


def infer_type(term: Term, known: Mapping[str, Type] | None = None) -> Type:
    """Infer the most general type of a term; raise `TermError` if it has none.

    Arguments and results of `and`, `or` and `not` are truth values.

    Args:
        known: Types of constants and free variables by name; the types of others are inferred.

    >>> from trelliswork.terms import parse
    >>> print(infer_type(parse("λx.λy.x")))
    <?0,<?1,?0>>
    """
    unifier = _Unifier(dict(known or {}))
    return unifier.resolve(unifier.type_of(term, {}))


CONNECTIVES = frozenset({"and", "or", "not"})


class _Unifier:
    """Unification: `values` maps unknown types to what is known of them, `names` the names of a term to their types."""

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
            return self.type_of_application(term, bound)
        if not isinstance(term, Constant) and term.name in bound:
            return bound[term.name]
        return self.names.setdefault(term.name, self.unknown())

    def type_of_application(self, term: Application, bound: Mapping[str, Type]) -> Type:
        arguments = [self.type_of(argument, bound) for argument in term.arguments]
        if isinstance(term.function, Constant) and term.function.name in CONNECTIVES:
            for argument in arguments:
                self.unify(argument, TRUTH, term)
            return TRUTH
        result: Type = self.unknown()
        self.unify(self.type_of(term.function, bound), arrows(arguments, result), term)
        return result

    def unify(self, one: Type, other: Type, term: Term) -> None:
        """Make two types equal by binding unknown types; `term` is quoted in errors."""
        one, other = self.value(one), self.value(other)
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
            raise TermError(f"expected types that unify in ({term}); got {self.resolve(one)} and {self.resolve(other)}")

    def bind(self, unknown: Base, value: Type, term: Term) -> None:
        # A type that contains itself would be infinite: (x x) has no simple type.
        if self.occurs(unknown, value):
            raise TermError(f"expected a term with a type; got ({term}), in which a function is its own argument")
        self.values[unknown] = value

    def occurs(self, unknown: Base, kind: Type) -> bool:
        kind = self.value(kind)
        if isinstance(kind, Arrow):
            return self.occurs(unknown, kind.argument) or self.occurs(unknown, kind.result)
        return kind == unknown

    def value(self, kind: Type) -> Type:
        """Follow the bindings of an unknown type to its end."""
        while isinstance(kind, Base) and kind in self.values:
            kind = self.values[kind]
        return kind

    def resolve(self, kind: Type) -> Type:
        """Insert all that is known into a type, and number the unknown types that remain from 0."""
        order: dict[Base, Base] = {}

        def whole(part: Type) -> Type:
            part = self.value(part)
            if isinstance(part, Arrow):
                return Arrow(whole(part.argument), whole(part.result))
            return order.setdefault(part, Base(f"?{len(order)}")) if part.name.startswith("?") else part

        return whole(kind)
