r"""Parser of the usual notation of terms: λx.(x y), \x.x y, λx:e.λp:<e,t>.(p x).

An abstraction extends as far to the right as possible; arguments follow their function. Names that no abstraction binds
are free variables.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from trelliswork.errors import TermError
from trelliswork.terms.term import DEEPEST, Abstraction, Application, Term, Variable

_TOKENS = re.compile(r"\s*(?:(?P<sign>[λ\\().])|(?P<name>[^\s λ\\().:]+)(?::(?P<type>[^\s().]+))?)")


def parse(text: str) -> Term:
    r"""Parse a term in the usual notation.

    >>> parse("λx.x y") == parse(r"\x.(x y)"), parse("λx y.x") == parse("λx.λy.x"), str(parse("λx:e.(f x)"))
    (True, True, 'λx:e.(f x)')
    """
    reader = _Reader(text, _tokens(text))
    term = reader.term(0)
    if reader.at < len(reader.tokens):
        reader.fail("the end")
    return term


def _tokens(text: str) -> list[tuple[str, str | None, int]]:
    """Return (sign or name, type after it or None, position) for each token of a text."""
    tokens: list[tuple[str, str | None, int]] = []
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _TOKENS.match(text, position)
        if match is None:
            problem = f"expected a name or one of λ \\ . ( ) at character {position} of {text!r}"
            raise TermError(f"{problem}; got {text[position]!r}")
        tokens.append((match["sign"] or match["name"], match["type"], match.start(match.lastgroup or 0)))
        position = match.end()
    return tokens


class _Reader:
    """Recursive-descent parser; `at` is the index of the next token."""

    def __init__(self, text: str, tokens: Sequence[tuple[str, str | None, int]]):
        self.text, self.tokens, self.at = text, tokens, 0

    @property
    def next(self) -> str | None:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else None

    def fail(self, expected: str) -> None:
        got = "the end" if self.next is None else f"{self.next!r} at character {self.tokens[self.at][2]}"
        raise TermError(f"expected {expected}; got {got} of {self.text!r}")

    def expect(self, sign: str) -> None:
        if self.next != sign:
            self.fail(repr(sign))
        self.at += 1

    def term(self, level: int) -> Term:
        """Parse one or more parts, of which the first is the function."""
        if level > DEEPEST:
            raise TermError(f"expected at most {DEEPEST} levels of brackets and abstractions; got more")
        parts: list[Term] = []
        while self.next not in (None, ")", "."):
            parts.append(self.part(level))
        if not parts:
            self.fail("a term")
        return parts[0] if len(parts) == 1 else Application(parts[0], tuple(parts[1:]))

    def part(self, level: int) -> Term:
        token, kind, _ = self.tokens[self.at]
        if token == "(":
            self.at += 1
            term = self.term(level + 1)
            self.expect(")")
            return term
        if token in ("λ", "\\"):
            return self.abstraction(level)
        if kind is not None:
            self.fail(f"a type only after the variable of a λ, not {kind!r} after another name")
        self.at += 1
        return Variable(token)

    def abstraction(self, level: int) -> Term:
        """Parse λx.M; λx y.M is short for λx.λy.M."""
        self.at += 1
        variables: list[tuple[str, str | None]] = []
        while self.next not in (None, *"λ\\()."):
            name, kind, _ = self.tokens[self.at]
            variables.append((name, kind))
            self.at += 1
        if not variables:
            self.fail("a variable after λ")
        self.expect(".")
        term = self.term(level + 1)
        for name, kind in reversed(variables):
            term = Abstraction(name, term, kind)
        return term
