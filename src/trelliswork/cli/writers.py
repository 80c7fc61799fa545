"""Answers as text: CoNLL columns, JSON lines, or for reading on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from rich.text import Text

from trelliswork.cli.answers import Answer
from trelliswork.cli.visible import visible
from trelliswork.data import json_text
from trelliswork.data.columns import columns_text
from trelliswork.draw.svg import percent
from trelliswork.models import Confidences, SpanConfidence
from trelliswork.tags.schemes import spans_of

NOTHING = "_"
COLOURS = ("cyan", "green", "magenta", "yellow", "blue", "red")
Writer = Callable[["Answer"], str]


def conll_writer(delimiter: str, *, title: str = "") -> Writer:
    """Word, further columns, tag; then the probability of the tag and, inside a span, of the span.

    With several analyses each is a block of its own under a comment with `title` and its probability; the
    probabilities of tags and spans are those of the first.
    """

    def write(answer: Answer) -> str:
        if answer.analyses is None:
            return _block(answer, answer.tags, True, delimiter)
        n = len(answer.analyses)
        blocks = []
        for i, analysis in enumerate(answer.analyses, 1):
            heading = f"# {title}analysis {i} of {n}: probability {analysis.probability:.6f}\n"
            blocks.append(heading + _block(answer, analysis.tags, i == 1, delimiter))
        return "".join(blocks)

    return write


def _block(answer: Answer, tags: Sequence[str], is_best: bool, delimiter: str) -> str:
    sentence = answer.sentence
    columns: list[Sequence[str]] = [sentence.words, *sentence.features, tags]
    if answer.confidences is not None:
        unsure = ((NOTHING,) * len(tags), (NOTHING,) * len(tags))
        columns += confidence_columns(answer.confidences) if is_best else unsure
    return columns_text(columns, sentence, delimiter)


def confidence_columns(confidences: Confidences) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The probability of each tag, and of the span that the token is in."""
    spans = [NOTHING] * len(confidences.tags)
    for span in confidences.spans:
        spans[span.start : span.end] = [f"{span.probability:.4f}"] * (span.end - span.start)
    return tuple(f"{p:.4f}" for p in confidences.tokens), tuple(spans)


def jsonl_writer() -> Writer:
    """The sentence as `read_jsonl` takes it, with `confidences`, `spans` and `analyses` where asked for."""

    def write(answer: Answer) -> str:
        return json_text(replace(answer.sentence, tags=tuple(answer.tags)), **json_extras(answer))

    return write


def json_extras(answer: Answer) -> dict[str, Any]:
    """What was asked for beside the tags."""
    extra: dict[str, Any] = {}
    if answer.confidences is not None:
        extra["confidences"] = [round(p, 6) for p in answer.confidences.tokens]
        extra["spans"] = [_span_record(span) for span in answer.confidences.spans]
    if answer.analyses is not None:
        extra["analyses"] = [{"probability": round(each.probability, 6), "tags": each.tags} for each in answer.analyses]
    return extra


def _span_record(span: SpanConfidence) -> dict[str, Any]:
    return {"start": span.start, "end": span.end, "label": span.label, "probability": round(span.probability, 6)}


def pretty_writer(scheme: str, render: Callable[[Text], str]) -> Writer:
    """Coloured spans in brackets, or word/TAG for plain tags; `render` turns rich text into characters."""

    def write(answer: Answer) -> str:
        words, best = answer.sentence.words, answer.confidences
        lines = [_marked(words, answer.tags, scheme, best)]
        for i, analysis in enumerate(answer.analyses or (), 1):
            heading = Text(f"{i:3d}. {100 * analysis.probability:5.1f}%  ", style="dim")
            lines.append(heading + _marked(words, analysis.tags, scheme, None))
        return "".join(render(line) for line in lines)

    return write


def _marked(words: Sequence[str], tags: Sequence[str], scheme: str, confidences: Confidences | None) -> Text:
    words, tags = [visible(word) for word in words], [visible(tag) for tag in tags]
    pieces = (
        _plain_pieces(words, tags, confidences) if scheme == "plain" else _span_pieces(words, tags, scheme, confidences)
    )
    return Text(" ").join(pieces)


def _plain_pieces(words: Sequence[str], tags: Sequence[str], confidences: Confidences | None) -> Iterator[Text]:
    for i, (word, tag) in enumerate(zip(words, tags, strict=True)):
        shown = f" {percent(confidences.tokens[i])}" if confidences is not None else ""
        yield Text.assemble(word, (f"/{tag}{shown}", colour_of(tag)))


def _span_pieces(
    words: Sequence[str], tags: Sequence[str], scheme: str, confidences: Confidences | None
) -> Iterator[Text]:
    sure = {(span.start, span.end): span.probability for span in confidences.spans} if confidences is not None else {}
    position = 0
    for start, end, label in spans_of(tags, scheme):
        yield from (Text(word) for word in words[position:start])
        shown = f" {percent(sure[start, end])}" if (start, end) in sure else ""
        yield Text.assemble(
            (f"[{' '.join(words[start:end])} ", f"bold {colour_of(label)}"), (f"{label}{shown}]", colour_of(label))
        )
        position = end
    yield from (Text(word) for word in words[position:])


def marked_text(words: Sequence[str], tags: Sequence[str], scheme: str, confidences: Confidences | None) -> str:
    """A sentence with its spans in brackets, without colour."""
    return _marked(words, tags, scheme, confidences).plain


def colour_of(label: str) -> str:
    """A colour that depends on the label alone."""
    return COLOURS[sum(label.encode()) % len(COLOURS)]
