"""Declarations that check requests and describe them in OpenAPI, so that the two never differ.

>>> text, top_k = Member(Text(most=10), "What to read."), Member(Whole(0, 5), "How many.", default=0)
>>> body = Record({"text": text, "top_k": top_k})
>>> body.check({"text": "Hi"}, "body")
{'text': 'Hi', 'top_k': 0}
>>> body.check({"text": "Hi", "top_k": 9}, "body")
Traceback (most recent call last):
trelliswork.web.problems.Problem: body.top_k: expected a whole number in 0..5, got 9
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trelliswork.web.problems import Problem

REQUIRED = object()
MOST_SHOWN = 40  # characters of a wrong value


def shown(value: Any) -> str:
    """Return a value in a sentence, not too long of it."""
    kinds = {dict: "an object", list: "a list", type(None): "null"}
    if type(value) in kinds:
        return kinds[type(value)]
    if isinstance(value, str):
        text = repr(value[:MOST_SHOWN])
        return text if len(value) < MOST_SHOWN else f"{text[: MOST_SHOWN - 3]}..."
    return repr(value) if abs(value) < 1e15 else "a number"


class Kind(ABC):
    """A kind of value."""

    @abstractmethod
    def check(self, value: Any, place: str) -> Any:
        """Return the value, or a `Problem` that says what was expected at this place."""

    @abstractmethod
    def schema(self) -> dict[str, Any]:
        """Return the kind as JSON Schema."""


def refuse(place: str, expected: str, value: Any, status: int = 422) -> Problem:
    """Return the problem of a value that was not expected."""
    return Problem(status, f"{place}: expected {expected}, got {shown(value)}")


@dataclass(frozen=True)
class Text(Kind):
    """A string of Unicode characters; half a surrogate pair is none."""

    most: int
    least: int = 0

    def check(self, value: Any, place: str) -> str:
        if not isinstance(value, str):
            raise refuse(place, "a string", value)
        if len(value) > self.most:
            raise Problem(413, f"{place}: expected at most {self.most:,} characters, got {len(value):,}; send less")
        if len(value) < self.least:
            raise Problem(422, f"{place}: expected a string that is not empty")
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError as error:
                raise Problem(422, f"{place}: expected Unicode text, got half a surrogate pair") from error
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "maxLength": self.most} | ({"minLength": self.least} if self.least else {})


@dataclass(frozen=True)
class Whole(Kind):
    """A whole number within bounds."""

    low: int
    high: int

    def check(self, value: Any, place: str) -> int:
        if type(value) is not int or not self.low <= value <= self.high:
            raise refuse(place, f"a whole number in {self.low}..{self.high}", value)
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "integer", "minimum": self.low, "maximum": self.high}


@dataclass(frozen=True)
class Flag(Kind):
    """True or false."""

    def check(self, value: Any, place: str) -> bool:
        if type(value) is not bool:
            raise refuse(place, "true or false", value)
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "boolean"}


@dataclass(frozen=True)
class OneOf(Kind):
    """One of a few words."""

    words: tuple[str, ...]

    def check(self, value: Any, place: str) -> str:
        if not isinstance(value, str) or value not in self.words:
            raise refuse(place, f"one of {', '.join(self.words)}", value)
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "enum": list(self.words)}


@dataclass(frozen=True)
class Maybe(Kind):
    """A value of a kind, or null."""

    kind: Kind

    def check(self, value: Any, place: str) -> Any:
        return None if value is None else self.kind.check(value, place)

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [self.kind.schema(), {"type": "null"}]}


@dataclass(frozen=True)
class ListOf(Kind):
    """A list of values of one kind."""

    kind: Kind
    most: int
    least: int = 0

    def check(self, value: Any, place: str) -> list[Any]:
        if not isinstance(value, list):
            raise refuse(place, "a list", value)
        if len(value) > self.most:
            raise Problem(413, f"{place}: expected at most {self.most:,} entries, got {len(value):,}; send less")
        if len(value) < self.least:
            raise Problem(422, f"{place}: expected at least {self.least}, got {len(value)}")
        return [self.kind.check(each, f"{place}[{i}]") for i, each in enumerate(value)]

    def schema(self) -> dict[str, Any]:
        limits = {"maxItems": self.most} | ({"minItems": self.least} if self.least else {})
        return {"type": "array", "items": self.kind.schema(), **limits}


@dataclass(frozen=True)
class Member:
    """A member of an object: its kind, what it means, and what it is if it is left out."""

    kind: Kind
    help: str
    default: Any = REQUIRED


@dataclass(frozen=True)
class Record(Kind):
    """An object whose members are known; of `either`, exactly one group member must be there."""

    members: Mapping[str, Member]
    either: Sequence[str] = ()

    def check(self, value: Any, place: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise refuse(place, "an object", value)
        unknown = next((name for name in value if name not in self.members), None)
        if unknown is not None:
            raise Problem(422, f"{place}: expected {', '.join(self.members)}; got {shown(unknown)}, which is none")
        given = [name for name in self.either if value.get(name) is not None]
        if self.either and len(given) != 1:
            got = " and ".join(given) or "none of them"
            raise Problem(422, f"{place}: expected one of {', '.join(self.either)}; got {got}")
        return {name: self._member(name, value, place) for name in self.members if self._wanted(name, value)}

    def _wanted(self, name: str, value: Mapping[str, Any]) -> bool:
        return name not in self.either or value.get(name) is not None

    def _member(self, name: str, value: Mapping[str, Any], place: str) -> Any:
        member = self.members[name]
        if name in value and not (value[name] is None and member.default is None):
            return member.kind.check(value[name], f"{place}.{name}")
        if member.default is REQUIRED:
            raise Problem(422, f"{place}: expected {name!r}, which is missing")
        return member.default

    def schema(self) -> dict[str, Any]:
        properties = {}
        for name, member in self.members.items():
            properties[name] = {**member.kind.schema(), "description": member.help}
            if member.default is not REQUIRED:
                properties[name]["default"] = member.default
        required = [n for n, m in self.members.items() if m.default is REQUIRED and n not in self.either]
        schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
        schema |= {"required": required} if required else {}
        return schema | ({"oneOf": [{"required": [name]} for name in self.either]} if self.either else {})
