"""From checked requests to questions that a model answers: sentences of all of them together, and their pins."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from trelliswork.data import Sentence
from trelliswork.data.brackets import bracket_text
from trelliswork.data.json_values import Json, JsonObject
from trelliswork.errors import TrellisworkError
from trelliswork.models.base import Alternative, Answer, Model, PartProbability
from trelliswork.models.expected_counts import ExpectedCount
from trelliswork.models.part_choices import PartChoices
from trelliswork.models.taggers.labels import OR
from trelliswork.tags.schemes import spans_of, split_tag, tags_of
from trelliswork.web.problems import Problem

if TYPE_CHECKING:
    from trelliswork.models.taggers.sentence_tagger import SentenceTagger

Body = Mapping[str, Json]  # of a request that was checked
SentencePins = object  # the pins of a sentence as `Model.predict` takes them: by token, by places, or brackets
LEAST = 0.005  # probability of a span that is listed among the choices
LONGEST = 200  # tokens of a sentence whose likely spans are listed: there may be as many as pairs of tokens


@dataclass
class Question:
    """A question about sentences. `around` is the JSON before, between and after their records.

    `places` has the place of each sentence by its input and its number there.
    """

    op: str
    body: Body
    sentences: list[Sentence]
    pins: list[SentencePins]
    around: list[str]
    places: dict[tuple[int, int], int]

    @property
    def is_piece(self) -> bool:
        """True for a piece of a request, whose cost is known."""
        return "around" in self.body

    @property
    def has_pins(self) -> bool:
        """True if a sentence has pins."""
        return any(self.pins)

    def answer_json(self, records: Sequence[Json]) -> bytes:
        """Return the answer, or a piece of it, with a record for each sentence."""
        written = [json.dumps(each, ensure_ascii=False, allow_nan=False) for each in records]
        pairs = zip(self.around, [*written, ""], strict=True)
        return "".join(text for pair in pairs for text in pair).encode()


def read_question(model: Model, call: Body) -> Question:
    """Return the sentences and pins of a call: a whole request, or a piece of one, whose sentences are known."""
    op, body = call["op"], call["body"]
    inputs = _inputs(model, body)
    pins = pins_by_sentence(model, body.get("pins") or (), inputs)
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
    return Question(op, body, sentences, pins, around, {name: place for place, name in enumerate(names)})


def _around(model: str | None, sizes: Sequence[int]) -> list[str]:
    """Return the JSON before the record of each sentence, and at the end.

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


def _inputs(model: Model, body: Body) -> list[list[Sentence]]:
    if "sentences" in body:
        return [[_sentence(each)] for each in body["sentences"]]
    if "tokens" in body:
        rows = [Sentence(tuple(words)) for words in body["tokens"]]
        rows = [_with_columns(each, columns) for each, columns in zip(rows, _columns(body, len(rows)), strict=True)]
        return [[each] for each in (model.with_columns(rows) if not body.get("columns") else rows)]
    if body.get("columns"):
        raise Problem(422, "body.columns: expected only together with tokens, got raw text; leave them out")
    texts = [body["text"]] if "text" in body else body["texts"]
    return [model.sentences_of(text) for text in texts]


def sentence_json(sentence: Sentence) -> JsonObject:
    """Return a sentence as a record, for a piece of a request."""
    return {
        "words": sentence.words, "features": sentence.features, "text": sentence.text, "offsets": sentence.offsets,
        "multiword": sentence.multiword, "columns": dict(sentence.columns),
    }  # fmt: skip


def _sentence(record: Body) -> Sentence:
    """Return the sentence of a record of `sentence_json`: lists are tuples again."""
    return Sentence(
        tuple(record["words"]), features=tuple(map(tuple, record["features"])), text=record["text"],
        offsets=tuple((a, b) for a, b in record["offsets"]),
        multiword=tuple((a, b, text) for a, b, text in record["multiword"]),
        columns={name: tuple(values) for name, values in record["columns"].items()},
    )  # fmt: skip


def _columns(body: Body, n: int) -> Sequence[Json]:
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


def predictions(model: Model, questions: Sequence[Question]) -> list[bytes]:
    """Return the answers to some questions that ask for the same; their sentences are answered together."""
    body, sentences = questions[0].body, [sentence for each in questions for sentence in each.sentences]
    pins = [known for each in questions for known in each.pins] if any(each.has_pins for each in questions) else None
    answers = model.predict(sentences, top_k=body["top_k"], confidence=body["confidences"], **_pin_argument(pins))
    choices = model.choices(sentences, most=body["choices"], **_pin_argument(pins)) if body["choices"] else None
    spans = (
        _likely_spans(cast("SentenceTagger", model), sentences, pins)
        if body["choices"] and has_span_tags(model)
        else None
    )
    counts = model.expected_counts(sentences, **_pin_argument(pins)) if body["expected"] else None
    nothing = [None] * len(answers)
    rows = zip(sentences, answers, choices or nothing, spans or nothing, counts or nothing, strict=True)
    records = iter([_record(model, *each) for each in rows])
    return [each.answer_json([next(records) for _ in each.sentences]) for each in questions]


def _likely_spans(
    model: SentenceTagger, sentences: Sequence[Sentence], pins: Sequence[Json] | None
) -> list[list[PartProbability]]:
    """Return the spans that each sentence may have; none of one that is too long."""
    short = [i for i, each in enumerate(sentences) if len(each) <= LONGEST]
    known = None if pins is None else [pins[i] for i in short]
    likely: list[list[PartProbability]] = [[] for _ in sentences]
    for i, spans in zip(short, model.likely_spans([sentences[i] for i in short], LEAST, known), strict=True):
        likely[i] = list(spans)
    return likely


def _pin_argument(pins: Sequence[SentencePins] | None) -> JsonObject:
    """Return the argument `pins`, which not every model has, if something is pinned."""
    return {} if pins is None else {"pins": pins}


def _record(
    model: Model,
    sentence: Sentence,
    answer: Answer,
    choices: Sequence[PartChoices] | None,
    spans: Sequence[PartProbability] | None,
    counts: Sequence[ExpectedCount] | None,
) -> JsonObject:
    record = sentence_record(sentence, answer, model.scheme)
    record |= {} if choices is None else {"choices": choices_record(choices)}
    record |= {} if counts is None else {"expected": [each.record() for each in counts]}
    return record if spans is None else {**record, "span_choices": span_choices_record(spans)}


# Answers as plain values for JSON.

PLAIN = "plain"


def sentence_record(sentence: Sentence, answer: Answer, scheme: str) -> JsonObject:
    """Return the answer to one sentence as a record.

    Args:
        sentence: A sentence.
        answer: The answer of the model to it.
        scheme: The scheme of its tags.

    Returns:
        A JSON object.
    """
    record: JsonObject = {"text": sentence.text or None, "tokens": list(sentence.words)}
    record["offsets"] = [list(each) for each in sentence.offsets] or None
    if answer.tasks:
        record["tasks"] = {name: _answer_record(each, scheme) for name, each in answer.tasks.items()}
        return record
    return record | _answer_record(answer, scheme)


def _answer_record(answer: Answer, scheme: str) -> JsonObject:
    lemmas = {"LEMMA": answer.lemmas} if answer.lemmas else {}
    return {
        "value": value_record(answer.value),
        "probability": answer.probability,
        "parts": [each.record() for each in answer.parts],
        "spans": _spans(answer, scheme),
        "columns": {name: list(values) for name, values in {**lemmas, **answer.columns}.items()},
        "alternatives": [_alternative(each, scheme) for each in answer.alternatives],
    }


def value_record(value: Json) -> Json:
    """Return a value as JSON: tags, [head, label] pairs, a tree in brackets, a string."""
    if isinstance(value, list):
        return [list(each) if isinstance(each, tuple) else each for each in value]
    if value is None or isinstance(value, str | int | float | bool | dict):
        return value
    return bracket_text(value)


def _spans(answer: Answer, scheme: str) -> list[JsonObject]:
    """Return the spans of an answer, with their places in raw text if it was that."""
    if answer.spans or answer.has_brackets:
        spans = [each.record() for each in answer.spans]
    else:
        spans = _spelled(answer.value, scheme)
    for each in spans if answer.offsets else ():
        each["start_char"] = answer.offsets[each["start"]][0]
        each["end_char"] = answer.offsets[each["end"] - 1][1]
    return spans


def _spelled(value: Json, scheme: str) -> list[JsonObject]:
    if scheme == PLAIN or not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        return []
    return [{"start": a, "end": b, "label": label, "probability": None} for a, b, label in spans_of(value, scheme)]


def _alternative(each: Alternative, scheme: str) -> JsonObject:
    spans = [{key: span[key] for key in ("start", "end", "label")} for span in _spelled(each.value, scheme)]
    return {"value": value_record(each.value), "probability": each.probability, "spans": spans}


def choices_record(choices: Sequence[PartChoices]) -> list[JsonObject]:
    """Return the choices of each part and their entropy."""
    return [
        {
            "start": each.start,
            "end": each.end,
            "entropy": each.entropy,
            "choices": [_choice(part) for part in each.choices],
        }
        for each in choices
    ]


def _choice(part: PartProbability) -> JsonObject:
    choice: JsonObject = {"label": part.label, "probability": part.probability}
    if part.head is not None:
        choice |= {"head": part.head, "head_probability": part.head_probability}
    return choice


def span_choices_record(spans: Sequence[PartProbability]) -> list[JsonObject]:
    """Return the spans that are likely enough, each with the labels that it may have, the most probable first."""
    by_place: dict[tuple[int, int], list[PartProbability]] = {}
    for each in sorted(spans, key=lambda span: (span.start, span.end, -span.probability)):
        by_place.setdefault((each.start, each.end), []).append(each)
    return [
        {"start": start, "end": end, "choices": [_choice(part) for part in parts]}
        for (start, end), parts in by_place.items()
    ]


# Pins of a request as the model takes them: tags, heads, constituents, and whole spans.

Pin = Mapping[str, Json]
SPAN = ("start", "end", "label")
EXACT_SCHEMES = ("IOB2", "IOBES")  # in which tags alone say that a span ends


def pins_by_sentence(model: Model, pins: Sequence[Pin], inputs: Sequence[Sequence[Sentence]]) -> list[SentencePins]:
    """Return the pins of each sentence as `predict` of the model takes them.

    Args:
        model: The model that is asked.
        pins: The pins of a request.
        inputs: The sentences of each input.

    Returns:
        The pins of each sentence, in order.
    """
    if pins and not model.supports_pins:
        raise Problem(422, f"body.pins: expected none, as the answers of a {type(model).__name__} cannot be pinned")
    by_sentence = {(i, j): _Pins(len(s)) for i, each in enumerate(inputs) for j, s in enumerate(each)}
    for number, pin in enumerate(pins):
        place = f"body.pins[{number}]"
        known = by_sentence.get((pin["input"], pin["sentence"]))
        if known is None:
            raise Problem(422, _astray(pin, inputs, place))
        known.add(model, pin, place)
    return [known.brackets if model.learns_from == "brackets" else known.tokens for known in by_sentence.values()]


def has_span_tags(model: Model) -> bool:
    """Return whether the tags of a model spell spans."""
    return model.learns_from == "tags" and not any(model.heads) and model.scheme != "plain"


def _astray(pin: Pin, inputs: Sequence[Sequence[Sentence]], place: str) -> str:
    """Return what is wrong with a pin on a sentence that is not there."""
    if pin["input"] >= len(inputs):
        return f"{place}.input: expected one of the {len(inputs)} inputs, from 0; got {pin['input']}"
    n = len(inputs[pin["input"]])
    return f"{place}.sentence: expected one of the {n} sentences, from 0; got {pin['sentence']}"


class _Pins:
    """Pins of one sentence of `n` tokens."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.tokens: dict[int | tuple[int, int], Json] = {}  # by token, or by (start, end) of a transducer
        self.brackets: list[tuple[object, ...]] = []

    def add(self, model: Model, pin: Pin, place: str) -> None:
        """Take a pin in; one that contradicts another is a problem."""
        is_span = pin["label"] is not None
        if is_span == (pin["value"] is not None) or is_span != (pin["end"] is not None):
            raise Problem(422, f"{place}: expected token and value, or start, end and label")
        if is_span and model.learns_from == "pairs":
            self._piece(model, pin, place)
        elif is_span:
            for token, value in self._span(model, pin, place).items():
                self._token(model, token, value, place)
        elif pin["token"] >= self.n:
            raise Problem(422, f"{place}.token: expected one of the {self.n} tokens, from 0; got {pin['token']}")
        else:
            self._token(model, pin["token"], pin["value"], place)

    def _token(self, model: Model, token: int, text: str, place: str) -> None:
        try:
            value: Any = model.pinned(text, self.n)  # what it is, is up to the model
        except TrellisworkError as error:
            raise Problem(422, f"{place}: {error}") from error
        if model.learns_from == "brackets":
            self.brackets.append((token, *value))
            return
        before = self.tokens.get(token, value)
        if before != value and model.learns_from == "tags":
            labels = cast("SentenceTagger", model).labels
            both = [tag for tag in labels.one_of(before) if tag in labels.one_of(value)]
            value = OR.join(both) if both else None
        elif before != value:
            value = None
        if value is None:
            raise Problem(422, f"{place}: token {token} is pinned to something else already; drop one of the two")
        self.tokens[token] = value

    def _piece(self, model: Model, pin: Pin, place: str) -> None:
        """Pin the symbols that a transducer makes of places [start, end) of the source."""
        start, end, label = (pin[name] for name in SPAN)
        if not start < end <= self.n:
            raise Problem(422, f"{place}: expected symbols start..end within 0..{self.n}; got {start}..{end}")
        self.tokens[start, end] = model.pinned(label)

    def _span(self, model: Model, pin: Pin, place: str) -> dict[int, str]:
        """Return the tags that say: exactly these tokens are one span of this label."""
        start, end, label = (pin[name] for name in SPAN)
        if not has_span_tags(model) or model.scheme not in EXACT_SCHEMES:
            raise Problem(422, f"{place}: expected a model whose tags spell spans (IOB2, IOBES); pin tokens instead")
        known_tags = model.known_labels
        kinds = {split_tag(tag)[1] for tag in known_tags}
        if label not in kinds:
            known = ", ".join(sorted(kinds - {""}))
            raise Problem(422, f"{place}.label: expected one of {known}; got {label!r}")
        if not start < end <= self.n:
            raise Problem(422, f"{place}: expected tokens start..end within 0..{self.n}; got {start}..{end}")
        tags = tags_of([(start, end, label)], self.n, model.scheme)
        tag_at = {i: tags[i] for i in range(start, end)}
        if end < self.n and model.scheme == "IOB2":
            tag_at[end] = OR.join(tag for tag in known_tags if tag != f"I-{label}")
        return tag_at
