"""What targets are: how they are brought into one form before a network learns them, and back, and which are the same.

>>> form = LambdaForm()
>>> " ".join(form.read("( lambda x e ( and ( to x denver : ci ) ( flight x ) ) )".split()))
'lambda ( $0 e and ( flight ( $0 ) to ( $0 denver:ci ) ) )'

Heads stand before their brackets: a hierarchical decoder then knows, outside of a bracket, what it has opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from trelliswork.errors import TermError
from trelliswork.terms import bracketed, canonical, parse_brackets
from trelliswork.terms.brackets import LAMBDA, closed, nested
from trelliswork.terms.clauses import canonical_clause, printed

Symbols = tuple[str, ...]
FormName = Literal["auto", "brackets", "lambda", "prolog", "sql"]
OPEN, CLOSE = "(", ")"


class Form:
    """Bracketed targets as they are: every bracket must close."""

    name: FormName = "brackets"

    def read(self, target: Sequence[str]) -> Symbols:
        """What a network learns; a target that is broken is a `TermError`."""
        _check_brackets(target)
        return tuple(target)

    def written(self, symbols: Sequence[str]) -> Symbols:
        """The way back from `read`."""
        return tuple(symbols)

    def compared(self, target: Sequence[str]) -> Symbols:
        """Equal for targets that mean the same; one that is broken is compared as it is."""
        try:
            return self.read(target)
        except TermError:
            return tuple(target)

    def is_repaired(self, target: Sequence[str]) -> bool:
        """Whether `read` adds brackets that are missing."""
        return False


class LambdaForm(Form):
    """Lambda terms in brackets, up to the names of bound variables and the order of `and` and `or`.

    Closing brackets that are missing at the end are added.
    """

    name = "lambda"

    def read(self, target: Sequence[str]) -> Symbols:
        term = parse_brackets(" ".join(closed(target)))
        return heads_out(bracketed(canonical(term), apart=False).split())

    def written(self, symbols: Sequence[str]) -> Symbols:
        found: list[str] = []
        for symbol in heads_in(symbols):
            name, colon, kind = symbol.partition(":")
            found += [name, colon, kind] if name and kind else [symbol]
        return tuple(found)

    def is_repaired(self, target: Sequence[str]) -> bool:
        return len(closed(target)) > len(target)


def heads_out(symbols: Sequence[str]) -> Symbols:
    """( f a ( g b ) ) as f ( a g ( b ) ): each head before its bracket.

    >>> heads_out(["(", "f", "(", "g", "b", ")", ")"])
    ('f', '(', 'g', '(', 'b', ')', ')')
    """
    found = list(symbols)
    for i, symbol in enumerate(symbols[:-1]):
        if symbol == OPEN:
            found[i], found[i + 1] = found[i + 1], OPEN
    return tuple(found)


def heads_in(symbols: Sequence[str]) -> Symbols:
    """The way back from `heads_out`."""
    found = list(symbols)
    for i, symbol in enumerate(symbols):
        if symbol == OPEN and i:
            found[i - 1], found[i] = OPEN, found[i - 1]
    return tuple(found)


GROUP, BESIDE = "&", "~"  # heads of brackets that have none, and of terms that no comma separates


class PrologForm(Form):
    """Prolog terms: f ( a , ( b , c ) ) is learned as f ( a & ( b c ) ), without commas; two terms side by side have ~.

    >>> form = PrologForm()
    >>> " ".join(form.read("( A , _loc ( A , mount rainier ) )".split()))
    '& ( A _loc ( A ~ ( mount rainier ) ) )'
    >>> " ".join(form.written("& ( A _loc ( A B ) )".split()))
    '( A , _loc ( A , B ) )'
    """

    name = "prolog"

    def read(self, target: Sequence[str]) -> Symbols:
        _check_brackets(target)
        if marks := {GROUP, BESIDE}.intersection(target):
            raise TermError(
                f"expected Prolog terms without {GROUP} and {BESIDE}; got {min(marks)!r} in {_shown(target)}"
            )
        found, at = _beside(target, 0)
        if at < len(target):
            raise TermError(f"expected one Prolog term; got {target[at]!r} behind it in {_shown(target)}")
        return heads_out(found)

    def compared(self, target: Sequence[str]) -> Symbols:
        """Up to names of variables and the order of conjuncts."""
        try:
            clause = nested(" ".join(heads_in(self.read(target))))
        except TermError:
            return tuple(target)
        return tuple(printed(canonical_clause(clause)).split())

    def written(self, symbols: Sequence[str]) -> Symbols:
        found, heads, first = list[str](), [BESIDE], True
        before = ""
        for symbol in heads_in(symbols):
            if before == OPEN:  # the head of a bracket, behind the comma that its bracket needs
                heads.append(symbol)
                found += {GROUP: [OPEN], BESIDE: []}.get(symbol, [symbol, OPEN])
                first = True
            elif symbol == CLOSE:
                found += [] if len(heads) > 1 and heads.pop() == BESIDE else [CLOSE]
                first = False
            else:
                found += [] if first or heads[-1] == BESIDE else [","]
                found += [] if symbol == OPEN else [symbol]
                first = False
            before = symbol
        return tuple(found)


def _beside(target: Sequence[str], at: int) -> tuple[list[str], int]:
    """One argument: a term, or several side by side, in prefix form; and the place behind it."""
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
    """One term in prefix form, and the place behind it."""
    head = GROUP if target[at] == OPEN else target[at]
    at += target[at] != OPEN
    if at == len(target) or target[at] != OPEN:
        return [head], at
    found = [OPEN, head]
    while target[at] != CLOSE:  # at the opening bracket or a comma
        argument, at = _beside(target, at + 1)
        found += argument
    return [*found, CLOSE], at + 1


def _check_brackets(target: Sequence[str]) -> None:
    nested(" ".join((OPEN, *target, CLOSE)))  # raises what is wrong


def _shown(target: Sequence[str]) -> str:
    return repr(" ".join(target)[:60])


FORMS: dict[str, Form] = {form.name: form for form in (Form(), LambdaForm(), PrologForm())}
KNOWN = tuple(name for name in get_args(FormName) if name != "auto")


def form_of(targets: Sequence[Sequence[str]]) -> FormName:
    """The form that all targets have: lambda terms if one of them has a lambda, then Prolog, then any brackets."""
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
