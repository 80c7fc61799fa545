"""Terms in brackets, as GeoQuery and ATIS have them: ( lambda $0 e ( and ( flight $0 ) ( from $0 denver : ci ) ) ).

`lambda` is followed by a variable, its type and the body; `exists`, `argmax` and the other binders by a variable and
one or several bodies. What nothing binds is a constant, unless it begins with $.

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
    fresh,
    substituted,
)

BINDERS = frozenset({"argmax", "argmin", "count", "exists", "forall", "max", "min", "sum", "the"})
LAMBDA = "lambda"
_TOKENS = re.compile(r"[()]|[^\s()]+")
Nested: TypeAlias = "str | list[Nested]"


def closed(tokens: Sequence[str]) -> list[str]:
    """The tokens with the closing brackets that are missing at their end.

    >>> " ".join(closed("( flight ( from $0 )".split()))
    '( flight ( from $0 ) )'
    """
    missing = tokens.count("(") - tokens.count(")")
    return [*tokens, *[")"] * max(0, missing)]


def nested(text: str) -> Nested:
    """One token, or a bracket as a list; brackets must close.

    >>> nested("( from $0 denver : ci )")
    ['from', '$0', 'denver:ci']
    """
    return nested_tokens(_joined(_TOKENS.findall(text)), text)


def nested_tokens(tokens: Sequence[str], text: str) -> Nested:
    """The same of tokens that are taken as they are; `text` is what errors show."""
    waiting: list[list[Nested]] = [[]]
    for token in tokens:
        if token == "(":
            waiting.append([])
            if len(waiting) > DEEPEST:
                raise TermError(f"expected at most {DEEPEST} levels of brackets; got more in {text[:60]!r}")
        elif token != ")":
            waiting[-1].append(token)
        elif len(waiting) == 1:
            raise TermError(f"expected an opening bracket for each closing one; got one ')' too many in {text[:60]!r}")
        else:
            inner = waiting.pop()
            waiting[-1].append(inner)
    if len(waiting) > 1:
        raise TermError(f"expected every bracket to close; got {len(waiting) - 1} open at the end of {text[:60]!r}")
    if len(waiting[0]) != 1:
        raise TermError(f"expected one term; got {len(waiting[0])} in {text[:60]!r}; put them into brackets")
    return waiting[0][0]


def _joined(tokens: Sequence[str]) -> list[str]:
    """A constant and its type as one token: denver : ci is denver:ci."""
    found: list[str] = []
    for token in tokens:
        if token not in "()" and found and (token == ":" or found[-1].endswith(":")) and found[-1] not in "()":
            found[-1] += token
        else:
            found.append(token)
    return found


def parse_brackets(text: str) -> Term:
    """The term of a text in brackets.

    >>> print(parse_brackets("( lambda $0 e ( and ( flight $0 ) ( from $0 denver : ci ) ) )"))
    λ$0:e.(and (flight $0) (from $0 denver:ci))
    """
    return _term(nested(text), frozenset())


def _term(part: Nested, bound: frozenset[str]) -> Term:
    if isinstance(part, str):
        return Variable(part) if part in bound or part.startswith("$") else Constant(part)
    if not part:
        raise TermError("expected a term in each bracket; got an empty one, ( ); fill it or take it out")
    head, *rest = part
    if head == LAMBDA:
        return _abstraction(rest, bound)
    if isinstance(head, str) and head in BINDERS and len(rest) > 1 and isinstance(rest[0], str):
        name = rest[0]
        bodies = [Abstraction(name, _term(each, bound | {name})) for each in rest[1:]]
        return Application(Constant(head), tuple(bodies))
    function, *arguments = [_term(each, bound) for each in part]
    return Application(function, tuple(arguments)) if arguments else Application(function, (NOTHING,))


NOTHING = Constant("( )")  # the argument of a function that is in brackets alone


def _abstraction(rest: Sequence[Nested], bound: frozenset[str]) -> Term:
    match rest:
        case [str(name), str(kind), body]:
            return Abstraction(name, _term(body, bound | {name}), kind)
    raise TermError(f"expected ( lambda variable type body ); got {len(rest)} parts behind lambda")


def bracketed(term: Term, *, apart: bool = True) -> str:
    """The way back from `parse_brackets`; `apart` sets blanks around each colon.

    >>> bracketed(parse_brackets("(argmax $0 (flight $0) (fare $0))"))
    '( argmax $0 ( flight $0 ) ( fare $0 ) )'
    """
    text = _text(term)
    return re.sub(r"(?<=\S):(?=\S)", " : ", text) if apart else text


def _text(term: Term) -> str:
    if isinstance(term, Abstraction):
        if term.type is None:
            raise TermError(f"expected the type of {term.variable} in {term}; got none; give it, as in λx:e.(f x)")
        return f"( {LAMBDA} {term.variable} {term.type} {_text(term.body)} )"
    if not isinstance(term, Application):
        return term.name
    if term.arguments == (NOTHING,):
        return f"( {_text(term.function)} )"
    bound = [each for each in term.arguments if isinstance(each, Abstraction) and each.type is None]
    is_binder = isinstance(term.function, Constant) and term.function.name in BINDERS
    if is_binder and len(bound) == len(term.arguments):
        variable, bodies = _shared(bound)
        return f"( {' '.join([_text(term.function), variable, *map(_text, bodies)])} )"
    return f"( {' '.join(map(_text, term.parts))} )"


def _shared(abstractions: Sequence[Abstraction]) -> tuple[str, list[Term]]:
    """Bodies that have one variable in common, and its name."""
    first = abstractions[0].variable
    if any(first in free_variables(each) for each in abstractions):
        taken = frozenset().union(*[free_variables(each) for each in abstractions])
        first = fresh(first, taken)
    return first, [substituted(each.body, each.variable, Variable(first)) for each in abstractions]
