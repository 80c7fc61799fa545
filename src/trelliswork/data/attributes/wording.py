"""Attributes in words, from the names that templates make."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property

from trelliswork.data.attributes.templates import Reference, Template

# What a spelling shows of a column, and whether its values are quoted: text is, shapes are not.
_SEEN = {"": ("", True), "lower": ("lower-case", True), "shape": ("shape", False), "short": ("short shape", False)}
_OUTSIDE = re.compile(r"_B[-+]\d+")
_BOUNDARY = re.compile(r"no (?:(previous|next) word|word \((\d+) (before|after)\))")


class Wording:
    """The names of attributes in words; `columns` are what the columns are called, the words first.

    >>> Wording([Template.parse("U1:%x[-1,0]"), Template.parse("U2:%x[0,0.suffix3]")])("U1:the")
    "previous word = 'the'"

    A name that no template, or more than one, may have made stays as it is.
    """

    def __init__(self, templates: Sequence[Template], columns: Sequence[str] = ("word",)) -> None:
        self._templates, self._columns = templates, columns

    @cached_property
    def _patterns(self) -> list[tuple[re.Pattern[str], Template]]:
        return [(_pattern(each), each) for each in self._templates if each.references]

    def __call__(self, name: str) -> str:
        parts = [self._one(part) for part in name.split(" & ")]
        return " & ".join(parts) if all(parts) else self._one(name) or name

    def _one(self, name: str) -> str:
        """Return an attribute of a template; nothing if it is none."""
        matches = [(match, each) for pattern, each in self._patterns if (match := pattern.fullmatch(name))]
        if len(matches) != 1:
            return ""
        (match, template), *_ = matches
        pairs = zip(template.references, match.groups(), strict=True)
        return " and ".join(_once([self._phrase(reference, value) for reference, value in pairs]))

    def _phrase(self, reference: Reference, value: str) -> str:
        column = reference.column
        place = describe_place(
            self._columns[column] if column < len(self._columns) else f"column {column}", reference.shift
        )
        if _OUTSIDE.fullmatch(value):
            return f"no {describe_place('word', reference.shift)}"  # whatever the column: there is no token
        seen, quoted = _seen(reference.spelling)
        shown = repr(value) if quoted else value
        if seen == "lower-case":
            return f"{place} in lower case = {shown}"
        if not seen:
            return f"{place} = {shown}"
        is_word = (column, reference.shift) == (0, 0)
        return f"{seen} = {shown}" if is_word else f"{seen} of {place} = {shown}"


def boundary_of(words: str) -> tuple[str, int] | None:
    """Return side and distance of the end of the sentence, if an attribute says that and nothing else.

    >>> boundary_of("no previous word"), boundary_of("no word (2 after)"), boundary_of("word = 'no'")
    (('before', 1), ('after', 2), None)
    """
    match = _BOUNDARY.fullmatch(words)
    if match is None:
        return None
    near, distance, side = match.groups()
    return (side, int(distance)) if side else ("before" if near == "previous" else "after", 1)


def _once(phrases: Sequence[str]) -> list[str]:
    """Drop phrases that another one implies: without a previous word there is none before that."""
    nearest: dict[str, int] = {}
    for side, distance in filter(None, map(boundary_of, phrases)):
        nearest[side] = min(distance, nearest.get(side, distance))
    kept = (each for each in phrases if (edge := boundary_of(each)) is None or edge[1] == nearest[edge[0]])
    return list(dict.fromkeys(kept))


def _pattern(template: Template) -> re.Pattern[str]:
    written = ("(.*?)" if isinstance(part, Reference) else re.escape(part) for part in template.parts)
    return re.compile("".join(written), re.DOTALL)


def describe_place(what: str, shift: int) -> str:
    """
    >>> describe_place("word", -1), describe_place("word", 0), describe_place("POS", 2)
    ('previous word', 'word', 'POS (2 after)')
    """
    near = {-1: f"previous {what}", 0: what, 1: f"next {what}"}
    return near.get(shift) or f"{what} ({abs(shift)} {'before' if shift < 0 else 'after'})"


def _seen(spelling: str) -> tuple[str, bool]:
    """Return the text of a spelling, as prefix-3 for prefix3, and whether its values are quoted."""
    return _SEEN.get(spelling) or (f"{spelling[:-1]}-{spelling[-1]}", True)
