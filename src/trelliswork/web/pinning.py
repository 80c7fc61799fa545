"""Pins of a request as the model takes them: tags, heads, constituents, and whole spans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trelliswork.data import Sentence
from trelliswork.errors import TrellisworkError
from trelliswork.models.taggers.labels import OR
from trelliswork.tags.schemes import split_tag, tags_of
from trelliswork.web.problems import Problem

Pin = Mapping[str, Any]
SPAN = ("start", "end", "label")
EXACT_SCHEMES = ("IOB2", "IOBES")  # in which tags alone say that a span ends


def known_parts(model: Any, pins: Sequence[Pin], inputs: Sequence[Sequence[Sentence]]) -> list[Any]:
    """What is known of each sentence, as `predict` of the model takes it."""
    if pins and not model.takes_pins:
        raise Problem(422, f"body.pins: expected none, as the answers of a {type(model).__name__} cannot be pinned")
    found = {(i, j): _Known(len(s)) for i, each in enumerate(inputs) for j, s in enumerate(each)}
    for number, pin in enumerate(pins):
        place = f"body.pins[{number}]"
        known = found.get((pin["input"], pin["sentence"]))
        if known is None:
            raise Problem(422, _astray(pin, inputs, place))
        known.add(model, pin, place)
    return [known.brackets if model.learns_from == "brackets" else known.tokens for known in found.values()]


def has_span_tags(model: Any) -> bool:
    """Whether its tags spell spans."""
    return model.learns_from == "tags" and not any(model.heads) and model.scheme != "plain"


def _astray(pin: Pin, inputs: Sequence[Sequence[Sentence]], place: str) -> str:
    """What is wrong with a pin on a sentence that is not there."""
    if pin["input"] >= len(inputs):
        return f"{place}.input: expected one of the {len(inputs)} inputs, from 0; got {pin['input']}"
    n = len(inputs[pin["input"]])
    return f"{place}.sentence: expected one of the {n} sentences, from 0; got {pin['sentence']}"


class _Known:
    """What is known of one sentence of `n` tokens."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.tokens: dict[Any, Any] = {}  # by token, or by (start, end) of a transducer
        self.brackets: list[Any] = []

    def add(self, model: Any, pin: Pin, place: str) -> None:
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

    def _token(self, model: Any, token: int, text: str, place: str) -> None:
        try:
            value = model.pinned(text, self.n)
        except TrellisworkError as error:
            raise Problem(422, f"{place}: {error}") from error
        if model.learns_from == "brackets":
            self.brackets.append((token, *value))
            return
        before = self.tokens.get(token, value)
        if before != value and model.learns_from == "tags":
            both = [tag for tag in model.labels.one_of(before) if tag in model.labels.one_of(value)]
            value = OR.join(both) if both else None
        elif before != value:
            value = None
        if value is None:
            raise Problem(422, f"{place}: token {token} is pinned to something else already; drop one of the two")
        self.tokens[token] = value

    def _piece(self, model: Any, pin: Pin, place: str) -> None:
        """A transducer makes these symbols of places [start, end) of the source."""
        start, end, label = (pin[name] for name in SPAN)
        if not start < end <= self.n:
            raise Problem(422, f"{place}: expected symbols start..end within 0..{self.n}; got {start}..{end}")
        self.tokens[start, end] = model.pinned(label)

    def _span(self, model: Any, pin: Pin, place: str) -> dict[int, str]:
        """The tags that say: exactly these tokens are one span of this label."""
        start, end, label = (pin[name] for name in SPAN)
        if not has_span_tags(model) or model.scheme not in EXACT_SCHEMES:
            raise Problem(422, f"{place}: expected a model whose tags spell spans (IOB2, IOBES); pin tokens instead")
        kinds = {split_tag(tag)[1] for tag in model.labels.data_tags}
        if label not in kinds:
            known = ", ".join(sorted(kinds - {""}))
            raise Problem(422, f"{place}.label: expected one of {known}; got {label!r}")
        if not start < end <= self.n:
            raise Problem(422, f"{place}: expected tokens start..end within 0..{self.n}; got {start}..{end}")
        tags = tags_of([(start, end, label)], self.n, model.scheme)
        found = {i: tags[i] for i in range(start, end)}
        if end < self.n and model.scheme == "IOB2":
            found[end] = OR.join(tag for tag in model.labels.data_tags if tag != f"I-{label}")
        return found
