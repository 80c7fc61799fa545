"""Answers about a stream of sentences, batch by batch, with as much explanation as is asked for."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from trelliswork.cli.pins import Pin, pins_for, require_used, shown_pins
from trelliswork.data import Sentence
from trelliswork.errors import ConstraintError, DataError, ScoreError, TrellisworkError
from trelliswork.models.base import Model

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
