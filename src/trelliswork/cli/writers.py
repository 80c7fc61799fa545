"""Answers as text: CoNLL columns, JSON lines, or for reading on a terminal.

A list of tags is written token by token, the answers of several tasks side by side, and any other value on one line
with its input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rich.text import Text

from trelliswork.cli.visible import visible
from trelliswork.data import Sentence, json_text
from trelliswork.data.columns import columns_text
from trelliswork.draw.svg import percent
from trelliswork.models.base import Answer, PartProbability
from trelliswork.tags.schemes import spans_of

NOTHING = "_"
COLOURS = ("cyan", "green", "magenta", "yellow", "blue", "red")
Writer = Callable[[Sentence, Answer], str]


def conll_writer(delimiter: str) -> Writer:
    """Word, further columns, tag; then the probability of the tag and, inside a span, of the span.

    With several analyses each is a block of its own under a comment with its probability; the probabilities of tags and
    spans are those of the first. Several tasks have a tag with its probabilities each, or blocks one after another.
    """

    def write(sentence: Sentence, answer: Answer) -> str:
        if not answer.tasks:
            return _blocks(sentence, answer, delimiter) if isinstance(answer.value, list) else _line(sentence, answer)
        if any(each.alternatives for each in answer.tasks.values()):
            of_tasks = answer.tasks.items()
            return "".join(_blocks(sentence, each, delimiter, title=f"{task}, ") for task, each in of_tasks)
        columns: list[Sequence[str]] = [sentence.words]
        for each in answer.tasks.values():
            columns += [each.value, *confidence_columns(each)]
        return columns_text(columns, sentence, delimiter)

    return write


def _blocks(sentence: Sentence, answer: Answer, delimiter: str, title: str = "") -> str:
    sure = confidence_columns(answer)
    columns = [sentence.words, *sentence.features]
    if not answer.alternatives:
        return columns_text([*columns, answer.value, *sure], sentence, delimiter)
    blocks, n, unsure = [], len(answer.alternatives), [(NOTHING,) * len(column) for column in sure]
    for i, each in enumerate(answer.alternatives, 1):
        heading = f"# {title}analysis {i} of {n}: probability {each.probability:.6f}\n"
        own = [*columns, each.value, *(sure if i == 1 else unsure)]
        blocks.append(heading + columns_text(own, sentence, delimiter))
    return "".join(blocks)


def _line(sentence: Sentence, answer: Answer) -> str:
    """The input and its value, or each of the best values with its probability."""
    text = " ".join(sentence.words)
    if not answer.alternatives:
        return f"{text}\t{answer.value}\n"
    return "".join(f"{text}\t{each.value}\t{each.probability:.6f}\n" for each in answer.alternatives)


def confidence_columns(answer: Answer) -> list[tuple[str, ...]]:
    """The probability of each tag, and of the span that the token is in; nothing if they are not known."""
    if not answer.parts:
        return []
    spans = [NOTHING] * len(answer.parts)
    for span in answer.spans:
        spans[span.start : span.end] = [f"{span.probability:.4f}"] * (span.end - span.start)
    return [tuple(f"{part.probability:.4f}" for part in answer.parts), tuple(spans)]


def jsonl_writer() -> Writer:
    """The sentence as `read_jsonl` takes it, with `confidences`, `spans` and `analyses` where asked for.

    Several tasks: as such a model learns from it, and under `tasks` what was asked for about each.
    """

    def write(sentence: Sentence, answer: Answer) -> str:
        if answer.tasks:
            *first, last = (tuple(each.value) for each in answer.tasks.values())
            about = {task: {"tags": each.value, **_extras(each)} for task, each in answer.tasks.items()}
            return json_text(replace(sentence, features=tuple(first), tags=last), tasks=about)
        if isinstance(answer.value, list):
            return json_text(replace(sentence, tags=tuple(answer.value)), **_extras(answer))
        found = [{"probability": round(each.probability, 6), "value": each.value} for each in answer.alternatives]
        return json_text(replace(sentence, tags=None), value=answer.value, **({"alternatives": found} if found else {}))

    return write


def _extras(answer: Answer) -> dict[str, Any]:
    """What was asked for beside the tags."""
    extra: dict[str, Any] = {}
    if answer.parts:
        extra["confidences"] = [round(part.probability, 6) for part in answer.parts]
        extra["spans"] = [_span_record(span) for span in answer.spans]
    if answer.alternatives:
        extra["analyses"] = [
            {"probability": round(each.probability, 6), "tags": each.value} for each in answer.alternatives
        ]
    return extra


def _span_record(span: PartProbability) -> dict[str, Any]:
    return {"start": span.start, "end": span.end, "label": span.label, "probability": round(span.probability, 6)}


def pretty_writer(schemes: Mapping[str, str], render: Callable[[Text], str]) -> Writer:
    """Coloured spans in brackets, or word/TAG for plain tags; a line for each task, whose schemes are given by name.

    `render` turns rich text into characters.
    """
    width = max(map(len, schemes))

    def write(sentence: Sentence, answer: Answer) -> str:
        if not answer.tasks and not isinstance(answer.value, list):
            return visible(_line(sentence, answer))
        of_tasks = answer.tasks or {"": answer}
        before = {task: f"{task:{width}}  " if task else "" for task in of_tasks}
        return "".join(before[task] + pretty(sentence.words, each, schemes[task]) for task, each in of_tasks.items())

    def pretty(words: Sequence[str], answer: Answer, scheme: str) -> str:
        lines = [_marked(words, answer.value, scheme, answer.parts, answer.spans)]
        for i, each in enumerate(answer.alternatives, 1):
            heading = Text(f"{i:3d}. {100 * each.probability:5.1f}%  ", style="dim")
            lines.append(heading + _marked(words, each.value, scheme))
        return "".join(render(line) for line in lines)

    return write


def _marked(
    words: Sequence[str],
    tags: Sequence[str],
    scheme: str,
    parts: Sequence[PartProbability] = (),
    spans: Sequence[PartProbability] = (),
) -> Text:
    words, tags = [visible(word) for word in words], [visible(tag) for tag in tags]
    pieces = _plain_pieces(words, tags, parts) if scheme == "plain" else _span_pieces(words, tags, scheme, spans)
    return Text(" ").join(pieces)


def _plain_pieces(words: Sequence[str], tags: Sequence[str], parts: Sequence[PartProbability]) -> Iterator[Text]:
    for i, (word, tag) in enumerate(zip(words, tags, strict=True)):
        shown = f" {percent(parts[i].probability)}" if parts else ""
        yield Text.assemble(word, (f"/{tag}{shown}", colour_of(tag)))


def _span_pieces(
    words: Sequence[str], tags: Sequence[str], scheme: str, spans: Sequence[PartProbability]
) -> Iterator[Text]:
    sure = {(span.start, span.end): span.probability for span in spans}
    position = 0
    for start, end, label in spans_of(tags, scheme):
        yield from (Text(word) for word in words[position:start])
        shown = f" {percent(sure[start, end])}" if (start, end) in sure else ""
        yield Text.assemble(
            (f"[{' '.join(words[start:end])} ", f"bold {colour_of(label)}"), (f"{label}{shown}]", colour_of(label))
        )
        position = end
    yield from (Text(word) for word in words[position:])


def marked_text(words: Sequence[str], tags: Sequence[str], scheme: str, spans: Sequence[PartProbability]) -> str:
    """A sentence with its spans in brackets, without colour."""
    return _marked(words, tags, scheme, spans=spans).plain


def colour_of(label: str) -> str:
    """A colour that depends on the label alone."""
    return COLOURS[sum(label.encode()) % len(COLOURS)]
