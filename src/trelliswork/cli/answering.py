"""Answers about a stream of sentences, batch by batch, with as much explanation as is asked for.

A value is what the model makes of it: a tag such as B-PER, or of a parser a head, with a label or without, such as 2 or
2:nsubj. Of a transducer it is the symbols that a place of the source becomes, or that several do, such as 2-3=F.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from trelliswork.cli.messages import say
from trelliswork.data import Sentence
from trelliswork.errors import ConstraintError, DataError, ScoreError, TrellisworkError
from trelliswork.models.base import Answer, Model

BATCH = 2048  # sentences in memory at a time
MOST_TOKENS = 100_000  # of one sentence, whose scores are in memory together

Answered = tuple[Sentence, Any]  # an `Answer`, or expected counts where they are asked for


@dataclass(frozen=True)
class Question:
    """What to find out about each sentence."""

    confidence: bool = False
    top_k: int = 0
    pins: Sequence[Pin] = ()
    threshold: float | None = None
    expected: Sequence[str] = ()  # labels whose number is wanted, in the place of answers

    def __post_init__(self) -> None:
        if self.expected and (self.confidence or self.top_k or self.threshold is not None):
            raise TrellisworkError(
                "--expected counts over all analyses and shows none; leave out --confidence, --top-k and --threshold"
            )
        if self.threshold is not None and self.top_k:
            raise TrellisworkError(
                "--top-k lists whole analyses and --threshold chooses spans one by one; got both; leave one out"
            )


def answers(
    model: Model, sentences: Iterable[Sentence], question: Question, *, batch: int = BATCH
) -> Iterator[Answered]:
    """The sentences with their answers, in order; memory is that of one batch."""
    if question.threshold is not None and model.learns_from != "tags":
        raise TrellisworkError("--threshold is for the spans of a tagger, and this model finds none; leave it out")
    stream, number, file = iter(sentences), 0, ""
    while group := list(itertools.islice(stream, batch)):
        file = group[0].file
        _require_sentences(group)
        pins = [pins_for(question.pins, number + i, sentence, model) for i, sentence in enumerate(group, 1)]
        yield from zip(group, _answer_group(model, group, question, pins, number), strict=True)
        number += len(group)
    require_used(question.pins, number, file)


def _require_sentences(group: Sequence[Sentence]) -> None:
    for sentence in group:
        if len(sentence) > MOST_TOKENS:
            problem = f"expected sentences of at most {MOST_TOKENS:,} tokens, got one of {len(sentence):,}"
            raise DataError(sentence.file, f"{problem}; break the text up into sentences", line=sentence.line)


def _answer_group(
    model: Model, group: list[Sentence], question: Question, pins: list[dict[Any, Any]], before: int
) -> Iterator[Any]:
    """The answers to some sentences, which are those after the first `before`."""
    asked: dict[str, Any] = {"top_k": question.top_k, "confidence": question.confidence}
    asked |= {"pins": pins} if any(pins) else {}
    asked |= {"threshold": question.threshold} if question.threshold is not None else {}
    try:
        if question.expected:
            found: Sequence[Any] = model.expected_counts(group, question.expected, pins=asked.get("pins"))
        else:
            found = model.predict(group, **asked)
    except (ConstraintError, ScoreError) as error:
        if len(group) == 1 and not pins[0]:
            problem = "the model gives no analysis of this sentence a finite score: its weights are broken"
            raise DataError(group[0].file, f"{problem}; train it again", line=group[0].line) from error
        if len(group) == 1:
            told = shown_pins(question.pins, before + 1)
            problem = f"no analysis agrees with the pins {told}; drop one of them, or pin others that go together"
            raise DataError(group[0].file, problem, line=group[0].line) from error
        for i, sentence in enumerate(group):  # one by one, to name the sentence
            yield from _answer_group(model, [sentence], question, [pins[i]], before + i)
        return
    yield from found


# Pins: what the user knows of a word, written TOKEN=VALUE for every sentence or SENTENCE:TOKEN=VALUE for one.

SHOWN = 100  # characters of a pin that a message shows
_PIN = re.compile(r"(?:(?P<sentence>\d{1,9}):)?(?P<token>\d{1,9})(?:-(?P<last>\d{1,9}))?=(?P<value>.+)")


@dataclass(frozen=True)
class Pin:
    """What is known of tokens `token` to `last` (from 1) of sentence `sentence` (from 1; None is every sentence)."""

    sentence: int | None
    token: int
    last: int
    value: str
    text: str

    @property
    def place(self) -> Any:
        """What `predict` calls it: a token, or where several begin and end, counted from 0."""
        return self.token - 1 if self.last == self.token else (self.token - 1, self.last)

    def read_by(self, model: Model, n: int | None = None) -> Any:
        """The value as the model takes it, for a sentence of `n` words."""
        try:
            return model.pinned(self.value, n)
        except TrellisworkError as error:
            raise TrellisworkError(f"--pin {self.text[:SHOWN]}: {error}") from error


def parse_pins(texts: Sequence[str], model: Model) -> list[Pin]:
    """Pins as typed, refused if they are malformed or say what the model does not know."""
    pins = []
    for text in texts:
        match = _PIN.fullmatch(text.strip())
        if match is None or int(match["token"]) < 1 or match["sentence"] == "0":
            problem = (
                "expected TOKEN=TAG or SENTENCE:TOKEN=TAG, counted from 1, such as 3=B-PER, 2:3=B-PER or 3=2:nsubj"
            )
            raise TrellisworkError(f"--pin: {problem}; got {text!r}")
        sentence, token = int(match["sentence"]) if match["sentence"] else None, int(match["token"])
        last = int(match["last"] or token)
        if match["last"] and (model.learns_from != "pairs" or last < token):
            problem = "expected one token, or of a transducer the first and the last of several, such as 2-3=F"
            raise TrellisworkError(f"--pin: {problem}; got {text!r}")
        pin = Pin(sentence, token, last, match["value"], text)
        pin.read_by(model)
        pins.append(pin)
    return pins


def pins_for(pins: Sequence[Pin], number: int, sentence: Sentence, model: Model) -> dict[Any, Any]:
    """The pins of the sentence with this number, by place counted from 0."""
    found: dict[Any, Pin] = {}
    for pin in pins:
        if pin.sentence not in (None, number):
            continue
        if pin.last > len(sentence):
            problem = f"--pin {pin.text} names token {pin.last}, the sentence has {len(sentence)}; pin one of those"
            raise DataError(sentence.file, problem, line=sentence.line)
        other = found.setdefault(pin.place, pin)
        if other.value != pin.value:
            raise TrellisworkError(f"--pin {pin.text}: token {pin.token} is already pinned to {other.value}; drop one")
    return {i: pin.read_by(model, len(sentence)) for i, pin in found.items()}


def shown_pins(pins: Sequence[Pin], number: int) -> str:
    """The pins of the sentence with this number as they were typed."""
    return ", ".join(pin.text for pin in pins if pin.sentence in (None, number))


def require_used(pins: Sequence[Pin], n_sentences: int, file: str) -> None:
    """A pin on a sentence that never came is a mistake worth telling."""
    for pin in pins:
        if pin.sentence is not None and pin.sentence > n_sentences:
            problem = f"--pin {pin.text} names sentence {pin.sentence}, the input has {n_sentences}; correct the pin"
            raise DataError(file, problem)


# What is worth knowing about new sources: symbols that a transducer has never seen, and searches that it gave up.


def noting_unknown(model: Any, pairs: Iterable[Sentence]) -> Iterator[Sentence]:
    """The sources of a transducer as they are; after the last, a line about symbols that it does not know."""
    if model.learns_from != "pairs":
        yield from pairs
        return
    known: dict[str, bool] = {}
    unknown: Counter[str] = Counter()
    n_sources, n_affected, first = 0, 0, ""
    for pair in pairs:
        n_sources += 1
        strange = [word for word in set(pair.words) if not _looked_up(word, model, known)]
        if strange:
            unknown.update(strange)
            n_affected += 1
            first = first or f"{pair.file}:{pair.line}"
        yield pair
    if unknown:
        symbols = model.unknown_text([symbol for symbol, _ in unknown.most_common()])
        say(f"note: {n_affected:,} of {n_sources:,} sources have symbols that the model has never seen, "
            f"the first in {first}: {symbols}")  # fmt: skip


def _looked_up(word: str, model: Any, known: dict[str, bool]) -> bool:
    """Whether the model knows a symbol, asked once for each; one that cannot say knows all."""
    if word not in known:
        known[word] = model.knows(word) is not False
    return known[word]


def noting_uncertain(model: Any, answers: Iterable[tuple[Sentence, Answer]]) -> Iterator[tuple[Sentence, Answer]]:
    """The answers as they are; after the last, a line about those that may not be the best.

    Models that search with a beam anyway are never certain, and nothing is said.
    """
    total, uncertain, first = 0, 0, ""
    for pair, answer in answers:
        total += 1
        if model.search == "exact" and not answer.certain:
            uncertain += 1
            first = first or f"{pair.file}:{pair.line}"
        yield pair, answer
    if uncertain:
        say(f"note: {uncertain:,} of {total:,} answers are the best that was found, and others may be more probable: "
            f"the search was given up, first in {first}")  # fmt: skip
