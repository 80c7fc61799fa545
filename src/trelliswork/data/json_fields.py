"""What the members of JSON records are called."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Self

from trelliswork.errors import TrellisworkError


@dataclass(frozen=True)
class JsonFields:
    """The members of records that hold words and tags, or text and spans; the usual ones where None.

    `names` are those of tags that are numbers, from 0.

    >>> JsonFields.parse(["tokens=words", "names=O,B-PER,I-PER"]).names
    ('O', 'B-PER', 'I-PER')
    """

    tokens: str | None = None
    tags: str | None = None
    text: str | None = None
    spans: str | None = None
    names: tuple[str, ...] = ()

    @classmethod
    def parse(cls, given: Iterable[str]) -> Self:
        """From what stands behind --field: NAME=MEMBER."""
        known = [each.name for each in fields(cls)]
        found: dict[str, str] = {}
        for each in given:
            name, equals, member = each.partition("=")
            if name not in known or not equals or not member:
                problem = f"expected one of {', '.join(known)}, = and a member, as in tokens=words"
                raise TrellisworkError(f"--field: {problem}; got {each!r}")
            found[name] = member
        names = tuple(filter(None, (name.strip() for name in found.pop("names", "").split(","))))
        return cls(**found, names=names)

    def given(self) -> list[str]:
        """The inverse of `parse`."""
        members = {each.name: getattr(self, each.name) for each in fields(self)} | {"names": ",".join(self.names)}
        return [f"{name}={member}" for name, member in members.items() if member]

    def under(self, other: JsonFields) -> JsonFields:
        """What `other` says, and this where it says nothing."""
        both = {each.name: getattr(other, each.name) or getattr(self, each.name) for each in fields(self)}
        return JsonFields(**both)
