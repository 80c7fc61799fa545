"""Pictures of answers, by `trelliswork.draw`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trelliswork.data import Sentence
from trelliswork.draw import trellis
from trelliswork.models.base import Answer
from trelliswork.models.part_choices import PartChoices
from trelliswork.web.asking import Asked
from trelliswork.web.describing import answers_of, can_choose
from trelliswork.web.problems import Problem

LONGEST = 400  # tokens of a picture
OWN = {
    "tags": "trellis", "spans": "segments", "segments": "segments", "arcs": "dependencies", "brackets": "tree",
    "string": "alignment",
}  # fmt: skip
ALSO = {"tags": ("segments",), "spans": ("trellis",), "segments": ("trellis",)}


def pictures(model: Any, question: Asked) -> list[dict[str, Any]]:
    """A picture of each sentence of a question."""
    kind = _kind(model, question.body["picture"])
    return _drawn(model, kind, list(zip(question.sentences, question.pins, strict=True)))


def _kind(model: Any, asked: str) -> str:
    """Which picture to draw; one that does not fit the model is a problem."""
    answers = answers_of(model)
    if any(model.heads) or answers not in OWN:
        raise Problem(422, f"expected a model whose answers can be drawn, got a {type(model).__name__}")
    fitting = [each for each in (OWN[answers], *ALSO.get(answers, ())) if each != "trellis" or can_choose(model)]
    if asked not in ("auto", *fitting):
        raise Problem(422, f"body.picture: expected one of auto, {', '.join(fitting)} for this model, got {asked}")
    return fitting[0] if asked == "auto" else asked


def _drawn(model: Any, kind: str, pairs: Sequence[tuple[Sentence, Any]]) -> list[dict[str, Any]]:
    sentences = [sentence for sentence, _ in pairs]
    known = {"pins": [pins for _, pins in pairs]} if any(pins for _, pins in pairs) else {}
    for each in sentences:
        if len(each) > LONGEST:
            raise Problem(413, f"expected sentences of at most {LONGEST} tokens to draw, got one of {len(each)}")
    answers = model.predict(sentences, top_k=1 if kind == "alignment" else 0, **known)
    if kind != "trellis":
        return [_record(kind, each.draw().svg if each.inputs else "") for each in answers]
    choices = model.choices(sentences, **known)
    return [_record(kind, _trellis(*each)) for each in zip(answers, choices, strict=True)]


def _record(kind: str, svg: str) -> dict[str, Any]:
    return {"picture": kind, "svg": svg or None}


def _trellis(answer: Answer, choices: Sequence[PartChoices]) -> str:
    """The tags that are possible anywhere, as dark as they are probable."""
    if not answer.inputs:
        return ""
    shares = [{part.label: part.probability for part in each.choices} for each in choices]
    order = sorted({tag for row in shares for tag, p in row.items() if p >= 0.005} | set(answer.value))
    table = [[row.get(tag, 0.0) for tag in order] for row in shares]
    return trellis(table, list(answer.inputs), order, best=answer.value).svg
