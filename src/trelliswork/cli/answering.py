"""From one file to its answers, batch by batch: what `predict` does, and what bulk annotation does to each shard.

A file travels in one direction: `input_of` decides what it is, `open_input` reads it, `answers` asks the model, and
`write_answers` writes.

A pin is what the user knows of a word. Its value is what the model makes of it: a tag such as B-PER, or of a parser a
head, with a label or without, such as 2 or 2:nsubj. Of a transducer it is the symbols that a place of the source
becomes, or that several do, such as 2-3=F.
"""

from __future__ import annotations

import itertools
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from trelliswork.cli.inputs import choices_of, kind_of, open_new
from trelliswork.cli.messages import say
from trelliswork.cli.writers.base import Target
from trelliswork.cli.writing_answers import Inputs, Output, keeps, writer_for
from trelliswork.data import Choices, Sentence, json_text
from trelliswork.data.kept_lines import KeptLines
from trelliswork.data.readers import InputKind
from trelliswork.errors import ConstraintError, DataError, ScoreError, TrellisworkError
from trelliswork.models.base import Answer, Model
from trelliswork.models.expected_counts import ExpectedCount, total_counts
from trelliswork.reading import name_of

if TYPE_CHECKING:
    from trelliswork.models.transducers.transducer import Transducer

BATCH = 2048  # sentences in memory at a time
MOST_TOKENS = 100_000  # of one sentence, whose scores are in memory together

Answered = tuple[Sentence, Any]  # an `Answer`, or expected counts where they are asked for
Place = int | tuple[int, int]  # a token, or the beginning and end of several, counted from 0
Pinned = dict[Place, object]  # what is known of a sentence, as the model takes it
Rename = Callable[[Sentence], Sentence]


@dataclass(frozen=True)
class Question:
    """Question about each sentence: the best answer, more of them, probabilities, or counts."""

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


@dataclass(frozen=True)
class Job:
    """Instructions for files: how to read them, what to find out about each sentence, and what to write."""

    question: Question
    layout: Choices
    read_as: str | None = None  # what the files are; None goes by their names
    output: Output | None = None  # None is the format that is read
    by_line: bool = False  # of plain text: each line is a separate text
    unit: str | None = None  # of character offsets in plain text

    def text_options(self, kind: InputKind) -> dict[str, Any]:
        """Return the options for plain text; for other files there are none."""
        if kind == "text":
            return {"by_line": self.by_line, "unit": self.unit or "code-points"}
        if self.unit is not None:
            raise TrellisworkError("--offsets is for plain text, whose words have places in the file; add --text")
        return {}


def input_of(model: Model, file: str, layout: Choices, read_as: str | None) -> Inputs:
    """Decide what a file is, by its name or as `read_as` says, and in which layout it is read.

    Args:
        model: The model that will answer.
        file: The file, or - for standard input.
        layout: Columns that the user has named.
        read_as: The format that the user has named; None to go by the file's name.

    Returns:
        What is known of the file before it is open.
    """
    kind = kind_of(file, read_as, model)
    layout = replace(layout, are_columns=read_as is not None, folder=os.path.dirname(file))
    return Inputs(file, kind, choices_of(model, layout, kind))


def open_input(model: Model, given: Inputs, job: Job) -> tuple[Inputs, Iterable[Sentence]]:
    """Return what is known about a file once it is open, and its sentences, which are read as they are asked for.

    Args:
        model: The model that will answer.
        given: What is known of the file.
        job: What is asked for.

    Returns:
        What is known once it is open, and the sentences.
    """
    is_kept, several = keeps(given.kind, job.output, job.question.top_k, model), any(model.heads)
    kept = KeptLines(quoted=given.kind == "csv") if is_kept else None
    columns = replace(given.choices, feature_columns=()) if several else given.choices  # of several tasks: words alone
    keep = None if kept is None else kept.keep
    format, sentences = open_new(given.file, given.kind, columns, keep, **job.text_options(given.kind))
    if several:
        sentences = (replace(sentence, tags=None, features=()) for sentence in sentences)
    return replace(given, kept=kept, format=format), sentences


def write_answers(
    model: Model, given: Inputs, job: Job, target: Target, *, batch: int = BATCH, rename: Rename | None = None
) -> int:
    """Answer all sentences of a file.

    Args:
        model: The model that answers.
        given: The file, see `input_of`.
        job: What to find out, and what to write.
        target: The open file to write to.
        batch: Number of sentences that are answered together.
        rename: Gives a sentence of a copy the place in the original that notes name.

    Returns:
        The number of sentences.
    """
    inputs, sentences = open_input(model, given, job)
    if rename is not None and inputs.kept is None:  # lines that are kept have the places of the copy
        sentences = map(rename, sentences)
    writer, n = writer_for(job.output, inputs, model, job.question.top_k, target), 0
    target.write(writer.begin())
    answered = answers(model, note_unknown(model, sentences), job.question, batch=batch)
    for sentence, answer in note_uncertain(model, answered):
        target.write(writer.write(sentence, answer))
        n += 1
        if batch == 1:
            target.flush()
    target.write(writer.end())
    return n


def write_expected(model: Model, given: Inputs, job: Job, target: Target) -> None:
    """Write how many parts of each label to expect in a file, with the error bar; as JSON, in each of its sentences.

    Args:
        model: The model that counts.
        given: What is known of the file.
        job: What is asked for, with the labels to count.
        target: Where to write.
    """
    if not model.counts_parts:
        kind = type(model).__name__
        raise TrellisworkError(
            f"--expected needs a model with an exact distribution over its answers, such as a CRF; got a {kind}"
        )
    if job.output not in (None, Output.jsonl):
        raise TrellisworkError(f"--expected writes a line for each label, or --format jsonl; got {job.output}")
    _, sentences = open_input(model, given, replace(job, output=Output.pretty))  # which needs none of the lines again
    totals: list[ExpectedCount] = []
    for sentence, counts in answers(model, sentences, job.question):
        if job.output is Output.jsonl:
            target.write(json_text(replace(sentence, tags=None), expected=[each.record() for each in counts]))
        totals = total_counts([totals, counts])
    if job.output is None:
        target.writelines(f"{each} in {name_of(given.file)}\n" for each in totals)


def answers(
    model: Model, sentences: Iterable[Sentence], question: Question, *, batch: int = BATCH
) -> Iterator[Answered]:
    """Yield the sentences with their answers, in order; memory is that of one batch.

    Args:
        model: The model that answers.
        sentences: The sentences.
        question: What is asked of each.
        batch: Number of sentences that are answered together.

    Returns:
        An iterator over sentences with their answers.
    """
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
    model: Model, group: list[Sentence], question: Question, pins: list[Pinned], before: int
) -> Iterator[Any]:
    """Yield the answers to some sentences, which are those after the first `before`."""
    asked: dict[str, Any] = {"top_k": question.top_k, "confidence": question.confidence}
    asked |= {"pins": pins} if any(pins) else {}
    asked |= {"threshold": question.threshold} if question.threshold is not None else {}
    try:
        if question.expected:
            answered: Sequence[Any] = model.expected_counts(group, question.expected, pins=asked.get("pins"))
        else:
            answered = model.predict(group, **asked)
    except (ConstraintError, ScoreError) as error:
        if len(group) == 1 and not pins[0]:
            problem = "the model gives no analysis of this sentence a finite score: its weights are broken"
            raise DataError(group[0].file, f"{problem}; train it again", line=group[0].line) from error
        if len(group) == 1:
            pinned = pins_text(question.pins, before + 1)
            problem = f"no analysis agrees with the pins {pinned}; drop one of them, or pin others that go together"
            raise DataError(group[0].file, problem, line=group[0].line) from error
        for i, sentence in enumerate(group):  # one by one, to name the sentence
            yield from _answer_group(model, [sentence], question, [pins[i]], before + i)
        return
    yield from answered


# Pins: what the user knows of a word, written TOKEN=VALUE for every sentence or SENTENCE:TOKEN=VALUE for one.

SHOWN = 100  # characters of a pin that a message shows
_PIN = re.compile(r"(?:(?P<sentence>\d{1,9}):)?(?P<token>\d{1,9})(?:-(?P<last>\d{1,9}))?=(?P<value>.+)")


@dataclass(frozen=True)
class Pin:
    """Pin on tokens `token` to `last` (from 1) of sentence `sentence` (from 1; None is every sentence)."""

    sentence: int | None
    token: int
    last: int
    value: str
    text: str

    @property
    def place(self) -> Place:
        """The key of its place in `pins` of `predict`: a token, or the beginning and end of several, counted from 0."""
        return self.token - 1 if self.last == self.token else (self.token - 1, self.last)

    def read_by(self, model: Model, n: int | None = None) -> object:
        """Return the value as the model takes it, for a sentence of `n` words."""
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


def pins_for(pins: Sequence[Pin], number: int, sentence: Sentence, model: Model) -> Pinned:
    """Return the pins of the sentence with this number, by place counted from 0.

    Args:
        pins: Pins of the command line.
        number: Number of the sentence, counted from 1.
        sentence: The sentence.
        model: The model, which says what a pin means.

    Returns:
        What is known of each place.
    """
    by_place: dict[Place, Pin] = {}
    for pin in pins:
        if pin.sentence not in (None, number):
            continue
        if pin.last > len(sentence):
            problem = f"--pin {pin.text} names token {pin.last}, the sentence has {len(sentence)}; pin one of those"
            raise DataError(sentence.file, problem, line=sentence.line)
        other = by_place.setdefault(pin.place, pin)
        if other.value != pin.value:
            raise TrellisworkError(f"--pin {pin.text}: token {pin.token} is already pinned to {other.value}; drop one")
    return {i: pin.read_by(model, len(sentence)) for i, pin in by_place.items()}


def pins_text(pins: Sequence[Pin], number: int) -> str:
    """Return the pins of the sentence with this number as they were typed."""
    return ", ".join(pin.text for pin in pins if pin.sentence in (None, number))


def require_used(pins: Sequence[Pin], n_sentences: int, file: str) -> None:
    """Refuse a pin on a sentence that the file does not have.

    Args:
        pins: Pins of the command line.
        n_sentences: Number of sentences that were read.
        file: Name of the file.
    """
    for pin in pins:
        if pin.sentence is not None and pin.sentence > n_sentences:
            problem = f"--pin {pin.text} names sentence {pin.sentence}, the input has {n_sentences}; correct the pin"
            raise DataError(file, problem)


# What is worth knowing about new sources: symbols that a transducer has never seen, and searches that it gave up.


def note_unknown(model: Model, pairs: Iterable[Sentence]) -> Iterator[Sentence]:
    """Yield the sources of a transducer as they are; after the last, a line about symbols that it does not know."""
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
        symbols = cast("Transducer", model).unknown_text([symbol for symbol, _ in unknown.most_common()])
        say(f"note: {n_affected:,} of {n_sources:,} sources have symbols that the model has never seen, "
            f"the first in {first}: {symbols}")  # fmt: skip


def _looked_up(word: str, model: Model, known: dict[str, bool]) -> bool:
    """Return whether the model knows a symbol, asked once for each; one that cannot say knows all."""
    if word not in known:
        known[word] = model.knows(word) is not False
    return known[word]


def note_uncertain(model: Model, answers: Iterable[tuple[Sentence, Answer]]) -> Iterator[tuple[Sentence, Answer]]:
    """Yield the answers as they are; after the last, a line about those that may not be the best.

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
