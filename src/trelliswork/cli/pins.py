"""Pins: tags that the user knows, written TOKEN=TAG for every sentence or SENTENCE:TOKEN=TAG for one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from trelliswork.data import Sentence
from trelliswork.errors import DataError, TrellisworkError
from trelliswork.models.taggers.labels import Labels

_PIN = re.compile(r"(?:(?P<sentence>\d{1,9}):)?(?P<token>\d{1,9})=(?P<tag>.+)")


@dataclass(frozen=True)
class Pin:
    """Token `token` (from 1) of sentence `sentence` (from 1; None is every sentence) has the tag `tag`."""

    sentence: int | None
    token: int
    tag: str
    text: str


def parse_pins(texts: Sequence[str], labels: Labels) -> list[Pin]:
    """Pins as typed, refused if they are malformed or name a tag that the model does not know."""
    pins = []
    for text in texts:
        match = _PIN.fullmatch(text.strip())
        if match is None or int(match["token"]) < 1 or match["sentence"] == "0":
            problem = "expected TOKEN=TAG or SENTENCE:TOKEN=TAG, counted from 1, such as 3=B-PER or 2:3=B-PER"
            raise TrellisworkError(f"--pin: {problem}; got {text!r}")
        if match["tag"] not in labels.data_tags:
            known = ", ".join(labels.data_tags)
            raise TrellisworkError(f"--pin {text}: expected one of the tags {known}; got {match['tag']!r}")
        sentence = int(match["sentence"]) if match["sentence"] else None
        pins.append(Pin(sentence, int(match["token"]), match["tag"], text))
    return pins


def pins_for(pins: Sequence[Pin], number: int, sentence: Sentence) -> dict[int, str]:
    """The pins of the sentence with this number, by token counted from 0."""
    found: dict[int, str] = {}
    for pin in pins:
        if pin.sentence not in (None, number):
            continue
        if pin.token > len(sentence):
            problem = f"--pin {pin.text} names token {pin.token}, the sentence has {len(sentence)}; pin one of those"
            raise DataError(sentence.file, problem, line=sentence.line)
        if found.setdefault(pin.token - 1, pin.tag) != pin.tag:
            other = found[pin.token - 1]
            raise TrellisworkError(f"--pin {pin.text}: token {pin.token} is already pinned to {other}; drop one")
    return found


def require_used(pins: Sequence[Pin], n_sentences: int, file: str) -> None:
    """A pin on a sentence that never came is a mistake worth telling."""
    for pin in pins:
        if pin.sentence is not None and pin.sentence > n_sentences:
            problem = f"--pin {pin.text} names sentence {pin.sentence}, the input has {n_sentences}; correct the pin"
            raise DataError(file, problem)
