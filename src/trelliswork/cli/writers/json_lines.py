"""Answers as JSON lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from trelliswork.cli.writers.base import Writer, marked_spans
from trelliswork.data import Sentence, json_text
from trelliswork.data.brackets import bracket_text
from trelliswork.models.base import DEPREL, HEAD, Answer, Arc


class JsonWriter(Writer):
    """The sentence as `read_jsonl` takes it, with `confidences`, `spans` and `analyses` where asked for.

    Raw text has its `text`, the `offsets` of its words, and spans with their places. Several tasks: as such a model
    learns from it, and under `tasks` what was asked for about each.
    """

    def __init__(self, schemes: Mapping[str, str]) -> None:
        self.schemes = schemes

    def write(self, sentence: Sentence, answer: Answer) -> str:
        written, about = self.members(sentence, answer)
        return json_text(written, **about)

    def members(self, sentence: Sentence, answer: Answer) -> tuple[Sentence, dict[str, object]]:
        """Return the sentence as it is written, and what is said about it."""
        if answer.tasks:
            *first, last = (tuple(each.value) for each in answer.tasks.values())
            about = {
                task: {"tags": each.value, **json_extras(sentence, each, self.schemes[task])}
                for task, each in answer.tasks.items()
            }
            return replace(sentence, features=tuple(first), tags=last), {"tasks": about}
        if answer.has_arcs:
            return replace(sentence, tags=None), tree_members(answer)
        if answer.has_brackets:
            return replace(sentence, tags=None), bracket_members(answer)
        if isinstance(answer.value, list):
            tagged = replace(sentence, tags=tuple(answer.value))
            return tagged, json_extras(sentence, answer, self.schemes[""])
        return replace(sentence, tags=None), whole_members(answer)


def whole_members(answer: Answer) -> dict[str, object]:
    """Return a value of the whole input, and what was asked for about it."""
    return {"value": answer.value, **value_members(answer)}


def value_members(answer: Answer) -> dict[str, object]:
    """Of any other value: its probability, the symbols of a string where asked for, and the best values."""
    if isinstance(answer.value, Mapping):
        return event_members(answer)
    members: dict[str, object] = {}
    if answer.is_string and answer.probability is not None:
        members["probability"] = round(answer.probability, 6)
    if not answer.certain:
        members["certain"] = False
    if answer.unknown:
        members["unknown"] = list(answer.unknown)
    if answer.parts:
        members["symbols"] = [
            {"symbol": each.label, "start": each.start, "end": each.end, "probability": round(each.probability, 6)}
            for each in answer.parts
        ]
    if answer.seconds:
        members["seconds"] = [list(each) for each in answer.seconds]
    if answer.alternatives:
        members["alternatives"] = [
            {"probability": round(each.probability, 6), "value": each.value} for each in answer.alternatives
        ]
    return members


def event_members(answer: Answer) -> dict[str, object]:
    """Of events or frames, where asked for: the probability, how the value was found, parts, and the best values.

    An argument or a role has the last word of what it belongs to as its head, counted from 1.
    """
    members: dict[str, object] = {} if answer.probability is None else {"probability": round(answer.probability, 6)}
    if answer.probability is not None or answer.parts or answer.spans:
        members["search"] = answer.search
    for name, parts in (("spans", answer.spans), ("parts", answer.parts)):
        if parts:
            members[name] = [
                {"start": each.start, "end": each.end, "label": each.label, "probability": round(each.probability, 6)}
                | ({} if each.head is None else {"head": each.head})
                for each in parts
            ]
    if answer.alternatives:
        members["alternatives"] = [
            {"probability": round(each.probability, 6), "value": each.value} for each in answer.alternatives
        ]
    return members


def tree_members(answer: Answer) -> dict[str, object]:
    """Return a dependency tree: heads, labels, further columns, probabilities where asked for, and the best trees."""
    members: dict[str, object] = _heads_and_labels(answer.value)
    members |= {name.lower(): list(answer.columns[name]) for name in answer.columns if name not in (HEAD, DEPREL)}
    members |= {"lemmas": list(answer.lemmas)} if answer.lemmas else {}
    if answer.parts:
        heads = [part.head_probability for part in answer.parts]
        members |= {} if None in heads else {"head_probabilities": [round(each or 0.0, 6) for each in heads]}
        members["arc_probabilities"] = [round(part.probability, 6) for part in answer.parts]
    if answer.parts and answer.probability is not None:
        members["probability"] = round(answer.probability, 6)
    if answer.alternatives:
        members["analyses"] = [
            {"probability": round(each.probability, 6), **_heads_and_labels(each.value)} for each in answer.alternatives
        ]
    return members


def bracket_members(answer: Answer) -> dict[str, object]:
    """Return a tree in brackets, probabilities of tags and constituents where asked for, and the best trees."""
    members: dict[str, object] = {"tree": bracket_text(answer.value)}
    if answer.parts:
        members |= {"tags": [part.label for part in answer.parts]}
        members |= {"confidences": [round(part.probability, 6) for part in answer.parts]}
        members["brackets"] = [
            {"start": each.start, "end": each.end, "label": each.label, "probability": round(each.probability, 6)}
            for each in answer.spans
        ]
    if answer.parts and answer.probability is not None:
        members["probability"] = round(answer.probability, 6)
    if answer.alternatives:
        members["analyses"] = [
            {"probability": round(each.probability, 6), "tree": bracket_text(each.value)}
            for each in answer.alternatives
        ]
    return members


def _heads_and_labels(arcs: Sequence[Arc]) -> dict[str, object]:
    return {"heads": [head for head, _ in arcs], "labels": [label for _, label in arcs]}


class ArrayWriter(Writer):
    """Writer of one JSON array, from the lines of another writer."""

    def __init__(self, lines: Writer) -> None:
        self.lines, self.between = lines, "[\n"

    def begin(self) -> str:
        return self._join(self.lines.begin())

    def write(self, sentence: Sentence, answer: Answer) -> str:
        return self._join(self.lines.write(sentence, answer))

    def end(self) -> str:
        return f"{self._join(self.lines.end())}\n]\n"

    def _join(self, text: str) -> str:
        records = []
        for line in filter(str.strip, text.split("\n")):
            records.append(self.between + line.strip())
            self.between = ",\n"
        return "".join(records)


def json_extras(sentence: Sentence, answer: Answer, scheme: str) -> dict[str, object]:
    """Return the members that were asked for in addition to the tags.

    Args:
        sentence: The sentence.
        answer: Its answer.
        scheme: Scheme of the tags.

    Returns:
        Members by name.
    """
    extra: dict[str, object] = {"lemmas": list(answer.lemmas)} if answer.lemmas else {}
    if answer.parts:
        extra["confidences"] = [round(part.probability, 6) for part in answer.parts]
    if answer.parts or (sentence.offsets and scheme != "plain"):
        extra["spans"] = [each.record() for each in marked_spans(sentence, answer, scheme)]
    if answer.alternatives:
        extra["analyses"] = [
            {"probability": round(each.probability, 6), "tags": each.value} for each in answer.alternatives
        ]
    return extra
