"""Estimates of the work of a question, by its model: too much is refused, and much is divided into pieces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trelliswork.data import Sentence
from trelliswork.models.base import count
from trelliswork.web.asking import LONGEST, Asked, Body, has_span_tags, sentence_json
from trelliswork.web.describing import can_choose, labels_of
from trelliswork.web.frames import Reply, packed_call, packed_pieces
from trelliswork.web.limits import Limits
from trelliswork.web.problems import Problem

PIECE = 0.25  # seconds of a piece
WRITING = 4e-5, 3e-6  # seconds for what is written of a word, and for each further thing: tags of others, choices
SPANS = 5e-4  # seconds for a word and the likely spans that begin there
ASIDE = ("text", "texts", "tokens", "columns", "sentence", "model")  # what a piece says otherwise
DRAWING = 2e-4  # seconds for a word in a picture


def planned(model: Any, question: Asked, left: float, limits: Limits) -> Reply | float:
    """Return the cost of a question that fits into what is left of a batch; otherwise its pieces. Too much is a
    `Problem`.
    """
    costs = [_cost(model, question, each) for each in question.sentences]
    total, worst = sum(costs), max(costs, default=0.0)
    if worst > limits.sentence_work:
        words = len(question.sentences[costs.index(worst)])
        raise Problem(413, _refused(f"a sentence of {count(words, 'token')}", worst, limits.sentence_work, question))
    if total > limits.work:
        raise Problem(413, _refused(count(len(costs), "sentence"), total, limits.work, question))
    if total <= left:
        return total
    return packed_pieces(_pieces(question, costs))


def _refused(what: str, cost: float, limit: float, question: Asked) -> str:
    """Return what is wrong with a question that is too much work, and how to ask for less."""
    body = question.body
    less = [f"a smaller {name} (now {body[name]})" for name in ("top_k", "choices") if body.get(name)]
    less += ["no expected"] if body.get("expected") else []
    advice = " or ".join(["shorter sentences" if what.startswith("a ") else "fewer sentences at once", *less])
    return f"expected work of at most {limit:.3g} s, got {what} that would take about {cost:.2g} s; send {advice}"


def _cost(model: Any, question: Asked, sentence: Sentence) -> float:
    """Return seconds for one sentence."""
    body, n = question.body, len(sentence)
    top_k, choices = body.get("top_k", 0), body.get("choices", 0)
    if question.op == "uncertainty":
        top_k, choices = 2, 1
    is_trellis = question.op == "draw" and can_choose(model)
    seconds: float = model.cost(n, top_k=top_k, choices=bool(choices or is_trellis), explain=question.op == "explain")
    seconds += n * (WRITING[0] + WRITING[1] * (top_k + choices)) + DRAWING * n * (question.op == "draw")
    if body.get("expected"):
        seconds += len(labels_of(model)) * model.cost(n)
    if choices and has_span_tags(model):
        seconds += SPANS * min(n, LONGEST)
    return seconds


def _pieces(question: Asked, costs: list[float]) -> Iterator[tuple[float, bytes]]:
    """Yield the question about some of its sentences at a time, in order."""
    pins = _pins_by_sentence(question)
    first, cost = 0, 0.0
    for i, each in enumerate(costs):
        if i > first and cost + each > PIECE:
            yield cost, _piece(question, pins, first, i)
            first, cost = i, 0.0
        cost += each
    yield cost, _piece(question, pins, first, len(costs))


def _piece(question: Asked, pins: list[list[Body]], first: int, last: int) -> bytes:
    named = [{**pin, "input": i, "sentence": 0} for i, of_one in enumerate(pins[first:last]) for pin in of_one]
    is_end = last == len(question.sentences)
    body = {
        **{name: value for name, value in question.body.items() if name not in ASIDE},
        "sentences": [sentence_json(each) for each in question.sentences[first:last]],
        "pins": named,
        "around": [*question.around[first:last], question.around[-1] if is_end else ""],
    }
    return packed_call(question.op, "", body)


def _pins_by_sentence(question: Asked) -> list[list[Body]]:
    """Return the pins of each sentence, as the request has them."""
    pins: list[list[Body]] = [[] for _ in question.sentences]
    for pin in question.body.get("pins") or ():
        place = question.places.get((pin["input"], pin["sentence"]))
        if place is not None:  # a picture of one sentence leaves the others out
            pins[place].append(pin)
    return pins
