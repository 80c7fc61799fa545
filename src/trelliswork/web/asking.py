"""From checked requests to questions that a model answers: sentences of all of them together, and their pins."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trelliswork.data import Sentence
from trelliswork.models.base import Answer, PartProbability
from trelliswork.models.expected_counts import ExpectedCount
from trelliswork.models.part_choices import PartChoices
from trelliswork.web.answers import choices_record, sentence_record, span_choices_record
from trelliswork.web.pinning import has_span_tags, known_parts
from trelliswork.web.problems import Problem

Body = Mapping[str, Any]
LEAST = 0.005  # probability of a span that is listed among the choices
LONGEST = 200  # tokens of a sentence whose likely spans are listed: there may be as many as pairs of tokens


@dataclass
class Asked:
    """A question about sentences. `around` is the JSON before, between and behind what is said of each of them.

    `places` has the place of each sentence by its input and its number there.
    """

    op: str
    body: Body
    sentences: list[Sentence]
    pins: list[Any]
    around: list[str]
    places: dict[tuple[int, int], int]

    @property
    def is_piece(self) -> bool:
        """Whether it is a piece of a request, whose cost is known."""
        return "around" in self.body

    @property
    def has_pins(self) -> bool:
        """Whether something is known."""
        return any(self.pins)

    def answered(self, records: Sequence[Any]) -> bytes:
        """The answer, or a piece of it, with a record for each sentence."""
        written = [json.dumps(each, ensure_ascii=False, allow_nan=False) for each in records]
        pairs = zip(self.around, [*written, ""], strict=True)
        return "".join(text for pair in pairs for text in pair).encode()


def asked(model: Any, call: Body) -> Asked:
    """The sentences and pins of a call: a whole request, or a piece of one, whose sentences are known."""
    op, body = call["op"], call["body"]
    inputs = _inputs(model, body)
    pins = known_parts(model, body.get("pins") or (), inputs)
    names = [(i, j) for i, each in enumerate(inputs) for j in range(len(each))]
    sizes, only = [len(each) for each in inputs], body.get("sentence")
    if only is not None:
        if (few := next((i for i, n in enumerate(sizes) if n <= only), None)) is not None:
            problem = f"expected one of the {sizes[few]} sentences of input {few}, got {only}"
            raise Problem(422, f"body.sentence: {problem}")
        pins = [known for (_, j), known in zip(names, pins, strict=True) if j == only]
        names, sizes = [name for name in names if name[1] == only], [1] * len(sizes)
    sentences = [inputs[i][j] for i, j in names]
    around = body.get("around") or _around(call.get("model"), sizes)
    return Asked(op, body, sentences, pins, around, {name: place for place, name in enumerate(names)})


def _around(model: str | None, sizes: Sequence[int]) -> list[str]:
    """What is written before the record of each sentence, and at the end.

    >>> before, between, end = _around("ner", [1, 0, 1])
    >>> before + "X" + between + "Y" + end
    '{"model": "ner", "results": [{"sentences": [X]}, {"sentences": []}, {"sentences": [Y]}]}'
    """
    around, text = [], f'{{"model": {json.dumps(model)}, "results": ['
    for number, n in enumerate(sizes):
        text += (", " if number else "") + '{"sentences": ['
        for _ in range(n):
            around.append(text)
            text = ", "
        text = f"{'' if n else text}]}}"
    return [*around, f"{text}]}}"]


def _inputs(model: Any, body: Body) -> list[list[Sentence]]:
    if "sentences" in body:
        return [[_sentence(each)] for each in body["sentences"]]
    if "tokens" in body:
        rows = [Sentence(tuple(words)) for words in body["tokens"]]
        rows = [_with_columns(each, columns) for each, columns in zip(rows, _columns(body, len(rows)), strict=True)]
        return [[each] for each in (model.completed(rows) if not body.get("columns") else rows)]
    if body.get("columns"):
        raise Problem(422, "body.columns: expected beside tokens alone, got raw text; leave them out")
    texts = [body["text"]] if "text" in body else body["texts"]
    return [model.sentences_of(text) for text in texts]


def sentence_json(sentence: Sentence) -> dict[str, Any]:
    """A sentence as a piece of a request has it."""
    return {
        "words": sentence.words, "features": sentence.features, "text": sentence.text, "offsets": sentence.offsets,
        "multiword": sentence.multiword, "columns": dict(sentence.columns),
    }  # fmt: skip


def _sentence(record: Body) -> Sentence:
    """The inverse: lists are tuples again."""
    return Sentence(
        tuple(record["words"]), features=tuple(map(tuple, record["features"])), text=record["text"],
        offsets=tuple((a, b) for a, b in record["offsets"]),
        multiword=tuple((a, b, text) for a, b, text in record["multiword"]),
        columns={name: tuple(values) for name, values in record["columns"].items()},
    )  # fmt: skip


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


def predictions(model: Any, questions: Sequence[Asked]) -> list[bytes]:
    """The answers to some questions that ask for the same; their sentences are answered together."""
    body, sentences = questions[0].body, [sentence for each in questions for sentence in each.sentences]
    pins = [known for each in questions for known in each.pins] if any(each.has_pins for each in questions) else None
    answers = model.predict(sentences, top_k=body["top_k"], confidence=body["confidences"], **_known(pins))
    choices = model.choices(sentences, most=body["choices"], **_known(pins)) if body["choices"] else None
    spans = _likely_spans(model, sentences, pins) if body["choices"] and has_span_tags(model) else None
    counts = model.expected_counts(sentences, **_known(pins)) if body["expected"] else None
    nothing = [None] * len(answers)
    rows = zip(sentences, answers, choices or nothing, spans or nothing, counts or nothing, strict=True)
    records = iter([_record(model, *each) for each in rows])
    return [each.answered([next(records) for _ in each.sentences]) for each in questions]


def _likely_spans(model: Any, sentences: Sequence[Sentence], pins: Any) -> list[list[PartProbability]]:
    """The spans that each sentence may have; none of one that is too long."""
    short = [i for i, each in enumerate(sentences) if len(each) <= LONGEST]
    known = None if pins is None else [pins[i] for i in short]
    likely: list[list[PartProbability]] = [[] for _ in sentences]
    for i, spans in zip(short, model.likely_spans([sentences[i] for i in short], LEAST, known), strict=True):
        likely[i] = spans
    return likely


def _known(pins: Any) -> dict[str, Any]:
    return {} if pins is None else {"pins": pins}


def _record(
    model: Any,
    sentence: Sentence,
    answer: Answer,
    choices: Sequence[PartChoices] | None,
    spans: Sequence[PartProbability] | None,
    counts: Sequence[ExpectedCount] | None,
) -> dict[str, Any]:
    found = sentence_record(sentence, answer, model.scheme)
    found |= {} if choices is None else {"choices": choices_record(choices)}
    found |= {} if counts is None else {"expected": [each.record() for each in counts]}
    return found if spans is None else {**found, "span_choices": span_choices_record(spans)}
