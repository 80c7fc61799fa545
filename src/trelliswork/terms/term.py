"""Terms of the lambda calculus with constants: variables, constants, abstractions, applications, and substitution.

    >>> from trelliswork.terms import parse, substitute, Variable
    >>> print(substitute(parse("λy.(x y)"), "x", Variable("y")))
    λy'.(y y')

Church (1936), An unsolvable problem of elementary number theory; Barendregt (1984), The lambda calculus: its syntax and
semantics.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from trelliswork.errors import TermError

DEEPEST = 200  # levels of a term: the functions below recurse, and Python's stack is limited


@dataclass(frozen=True)
class Variable:
    """A name that an abstraction can bind."""

    name: str
    depth = 1

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Constant:
    """A name that is never bound: a predicate, an entity, a number, `and`."""

    name: str
    depth = 1

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Abstraction:
    """λ variable. body.

    Attributes:
        type: Type of the variable as text, such as e, t or <e,t>; None if not given.
        depth: Number of levels of the term.
    """

    variable: str
    body: Term
    type: str | None = None
    depth: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "depth", _check_depth(self.body.depth + 1))

    def __str__(self) -> str:
        kind = "" if self.type is None else f":{self.type}"
        body = str(self.body)
        plain = isinstance(self.body, Variable | Constant | Abstraction)
        return f"λ{self.variable}{kind}.{body if plain else f'({body})'}"


@dataclass(frozen=True)
class Application:
    """A function applied to one or more arguments; ((f a) b) and (f a b) are equal."""

    function: Term
    arguments: tuple[Term, ...]
    depth: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.arguments:
            raise TermError(f"expected at least one argument of ({self.function}); got none; write {self.function}")
        # The dataclass is frozen: its fields can only be set through `object`.
        if isinstance(self.function, Application):
            object.__setattr__(self, "arguments", (*self.function.arguments, *self.arguments))
            object.__setattr__(self, "function", self.function.function)
        object.__setattr__(self, "depth", _check_depth(1 + max(part.depth for part in self.parts)))

    @property
    def parts(self) -> tuple[Term, ...]:
        """Return the function, then the arguments."""
        return (self.function, *self.arguments)

    def __str__(self) -> str:
        return " ".join(
            f"({part})" if isinstance(part, Application | Abstraction) else str(part) for part in self.parts
        )


Term: TypeAlias = Variable | Constant | Abstraction | Application


def _check_depth(depth: int) -> int:
    if depth > DEEPEST:
        raise TermError(f"expected a term of at most {DEEPEST} levels; got a deeper one; check the brackets")
    return depth


def free_variables(term: Term) -> frozenset[str]:
    """Return the names of the variables that no abstraction binds.

    >>> from trelliswork.terms import parse
    >>> sorted(free_variables(parse("λx.(x y)")))
    ['y']
    """
    match term:
        case Variable(name):
            return frozenset({name})
        case Abstraction(variable, body):
            return free_variables(body) - {variable}
        case Application():
            return frozenset().union(*[free_variables(part) for part in term.parts])
    return frozenset()


def fresh_name(name: str, taken: frozenset[str]) -> str:
    """Append primes to `name` until it is not in `taken`."""
    while name in taken:
        name += "'"
    return name


def substitute(term: Term, name: str, value: Term) -> Term:
    """Return term[name := value]: replace the free variable `name` by a term, without capturing variables.

    A bound variable with the name of a free variable of `value` is renamed first.

    >>> from trelliswork.terms import parse
    >>> print(substitute(parse("λy.(x y)"), "x", Variable("y")))
    λy'.(y y')

    Args:
        term: the term to rewrite, which stays as it is.
        name: the free variable to replace.
        value: what stands in its place.

    Returns:
        The new term.
    """
    # [S2, beta-reduction]
    return _with(term, {name: value})


def _with(term: Term, values: Mapping[str, Term]) -> Term:
    match term:
        case Variable(name):
            return values.get(name, term)
        case Application():
            function, *arguments = [_with(part, values) for part in term.parts]
            return Application(function, tuple(arguments))
        case Abstraction(variable, body, kind):
            return _inside(variable, body, kind, values)
    return term


def _inside(variable: str, body: Term, kind: str | None, values: Mapping[str, Term]) -> Term:
    """Substitute values in an abstraction, renaming its variable if it would capture one of theirs."""
    free = free_variables(body) - {variable}
    used = {name: value for name, value in values.items() if name in free}
    if not used:
        return Abstraction(variable, body, kind)
    inserted = frozenset().union(*[free_variables(value) for value in used.values()])
    if variable in inserted:
        new_name = fresh_name(variable, inserted | free)
        return Abstraction(new_name, _with(body, {**used, variable: Variable(new_name)}), kind)
    return Abstraction(variable, _with(body, used), kind)


def rename_variable(term: Abstraction, name: str) -> Abstraction:
    """Rename the variable of an abstraction (α-conversion); `name` must not be free in it, or it would be captured.

    >>> from trelliswork.terms import parse
    >>> print(rename_variable(parse("λx.(x y)"), "z"))
    λz.(z y)
    """  # [S2, alpha-conversion]
    if name in free_variables(term):
        raise TermError(f"expected a name that is not free in {term}; got {name!r}, which would be captured")
    return Abstraction(name, substitute(term.body, term.variable, Variable(name)), term.type)


def alpha_equivalent(one: Term, other: Term) -> bool:
    """Return True if two terms differ only in the names of bound variables; types of variables must be equal.

    >>> from trelliswork.terms import parse
    >>> alpha_equivalent(parse("λx.(x y)"), parse("λz.(z y)")), alpha_equivalent(parse("λx.(x y)"), parse("λy.(y y)"))
    (True, False)
    """  # [S2, alpha-conversion]
    return _same(one, other, {}, {}, 0)


def _same(one: Term, other: Term, left: Mapping[str, int], right: Mapping[str, int], level: int) -> bool:
    """Compare two terms below abstractions; `left` and `right` map their bound variables to levels."""
    match one, other:
        case Variable(a), Variable(b):
            return left.get(a, a) == right.get(b, b)
        case Abstraction(a, body, kind), Abstraction(b, other_body, other_kind):
            inner = ({**left, a: level}, {**right, b: level})
            return kind == other_kind and _same(body, other_body, *inner, level + 1)
        case Application(), Application():
            pairs = list(zip(one.parts, other.parts, strict=False))
            return len(one.parts) == len(other.parts) and all(_same(a, b, left, right, level) for a, b in pairs)
    return one == other


def subterms(term: Term) -> Iterator[Term]:
    """Yield the term and everything below it, from the top down and from left to right."""
    yield term
    if isinstance(term, Abstraction):
        yield from subterms(term.body)
    elif isinstance(term, Application):
        for part in term.parts:
            yield from subterms(part)
