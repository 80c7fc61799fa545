"""Forms of targets: reading them into one form before a network learns them, writing them back, comparing them.

>>> form = LambdaForm()
>>> " ".join(form.read("( lambda x e ( and ( to x denver : ci ) ( flight x ) ) )".split()))
'lambda ( $0 e and ( flight ( $0 ) to ( $0 denver:ci ) ) )'

Heads stand before their brackets: a hierarchical decoder then knows, outside of a bracket, what it has opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from trelliswork.errors import TermError
from trelliswork.terms import canonical, format_brackets, parse_brackets
from trelliswork.terms.brackets import LAMBDA, Nested, close_brackets, nest_tokens, parse_nested
from trelliswork.terms.clauses import canonical_clause
from trelliswork.terms.nesting import NEW, flat_clause, is_mark, nested_clause

Symbols = tuple[str, ...]
FormName = Literal["auto", "brackets", "lambda", "prolog", "sql"]
OPEN, CLOSE = "(", ")"


class Form:
    """Bracketed targets as they are: every bracket must close."""

    name: FormName = "brackets"

    def read(self, target: Sequence[str]) -> Symbols:
        """Return the symbols that a network learns; a target that is broken is a `TermError`."""
        _check_brackets(target)
        return tuple(target)

    def written(self, symbols: Sequence[str]) -> Symbols:
        """Invert `read`."""
        return tuple(symbols)

    def compared(self, target: Sequence[str]) -> Symbols:
        """Return symbols that are equal for targets that mean the same; a broken target is compared as it is."""
        try:
            return self.read(target)
        except TermError:
            return tuple(target)

    def is_repaired(self, target: Sequence[str]) -> bool:
        """Return whether `read` adds brackets that are missing."""
        return False


class LambdaForm(Form):
    """Lambda terms in brackets, up to the names of bound variables and the order of `and` and `or`.

    Closing brackets that are missing at the end are added.
    """

    name = "lambda"

    def read(self, target: Sequence[str]) -> Symbols:
        term = parse_brackets(" ".join(close_brackets(target)))
        return heads_out(format_brackets(canonical(term), apart=False).split())

    def written(self, symbols: Sequence[str]) -> Symbols:
        tokens: list[str] = []
        for symbol in heads_in(symbols):
            name, colon, kind = symbol.partition(":")
            tokens += [name, colon, kind] if name and kind else [symbol]
        return tuple(tokens)

    def is_repaired(self, target: Sequence[str]) -> bool:
        return len(close_brackets(target)) > len(target)


def heads_out(symbols: Sequence[str]) -> Symbols:
    """Return ( f a ( g b ) ) as f ( a g ( b ) ): each head before its bracket.

    >>> heads_out(["(", "f", "(", "g", "b", ")", ")"])
    ('f', '(', 'g', '(', 'b', ')', ')')
    """
    moved = list(symbols)
    for i, symbol in enumerate(symbols[:-1]):
        if symbol == OPEN:
            moved[i], moved[i + 1] = moved[i + 1], OPEN
    return tuple(moved)


def heads_in(symbols: Sequence[str]) -> Symbols:
    """Invert `heads_out`."""
    moved = list(symbols)
    for i, symbol in enumerate(symbols):
        if symbol == OPEN and i:
            moved[i - 1], moved[i] = OPEN, moved[i - 1]
    return tuple(moved)


GROUP, BESIDE = "&", "~"  # heads of brackets that have none, and of terms that no comma separates


class PrologForm(Form):
    """Prolog terms: f ( a , ( b , c ) ) is learned as f ( a & ( b c ) ), without commas; two terms side by side have ~.

    Conjuncts stand where the variable that they are about is new, and variables have no names (`terms/nesting.py`).

    >>> form = PrologForm()
    >>> " ".join(form.read("( A , _loc ( A , mount rainier ) )".split()))
    '& ( ? ( _loc ( ^0 ~ ( mount rainier ) ) ) )'
    >>> " ".join(form.written("& ( ? ( _loc ( ^0 ? ( _state ( ^0 ) ) ) ) )".split()))
    '( A , _loc ( A , B ) , _state ( B ) )'
    """

    name = "prolog"

    def read(self, target: Sequence[str]) -> Symbols:
        return heads_out(_tokens(nested_clause(_clause(target))))

    def compared(self, target: Sequence[str]) -> Symbols:
        """Return symbols that are equal for targets that mean the same; a broken target is compared as it is."""
        try:
            return tuple(_tokens(canonical_clause(_clause(target))))
        except TermError:
            return tuple(target)

    def written(self, symbols: Sequence[str]) -> Symbols:
        written, heads, first = list[str](), [BESIDE], True
        before = ""
        for symbol in _tokens(flat_clause(nest_tokens(heads_in(symbols), _shown(symbols)))):
            if before == OPEN:  # the head of a bracket, behind the comma that its bracket needs
                heads.append(symbol)
                written += {GROUP: [OPEN], BESIDE: []}.get(symbol, [symbol, OPEN])
                first = True
            elif symbol == CLOSE:
                written += [] if len(heads) > 1 and heads.pop() == BESIDE else [CLOSE]
                first = False
            else:
                written += [] if first or heads[-1] == BESIDE else [","]
                written += [] if symbol == OPEN else [symbol]
                first = False
            before = symbol
        return tuple(written)


def _clause(target: Sequence[str]) -> Nested:
    """Return a Prolog term as nested lists with the head first."""
    _check_brackets(target)
    if marks := [symbol for symbol in target if symbol in (GROUP, BESIDE) or is_mark(symbol)]:
        raise TermError(
            f"expected Prolog terms without {GROUP}, {BESIDE}, {NEW}, ^0 and =0; got {marks[0]!r} in {_shown(target)}"
        )
    term, at = _beside(target, 0)
    if at < len(target):
        raise TermError(f"expected one Prolog term; got {target[at]!r} behind it in {_shown(target)}")
    return nest_tokens(term, _shown(target))


def _tokens(clause: Nested) -> list[str]:
    """Invert `nest_tokens`."""
    return (
        [clause] if isinstance(clause, str) else [OPEN, *(token for part in clause for token in _tokens(part)), CLOSE]
    )


def _beside(target: Sequence[str], at: int) -> tuple[list[str], int]:
    """Return one argument: a term, or several side by side, in prefix form; and the place behind it."""
    terms: list[list[str]] = []
    while at < len(target) and target[at] not in (CLOSE, ","):
        term, at = _prolog(target, at)
        terms.append(term)
    if not terms:
        got = [*target, "the end"][at]
        raise TermError(f"expected a Prolog term at symbol {at + 1}; got {got!r} in {_shown(target)}")
    flat = [symbol for term in terms for symbol in term]
    return flat if len(terms) == 1 else [OPEN, BESIDE, *flat, CLOSE], at


def _prolog(target: Sequence[str], at: int) -> tuple[list[str], int]:
    """Return one term in prefix form, and the place behind it."""
    head = GROUP if target[at] == OPEN else target[at]
    at += target[at] != OPEN
    if at == len(target) or target[at] != OPEN:
        return [head], at
    term = [OPEN, head]
    while target[at] != CLOSE:  # at the opening bracket or a comma
        argument, at = _beside(target, at + 1)
        term += argument
    return [*term, CLOSE], at + 1


def _check_brackets(target: Sequence[str]) -> None:
    parse_nested(" ".join((OPEN, *target, CLOSE)))  # raises what is wrong


def _shown(target: Sequence[str]) -> str:
    return repr(" ".join(target)[:60])


FORMS: dict[str, Form] = {form.name: form for form in (Form(), LambdaForm(), PrologForm())}
KNOWN = tuple(name for name in get_args(FormName) if name != "auto")


def form_of(targets: Sequence[Sequence[str]]) -> FormName:
    """Return the form of all targets: lambda terms if one of them has a lambda, then Prolog, then any brackets."""
    has_lambda = any(LAMBDA in target for target in targets)
    for name in ("lambda", "prolog") if has_lambda else ("prolog",):
        if any("," in target for target in targets) == (name == "prolog") and _all_read(FORMS[name], targets):
            return FORMS[name].name
    return "brackets"


def _all_read(form: Form, targets: Sequence[Sequence[str]]) -> bool:
    try:
        for target in targets:
            form.read(target)
    except TermError:
        return False
    return True
