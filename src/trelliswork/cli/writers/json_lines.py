"""Answers as JSON lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from trelliswork.cli.writers.base import Writer, marked_spans
from trelliswork.data import Sentence, json_text
from trelliswork.models.base import Answer


class JsonWriter(Writer):
    """The sentence as `read_jsonl` takes it, with `confidences`, `spans` and `analyses` where asked for.

    Raw text has its `text`, the `offsets` of its words, and spans with their places. Several tasks: as such a model
    learns from it, and under `tasks` what was asked for about each.
    """

    def __init__(self, schemes: Mapping[str, str]) -> None:
        self.schemes = schemes

    def write(self, sentence: Sentence, answer: Answer) -> str:
        if answer.tasks:
            *first, last = (tuple(each.value) for each in answer.tasks.values())
            about = {
                task: {"tags": each.value, **json_extras(sentence, each, self.schemes[task])}
                for task, each in answer.tasks.items()
            }
            return json_text(replace(sentence, features=tuple(first), tags=last), tasks=about)
        if isinstance(answer.value, list):
            tagged = replace(sentence, tags=tuple(answer.value))
            return json_text(tagged, **json_extras(sentence, answer, self.schemes[""]))
        found = [{"probability": round(each.probability, 6), "value": each.value} for each in answer.alternatives]
        return json_text(replace(sentence, tags=None), value=answer.value, **({"alternatives": found} if found else {}))


class ArrayWriter(Writer):
    """What another writer writes as JSON lines, as one array."""

    def __init__(self, lines: Writer) -> None:
        self.lines, self.between = lines, "[\n"

    def begin(self) -> str:
        return self._joined(self.lines.begin())

    def write(self, sentence: Sentence, answer: Answer) -> str:
        return self._joined(self.lines.write(sentence, answer))

    def end(self) -> str:
        return f"{self._joined(self.lines.end())}\n]\n"

    def _joined(self, text: str) -> str:
        found = []
        for line in filter(str.strip, text.split("\n")):
            found.append(self.between + line.strip())
            self.between = ",\n"
        return "".join(found)


def json_extras(sentence: Sentence, answer: Answer, scheme: str) -> dict[str, Any]:
    """What was asked for beside the tags."""
    extra: dict[str, Any] = {}
    if answer.parts:
        extra["confidences"] = [round(part.probability, 6) for part in answer.parts]
    if answer.parts or (sentence.offsets and scheme != "plain"):
        extra["spans"] = [each.record() for each in marked_spans(sentence, answer, scheme)]
    if answer.alternatives:
        extra["analyses"] = [
            {"probability": round(each.probability, 6), "tags": each.value} for each in answer.alternatives
        ]
    return extra
