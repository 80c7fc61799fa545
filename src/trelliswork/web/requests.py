"""Limits, and declarations of the bodies and parameters of all requests, which check and describe them in OpenAPI.

>>> text, top_k = Member(Text(most=10), "What to read."), Member(Whole(0, 5), "How many.", default=0)
>>> body = ObjectOf({"text": text, "top_k": top_k})
>>> body.check({"text": "Hi"}, "body")
{'text': 'Hi', 'top_k': 0}
>>> body.check({"text": "Hi", "top_k": 9}, "body")
Traceback (most recent call last):
trelliswork.web.problems.Problem: body.top_k: expected a whole number in 0..5, got 9
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trelliswork.data.json_values import Json, JsonObject
from trelliswork.web.problems import Problem

MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Limits:
    """Bounds of requests; beyond them the answer is 408, 413, 429 or 504, or the connection is closed."""

    body: int = 2 * MEGABYTE  # bytes of a request
    characters: int = 100_000  # of a text
    texts: int = 1024  # of a request
    all_characters: int = 500_000  # of all its texts, whose words are found in one go
    tokens: int = 20_000  # of a sentence that is given as tokens
    pins: int = 1000
    top_k: int = 100
    shown: int = 100  # choices of a part
    at_once: int = 256  # requests that are answered or wait
    held: int = 64 * MEGABYTE  # bytes of large bodies that are received or wait, of all requests
    seconds: float = 30.0  # of a request, waiting included
    header_seconds: float = 10.0  # in which the head of a request must have come
    body_seconds: float = 10.0  # in which a body must have come
    idle_seconds: float = 30.0  # that a connection is kept between two requests
    send_seconds: float = 10.0  # in which a client must have read a part of its answer
    connections: int = 1000  # open at a time; fewer if the system allows fewer files
    taught: int = 10 * MEGABYTE  # bytes of a file of sentences to teach

    @property
    def work(self) -> float:
        """Seconds that a request may take by the estimate of its model, if it had a worker for itself."""
        return self.seconds / 2

    @property
    def sentence_work(self) -> float:
        """The same of one sentence, which cannot be divided and for which everybody else may have to wait."""
        return self.seconds / 10


REQUIRED = object()
MOST_SHOWN = 40  # characters of a wrong value


def describe_value(value: Json) -> str:
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
    def check(self, value: Json, place: str) -> Json:
        """Return the value, or a `Problem` that says what was expected at this place."""

    @abstractmethod
    def schema(self) -> JsonObject:
        """Return the kind as JSON Schema."""


def refuse(place: str, expected: str, value: Json, status: int = 422) -> Problem:
    """Return the problem of a value that was not expected.

    Args:
        place: The place of the value, such as body.top_k.
        expected: What was expected there.
        value: What was found.
        status: The status of HTTP.

    Returns:
        The problem, to be raised.
    """
    return Problem(status, f"{place}: expected {expected}, got {describe_value(value)}")


@dataclass(frozen=True)
class Text(Kind):
    """A string of Unicode characters; half a surrogate pair is not one."""

    most: int
    least: int = 0

    def check(self, value: Json, place: str) -> str:
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

    def schema(self) -> JsonObject:
        return {"type": "string", "maxLength": self.most} | ({"minLength": self.least} if self.least else {})


@dataclass(frozen=True)
class Whole(Kind):
    """A whole number within bounds."""

    low: int
    high: int

    def check(self, value: Json, place: str) -> int:
        if type(value) is not int or not self.low <= value <= self.high:
            raise refuse(place, f"a whole number in {self.low}..{self.high}", value)
        return value

    def schema(self) -> JsonObject:
        return {"type": "integer", "minimum": self.low, "maximum": self.high}


@dataclass(frozen=True)
class Flag(Kind):
    """True or false."""

    def check(self, value: Json, place: str) -> bool:
        if type(value) is not bool:
            raise refuse(place, "true or false", value)
        return value

    def schema(self) -> JsonObject:
        return {"type": "boolean"}


@dataclass(frozen=True)
class OneOf(Kind):
    """One of a few words."""

    words: tuple[str, ...]

    def check(self, value: Json, place: str) -> str:
        if not isinstance(value, str) or value not in self.words:
            raise refuse(place, f"one of {', '.join(self.words)}", value)
        return value

    def schema(self) -> JsonObject:
        return {"type": "string", "enum": list(self.words)}


@dataclass(frozen=True)
class Maybe(Kind):
    """A value of a kind, or null."""

    kind: Kind

    def check(self, value: Json, place: str) -> Json:
        return None if value is None else self.kind.check(value, place)

    def schema(self) -> JsonObject:
        return {"anyOf": [self.kind.schema(), {"type": "null"}]}


@dataclass(frozen=True)
class ListOf(Kind):
    """A list of values of one kind."""

    kind: Kind
    most: int
    least: int = 0

    def check(self, value: Json, place: str) -> list[Json]:
        if not isinstance(value, list):
            raise refuse(place, "a list", value)
        if len(value) > self.most:
            raise Problem(413, f"{place}: expected at most {self.most:,} entries, got {len(value):,}; send less")
        if len(value) < self.least:
            raise Problem(422, f"{place}: expected at least {self.least}, got {len(value)}")
        return [self.kind.check(each, f"{place}[{i}]") for i, each in enumerate(value)]

    def schema(self) -> JsonObject:
        limits = {"maxItems": self.most} | ({"minItems": self.least} if self.least else {})
        return {"type": "array", "items": self.kind.schema(), **limits}


@dataclass(frozen=True)
class Member:
    """A member of an object: its kind, what it means, and what it is if it is left out."""

    kind: Kind
    help: str
    default: Json = REQUIRED


@dataclass(frozen=True)
class ObjectOf(Kind):
    """An object whose members are known; of `either`, exactly one group member must be there."""

    members: Mapping[str, Member]
    either: Sequence[str] = ()

    def check(self, value: Json, place: str) -> JsonObject:
        if not isinstance(value, dict):
            raise refuse(place, "an object", value)
        unknown = next((name for name in value if name not in self.members), None)
        if unknown is not None:
            known = ", ".join(self.members)
            raise Problem(422, f"{place}: expected {known}; got the unknown member {describe_value(unknown)}")
        given = [name for name in self.either if value.get(name) is not None]
        if self.either and len(given) != 1:
            got = " and ".join(given) or "none of them"
            raise Problem(422, f"{place}: expected one of {', '.join(self.either)}; got {got}")
        return {name: self._member(name, value, place) for name in self.members if self._is_given(name, value)}

    def _is_given(self, name: str, value: Mapping[str, Json]) -> bool:
        return name not in self.either or value.get(name) is not None

    def _member(self, name: str, value: Mapping[str, Json], place: str) -> Json:
        member = self.members[name]
        if name in value and not (value[name] is None and member.default is None):
            return member.kind.check(value[name], f"{place}.{name}")
        if member.default is REQUIRED:
            raise Problem(422, f"{place}: expected {name!r}, which is missing")
        return member.default

    def schema(self) -> JsonObject:
        properties = {}
        for name, member in self.members.items():
            properties[name] = {**member.kind.schema(), "description": member.help}
            if member.default is not REQUIRED:
                properties[name]["default"] = member.default
        required = [n for n, m in self.members.items() if m.default is REQUIRED and n not in self.either]
        schema: JsonObject = {"type": "object", "properties": properties, "additionalProperties": False}
        schema |= {"required": required} if required else {}
        return schema | ({"oneOf": [{"required": [name]} for name in self.either]} if self.either else {})


LONGEST_WORD = 10_000
LONGEST_NAME = 200
INPUTS = ("text", "texts", "tokens")
PICTURES = ("auto", "segments", "trellis", "dependencies", "tree", "alignment")
FORMATS = ("text", "lines", "tokens", "conll", "jsonl")
RANKINGS = ("entropy", "margin", "error", "order")


def _inputs(limits: Limits) -> dict[str, Member]:
    words = ListOf(Text(LONGEST_WORD, least=1), limits.tokens)
    pin = ObjectOf(
        {
            "input": Member(Whole(0, limits.texts - 1), "Which of the texts, from 0.", 0),
            "sentence": Member(Whole(0, limits.characters), "Which of its sentences, from 0.", 0),
            "token": Member(Whole(0, limits.characters), "Which of its tokens, from 0.", 0),
            "value": Member(
                Text(10 * LONGEST_NAME, least=1),
                "What is known: a tag (B-PER), or several of which one is right (O|B-PER); of a dependency parser "
                "HEAD, HEAD:LABEL or _:LABEL with words counted from 1 and 0 for the root; of a constituency "
                "parser LAST or LAST:LABEL, the last word (from 1) of a "
                "constituent that begins at the token.",
                None,
            ),
            "start": Member(Whole(0, limits.characters), "Of a whole span: its first token, from 0.", 0),
            "end": Member(Whole(1, limits.characters), "The token after its last one.", None),
            "label": Member(
                Text(LONGEST_NAME, least=1), "Its label: exactly these tokens are one span of this label.", None
            ),
        }
    )
    return {
        "model": Member(Text(LONGEST_NAME), "Which model; the first one if left out.", None),
        "text": Member(Text(limits.characters), "One raw text.", None),
        "texts": Member(ListOf(Text(limits.characters), limits.texts, least=1), "Several raw texts.", None),
        "tokens": Member(ListOf(words, limits.texts, least=1), "Sentences whose tokens are known.", None),
        "columns": Member(
            ListOf(ListOf(words, 20), limits.texts),
            "For each sentence of `tokens` the further columns that the model reads, such as parts of speech.",
            None,
        ),
        "pins": Member(ListOf(pin, limits.pins), "Parts of answers that are known.", ()),
    }


def predict_body(limits: Limits) -> ObjectOf:
    """Return the body of /v1/predict."""
    asked = {
        "top_k": Member(Whole(0, limits.top_k), "How many of the best answers to list as `alternatives`.", 0),
        "confidences": Member(Flag(), "Whether to add the probabilities of parts and spans.", True),
        "choices": Member(
            Whole(0, limits.shown), "How many choices of each part to list, with its entropy in bits; 0 is none.", 0
        ),
        "expected": Member(
            Flag(),
            "Whether to count the spans (or plain tags, arcs, constituents) of each label in each sentence: the mean "
            "over all answers and the standard deviation. Of several sentences, means and squared deviations add up.",
            False,
        ),
    }
    return ObjectOf({**_inputs(limits), **asked}, either=INPUTS)


def draw_body(limits: Limits) -> ObjectOf:
    """Return the body of /v1/draw."""
    asked = {
        "picture": Member(OneOf(PICTURES), "Which picture; auto is the one that fits the model.", "auto"),
        "sentence": Member(Whole(0, limits.characters), "Draw this sentence of each input alone, from 0.", None),
    }
    return ObjectOf({**_inputs(limits), **asked}, either=INPUTS)


def explain_body(limits: Limits) -> ObjectOf:
    """Return the body of /v1/explain."""
    members = _inputs(limits)
    del members["pins"]
    asked = {"shown": Member(Whole(1, limits.shown), "How many votes of each token to list.", 8)}
    return ObjectOf({**members, **asked}, either=INPUTS)


def open_body(limits: Limits) -> ObjectOf:
    """Return the body of /v1/teach/open."""
    return ObjectOf(
        {
            "name": Member(Text(100, least=1), "What the set of sentences is called."),
            "model": Member(Text(LONGEST_NAME), "Which model is taught; the first one if left out.", None),
            "format": Member(OneOf(FORMATS), "What the content is.", "text"),
            "content": Member(
                Text(limits.taught), "A file of sentences; without it, a set that was opened before is taken up.", None
            ),
        }
    )


def next_query(limits: Limits) -> ObjectOf:
    """Return the parameters of /v1/teach/next."""
    return ObjectOf(
        {
            "by": Member(OneOf(RANKINGS), "What comes first: the most uncertain, or the order of the file.", "entropy"),
            "id": Member(Whole(0, 10**9), "This sentence, whatever comes first.", None),
        }
    )


def decide_body(limits: Limits) -> ObjectOf:
    """Return the body of /v1/teach/decide."""
    return ObjectOf(
        {
            "id": Member(Whole(0, 10**9), "Which sentence."),
            "tags": Member(
                ListOf(Maybe(Text(LONGEST_NAME, least=1)), limits.tokens),
                "A tag for each token; null is unknown. Of a parser the arc of each word, such as 2:nsubj, none null.",
                None,
            ),
            "skip": Member(Flag(), "Put the sentence off instead.", False),
        }
    )


def empty_body(limits: Limits) -> ObjectOf:
    """Return the body of requests that say nothing more: {}."""
    return ObjectOf({})


def read_json(body: bytes, kind: Kind) -> Json:
    """Return the body of a request, checked; it must be JSON in UTF-8 without doubled names or NaN."""
    try:
        value = _DECODER.decode(body.decode())
    except UnicodeDecodeError as error:
        raise Problem(400, f"expected JSON in UTF-8, got a wrong byte at {error.start}") from error
    except RecursionError as error:
        raise Problem(400, "expected JSON of a few levels, got too many") from error
    except ValueError as error:
        raise Problem(400, f"expected JSON, got something else: {str(error)[:200]}") from error
    return kind.check(value, "body")


def _object(pairs: list[tuple[str, Json]]) -> JsonObject:
    members: JsonObject = {}
    for name, value in pairs:
        if name in members:
            raise ValueError(f"the member {name[:100]!r} occurs twice")
        members[name] = value
    return members


def _no_number(name: str) -> Json:
    raise ValueError(f"{name} is not a number in JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_number)
