"""Base of the writers of answers, and helpers that several of them need."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import IO, Any, NamedTuple

from trelliswork.data import Sentence
from trelliswork.data.choices import CONLLU_NAMES
from trelliswork.data.raw_sentences import place_words
from trelliswork.models.base import Answer
from trelliswork.tags.schemes import spans_of

NOTHING = "_"
Target = IO[Any]  # a file of text, or of bytes
Written = Any  # text, or bytes


class Writer(ABC):
    """Answers as text, or as bytes of a binary format, one after another: `begin`, `write` for each, `end`."""

    def begin(self) -> Written:
        """Return the text before all answers."""
        return ""

    @abstractmethod
    def write(self, sentence: Sentence, answer: Answer) -> Written:
        """Return an answer."""

    def end(self) -> Written:
        """Return the text behind all answers."""
        return ""


class Marked(NamedTuple):
    """A span of an answer: words [start, end), their text, their place in raw text, and the probability if known."""

    start: int
    end: int
    label: str
    text: str
    place: tuple[int, int] | None
    probability: float | None

    def record(self) -> dict[str, object]:
        """Return a member of JSON records."""
        members: dict[str, object] = {"start": self.start, "end": self.end, "label": self.label, "text": self.text}
        if self.place is not None:
            members |= {"start_char": self.place[0], "end_char": self.place[1]}
        if self.probability is not None:
            members["probability"] = round(self.probability, 6)
        return members


def marked_spans(sentence: Sentence, answer: Answer, scheme: str) -> list[Marked]:
    """Return the spans that the tags of an answer spell.

    Args:
        sentence: The sentence.
        answer: Its answer.
        scheme: Scheme of the tags.

    Returns:
        Spans with their labels and probabilities.
    """
    if scheme == "plain" or not isinstance(answer.value, list):
        return []
    sure = {(span.start, span.end): span.probability for span in answer.spans}
    spans = spans_of(answer.value, scheme)
    places = _places_in_text(sentence) if spans else ()
    return [
        Marked(
            start, end, label, _text(sentence, places[start:end], start, end), _place(sentence, start, end),
            sure.get((start, end)),
        )
        for start, end, label in spans
    ]  # fmt: skip


def _places_in_text(sentence: Sentence) -> Sequence[tuple[int, int]]:
    """Return the places of words in the text of the sentence, in code points, whatever unit its offsets count."""
    if not (sentence.text and sentence.offsets):
        return ()
    base = sentence.offsets[0][0]
    if sentence.offsets[-1][1] - base == len(sentence.text):
        return [(start - base, end - base) for start, end in sentence.offsets]
    multiword = {first: (last, form) for first, last, form in sentence.multiword}
    return place_words(Sentence(sentence.words), sentence.text, multiword).offsets


def _text(sentence: Sentence, places: Sequence[tuple[int, int]], start: int, end: int) -> str:
    """Return words as they are written; with blanks between them if that is not known."""
    return sentence.text[places[0][0] : places[-1][1]] if places else " ".join(sentence.words[start:end])


def _place(sentence: Sentence, start: int, end: int) -> tuple[int, int] | None:
    return (sentence.offsets[start][0], sentence.offsets[end - 1][1]) if sentence.offsets else None


def answers_by_task(answer: Answer) -> Mapping[str, Answer]:
    """Return the answer of each task; of a single task under the empty name."""
    return answer.tasks or {"": answer}


def word_columns(answer: Answer) -> dict[str, Sequence[str]]:
    """Return what is said of each word, by name: its tag, or the columns of CoNLL-U in their order."""
    if not answer.columns:
        return {"tag": answer.value}
    return {name: answer.columns[name] for name in sorted(answer.columns, key=CONLLU_NAMES.index)}


def confidence_columns(answer: Answer) -> dict[str, tuple[str, ...]]:
    """Return the probability of each tag, and of the span that the token is in; nothing if they are not known.

    Of a dependency tree, that of each head if it is known, and that of head and label together.
    """
    if not answer.parts:
        return {}
    parts = tuple(f"{part.probability:.4f}" for part in answer.parts)
    if answer.has_arcs:
        heads = [part.head_probability for part in answer.parts if part.head_probability is not None]
        known = {"head_probability": tuple(f"{each:.4f}" for each in heads)} if len(heads) == len(parts) else {}
        return {**known, "arc_probability": parts}
    spans = [NOTHING] * len(answer.parts)
    for span in answer.spans:
        spans[span.start : span.end] = [f"{span.probability:.4f}"] * (span.end - span.start)
    return {"tag_probability": parts, "span_probability": tuple(spans)}


def place_columns(sentence: Sentence) -> list[Sequence[str]]:
    """Return the columns with the places of the words of raw text."""
    return [[str(place) for place in ends] for ends in zip(*sentence.offsets, strict=True)]


def one_line(sentence: Sentence, answer: Answer) -> str:
    """Return the input with its value, or with each of the best and its probability; for values that are no tags."""
    text = sentence.text if answer.is_string and sentence.text else " ".join(sentence.words)
    if not answer.alternatives:
        known = f"\t{answer.probability:.6f}" if answer.is_string and answer.parts else ""
        return f"{text}\t{in_a_line(answer.value)}{known}\n"
    return "".join(f"{text}\t{in_a_line(each.value)}\t{each.probability:.6f}\n" for each in answer.alternatives)


def in_a_line(value: object) -> str:
    """Return a value as text; one of several parts, such as events, as JSON."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, Mapping) else str(value)
