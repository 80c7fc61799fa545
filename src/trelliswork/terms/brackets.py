"""Terms in the bracket notation of GeoQuery and ATIS: ( lambda $0 e ( and ( flight $0 ) ( from $0 denver : ci ) ) ).

`lambda` is followed by a variable, its type and the body; `exists`, `argmax` and the other binders by a variable and
one or more bodies. A name that is not bound is a constant, unless it begins with $.

Zettlemoyer and Collins (2005), Learning to map sentences to logical form.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

from trelliswork.errors import TermError
from trelliswork.terms.term import (
    DEEPEST,
    Abstraction,
    Application,
    Constant,
    Term,
    Variable,
    free_variables,
    fresh_name,
    substitute,
)

BINDERS = frozenset({"argmax", "argmin", "count", "exists", "forall", "max", "min", "sum", "the"})
LAMBDA = "lambda"
_TOKENS = re.compile(r"[()]|[^\s()]+")
Nested: TypeAlias = "str | list[Nested]"


def close_brackets(tokens: Sequence[str]) -> list[str]:
    """Append the closing brackets that are missing at the end of `tokens`.

    >>> " ".join(close_brackets("( flight ( from $0 )".split()))
    '( flight ( from $0 ) )'
    """
    missing = tokens.count("(") - tokens.count(")")
    return [*tokens, *[")"] * max(0, missing)]


def parse_nested(text: str) -> Nested:
    """Parse a text into nested lists, one for each pair of brackets; a text without brackets is its only token.

    >>> parse_nested("( from $0 denver : ci )")
    ['from', '$0', 'denver:ci']
    """
    return nest_tokens(_join_types(_TOKENS.findall(text)), text)


def nest_tokens(tokens: Sequence[str], text: str) -> Nested:
    """Parse tokens into nested lists.

    Args:
        tokens: Brackets and names; unlike in `parse_nested`, a colon does not join its neighbours.
        text: Quoted in error messages.
    """
    waiting: list[list[Nested]] = [[]]  # the lists that are still open, the innermost last
    for token in tokens:
        if token == "(":
            waiting.append([])
            if len(waiting) > DEEPEST:
                raise TermError(f"expected at most {DEEPEST} levels of brackets; got more in {text[:60]!r}")
        elif token != ")":
            waiting[-1].append(token)
        elif len(waiting) == 1:
            raise TermError(
                f"expected an opening bracket for every ')'; got one ')' too many in {text[:60]!r}; remove it"
            )
        else:
            inner = waiting.pop()
            waiting[-1].append(inner)
    if len(waiting) > 1:
        raise TermError(f"expected every bracket to be closed; got {len(waiting) - 1} open at the end of {text[:60]!r}")
    if len(waiting[0]) != 1:
        raise TermError(f"expected one term; got {len(waiting[0])} in {text[:60]!r}; enclose them in brackets")
    return waiting[0][0]


def _join_types(tokens: Sequence[str]) -> list[str]:
    """Join each constant with its type into one token: denver : ci becomes denver:ci."""
    joined: list[str] = []
    for token in tokens:
        if token not in "()" and joined and (token == ":" or joined[-1].endswith(":")) and joined[-1] not in "()":
            joined[-1] += token
        else:
            joined.append(token)
    return joined


def parse_brackets(text: str) -> Term:
    """Parse a term in bracket notation.

    >>> print(parse_brackets("( lambda $0 e ( and ( flight $0 ) ( from $0 denver : ci ) ) )"))
    λ$0:e.(and (flight $0) (from $0 denver:ci))
    """
    return _term(parse_nested(text), frozenset())


def _term(part: Nested, bound: frozenset[str]) -> Term:
    if isinstance(part, str):
        return Variable(part) if part in bound or part.startswith("$") else Constant(part)
    if not part:
        raise TermError("expected a term in each pair of brackets; got ( ); fill or remove it")
    head, *rest = part
    if head == LAMBDA:
        return _abstraction(rest, bound)
    if isinstance(head, str) and head in BINDERS and len(rest) > 1 and isinstance(rest[0], str):
        name = rest[0]
        # Every body becomes an abstraction over the same variable: (argmax $0 (f $0) (g $0)) has two.
        bodies = [Abstraction(name, _term(body, bound | {name})) for body in rest[1:]]
        return Application(Constant(head), tuple(bodies))
    function, *arguments = [_term(element, bound) for element in part]
    return Application(function, tuple(arguments)) if arguments else Application(function, (NO_ARGUMENT,))


NO_ARGUMENT = Constant("( )")  # marks a function that stands alone in brackets, so that it is printed as it was read


def _abstraction(rest: Sequence[Nested], bound: frozenset[str]) -> Term:
    match rest:
        case [str(name), str(kind), body]:
            return Abstraction(name, _term(body, bound | {name}), kind)
    raise TermError(f"expected ( lambda variable type body ); got {len(rest)} elements after lambda, not 3")


def format_brackets(term: Term, *, apart: bool = True) -> str:
    """Write a term in bracket notation, the inverse of `parse_brackets`; `apart` sets spaces around colons.

    >>> format_brackets(parse_brackets("(argmax $0 (flight $0) (fare $0))"))
    '( argmax $0 ( flight $0 ) ( fare $0 ) )'
    """
    text = _text(term)
    return re.sub(r"(?<=\S):(?=\S)", " : ", text) if apart else text


def _text(term: Term) -> str:
    if isinstance(term, Abstraction):
        if term.type is None:
            raise TermError(f"expected the type of {term.variable} in {term}; got none; add it, as in λx:e.(f x)")
        return f"( {LAMBDA} {term.variable} {term.type} {_text(term.body)} )"
    if not isinstance(term, Application):
        return term.name
    if term.arguments == (NO_ARGUMENT,):
        return f"( {_text(term.function)} )"
    untyped = [part for part in term.arguments if isinstance(part, Abstraction) and part.type is None]
    is_binder = isinstance(term.function, Constant) and term.function.name in BINDERS
    if is_binder and len(untyped) == len(term.arguments):
        variable, bodies = _with_shared_variable(untyped)
        return f"( {' '.join([_text(term.function), variable, *map(_text, bodies)])} )"
    return f"( {' '.join(map(_text, term.parts))} )"


def _with_shared_variable(abstractions: Sequence[Abstraction]) -> tuple[str, list[Term]]:
    """Rename the variables of all abstractions to one, and return its name and their bodies."""
    variable = abstractions[0].variable
    if any(variable in free_variables(abstraction) for abstraction in abstractions):
        taken = frozenset().union(*[free_variables(abstraction) for abstraction in abstractions])
        variable = fresh_name(variable, taken)
    return variable, [substitute(each.body, each.variable, Variable(variable)) for each in abstractions]
