"""From checked requests to questions that a model answers: sentences of all of them together, and their pins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trelliswork.data import Sentence
from trelliswork.models.base import Answer, PartProbability
from trelliswork.models.part_choices import PartChoices
from trelliswork.web.answers import choices_record, sentence_record, span_choices_record
from trelliswork.web.pinning import has_span_tags, known_parts
from trelliswork.web.problems import Problem

Body = Mapping[str, Any]
LEAST = 0.005  # probability of a span that is listed among the choices


@dataclass
class Asked:
    """A request with its sentences: `sizes` has how many belong to each of its inputs."""

    body: Body
    sentences: list[Sentence]
    sizes: list[int]
    pins: list[Any]

    @property
    def has_pins(self) -> bool:
        """Whether something is known."""
        return any(self.pins)


def asked(model: Any, body: Body) -> Asked:
    """The sentences and pins of a request."""
    inputs = _inputs(model, body)
    sentences = [sentence for each in inputs for sentence in each]
    found = Asked(body, sentences, list(map(len, inputs)), [])
    found.pins = known_parts(model, body.get("pins") or (), inputs)
    return found


def _inputs(model: Any, body: Body) -> list[list[Sentence]]:
    if "tokens" in body:
        rows = [Sentence(tuple(words)) for words in body["tokens"]]
        rows = [_with_columns(each, columns) for each, columns in zip(rows, _columns(body, len(rows)), strict=True)]
        return [[each] for each in (model.completed(rows) if not body.get("columns") else rows)]
    if body.get("columns"):
        raise Problem(422, "body.columns: expected beside tokens alone, got raw text; leave them out")
    texts = [body["text"]] if "text" in body else body["texts"]
    return [model.sentences_of(text) for text in texts]


def _columns(body: Body, n: int) -> Sequence[Any]:
    columns = body.get("columns") or [()] * n
    if len(columns) != n:
        raise Problem(422, f"body.columns: expected columns for {n} sentences, got {len(columns)}; give one list each")
    return columns


def _with_columns(sentence: Sentence, columns: Sequence[Sequence[str]]) -> Sentence:
    for i, column in enumerate(columns):
        if len(column) != len(sentence):
            problem = f"expected {len(sentence)} entries in column {i}, one for each token, got {len(column)}"
            raise Problem(422, f"body.columns: {problem}")
    return replace(sentence, features=tuple(map(tuple, columns)))


def predictions(model: Any, questions: Sequence[Asked]) -> list[dict[str, Any]]:
    """What is said to each of some requests that ask for the same; their sentences are answered together."""
    body, sentences = questions[0].body, [sentence for each in questions for sentence in each.sentences]
    pins = [known for each in questions for known in each.pins] if any(each.has_pins for each in questions) else None
    answers = model.predict(sentences, top_k=body["top_k"], confidence=body["confidences"], **_known(pins))
    choices = model.choices(sentences, most=body["choices"], **_known(pins)) if body["choices"] else None
    spans = model.likely_spans(sentences, LEAST, pins) if body["choices"] and has_span_tags(model) else None
    nothing = [None] * len(answers)
    rows = zip(sentences, answers, choices or nothing, spans or nothing, strict=True)
    records = [_record(model, *each) for each in rows]
    found, place = [], 0
    for each in questions:
        results = []
        for n in each.sizes:
            results.append({"sentences": records[place : place + n]})
            place += n
        found.append({"results": results})
    return found


def _known(pins: Any) -> dict[str, Any]:
    return {} if pins is None else {"pins": pins}


def _record(
    model: Any,
    sentence: Sentence,
    answer: Answer,
    choices: Sequence[PartChoices] | None,
    spans: Sequence[PartProbability] | None,
) -> dict[str, Any]:
    found = sentence_record(sentence, answer, model.scheme)
    found |= {} if choices is None else {"choices": choices_record(choices)}
    return found if spans is None else {**found, "span_choices": span_choices_record(spans)}
