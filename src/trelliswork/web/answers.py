"""Answers as plain values for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trelliswork.data import Sentence
from trelliswork.data.brackets import bracket_text
from trelliswork.models.base import Alternative, Answer, PartProbability
from trelliswork.models.part_choices import PartChoices
from trelliswork.tags.schemes import spans_of

PLAIN = "plain"


def sentence_record(sentence: Sentence, answer: Answer, scheme: str) -> dict[str, Any]:
    """What is known of one sentence."""
    found: dict[str, Any] = {"text": sentence.text or None, "tokens": list(sentence.words)}
    found["offsets"] = [list(each) for each in sentence.offsets] or None
    if answer.tasks:
        found["tasks"] = {name: _answer_record(each, scheme) for name, each in answer.tasks.items()}
        return found
    return found | _answer_record(answer, scheme)


def _answer_record(answer: Answer, scheme: str) -> dict[str, Any]:
    lemmas = {"LEMMA": answer.lemmas} if answer.lemmas else {}
    return {
        "value": value_record(answer.value),
        "probability": answer.probability,
        "parts": [each.record() for each in answer.parts],
        "spans": _spans(answer, scheme),
        "columns": {name: list(values) for name, values in {**lemmas, **answer.columns}.items()},
        "alternatives": [_alternative(each, scheme) for each in answer.alternatives],
    }


def value_record(value: Any) -> Any:
    """A value as JSON has it: tags, [head, label] pairs, a tree in brackets, a string."""
    if isinstance(value, list):
        return [list(each) if isinstance(each, tuple) else each for each in value]
    if value is None or isinstance(value, str | int | float | bool | dict):
        return value
    return bracket_text(value)


def _spans(answer: Answer, scheme: str) -> list[dict[str, Any]]:
    """The spans of an answer, with their places in raw text if it was that."""
    if answer.spans or answer.has_brackets:
        found = [each.record() for each in answer.spans]
    else:
        found = _spelled(answer.value, scheme)
    for each in found if answer.offsets else ():
        each["start_char"] = answer.offsets[each["start"]][0]
        each["end_char"] = answer.offsets[each["end"] - 1][1]
    return found


def _spelled(value: Any, scheme: str) -> list[dict[str, Any]]:
    if scheme == PLAIN or not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        return []
    return [{"start": a, "end": b, "label": label, "probability": None} for a, b, label in spans_of(value, scheme)]


def _alternative(each: Alternative, scheme: str) -> dict[str, Any]:
    spans = [{key: span[key] for key in ("start", "end", "label")} for span in _spelled(each.value, scheme)]
    return {"value": value_record(each.value), "probability": each.probability, "spans": spans}


def choices_record(choices: Sequence[PartChoices]) -> list[dict[str, Any]]:
    """What each part may be, and how unsure the model is of it."""
    return [
        {
            "start": each.start,
            "end": each.end,
            "entropy": each.entropy,
            "choices": [_choice(part) for part in each.choices],
        }
        for each in choices
    ]


def _choice(part: PartProbability) -> dict[str, Any]:
    found: dict[str, Any] = {"label": part.label, "probability": part.probability}
    if part.head is not None:
        found |= {"head": part.head, "head_probability": part.head_probability}
    return found


def span_choices_record(spans: Sequence[PartProbability]) -> list[dict[str, Any]]:
    """The spans that are likely enough, each with the labels that it may have, the most probable first."""
    found: dict[tuple[int, int], list[PartProbability]] = {}
    for each in sorted(spans, key=lambda span: (span.start, span.end, -span.probability)):
        found.setdefault((each.start, each.end), []).append(each)
    return [
        {"start": start, "end": end, "choices": [_choice(part) for part in parts]}
        for (start, end), parts in found.items()
    ]
