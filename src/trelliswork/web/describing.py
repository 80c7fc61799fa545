"""Descriptions of models and their abilities, for the list of models."""

from __future__ import annotations

from collections.abc import Sequence

from trelliswork.data import Sentence
from trelliswork.data.json_values import JsonObject
from trelliswork.draw import trellis
from trelliswork.errors import ModelError
from trelliswork.models.base import Answer, Model
from trelliswork.models.part_choices import PartChoices
from trelliswork.web.asking import Question, SentencePins
from trelliswork.web.palette import colours_of
from trelliswork.web.problems import Problem

ANSWERS = {"tags": "tags", "heads": "arcs", "brackets": "brackets", "pairs": "string"}
READS = ("words",)


def describe_model(name: str, folder: str, model: Model) -> JsonObject:
    """Return an entry of the list of models.

    Args:
        name: The name that the model is served under.
        folder: The folder that it was loaded from.
        model: The model.

    Returns:
        The entry of GET /v1/models.
    """
    about = model.describe(0)
    return {
        "name": name,
        "folder": folder,
        "kind": about.kind,
        "class": type(model).__name__,
        "reads": "symbols" if model.learns_from == "pairs" else model.reads,
        "answers": answers_of(model),
        "scheme": model.scheme,
        "labels": model.known_labels,
        "colours": colours_of(model.known_labels, model.scheme),
        "tasks": [task for task in model.heads if task],
        "columns": model.n_columns,
        "search": model.search,
        "can": {
            "pins": model.supports_pins,
            "choices": can_choose(model),
            "chains": model.pins_chains,
            "top_k": True,
            "explain": bool(model.explains),
            "expected": model.counts_parts,
            "text": model.n_columns == 0 or model.column_taggers is not None,
            "teach": _can_learn(model),
        },
        "parameters": model.n_parameters,
        "dev": model.metrics.get("dev") or None,
        "examples": list((model.metrics.get("data") or {}).get("examples") or ()),
    }


def _can_learn(model: Model) -> bool:
    """Return whether a model can be taught: taggers of one task, and parsers that read words and predict arcs alone."""
    if model.learns_from == "heads":
        return can_choose(model) and model.n_columns == 0 and not getattr(model, "tags", ())
    return model.learns_from == "tags" and not any(model.heads)


def answers_of(model: Model) -> str:
    """Return what answers of a model are made of: tags, spans, segments, arcs, brackets, string, or something else."""
    kind = ANSWERS.get(model.learns_from, "value")
    if kind == "tags" and model.graph == "segments":
        return "segments"
    return "spans" if kind == "tags" and model.scheme != "plain" else kind


def can_choose(model: Model) -> bool:
    """Return whether a model knows the choices of each part."""
    return type(model).choices is not Model.choices


def require_servable(folder: str, model: Model) -> None:
    """A model that does not read words is refused."""
    if model.reads not in READS:
        problem = f"expected a model that reads words, got a {type(model).__name__}, which reads {model.reads}"
        raise ModelError(f"{folder}: {problem}; serve another, or use it from Python")


# Pictures of answers, by `trelliswork.draw`.

LONGEST = 400  # tokens of a picture
OWN = {
    "tags": "trellis", "spans": "segments", "segments": "segments", "arcs": "dependencies", "brackets": "tree",
    "string": "alignment",
}  # fmt: skip
ALSO = {"tags": ("segments",), "spans": ("trellis",), "segments": ("trellis",)}


def pictures(model: Model, question: Question) -> list[JsonObject]:
    """Return a picture of each sentence of a question."""
    kind = _kind(model, question.body["picture"])
    return _draw(model, kind, list(zip(question.sentences, question.pins, strict=True)))


def _kind(model: Model, asked: str) -> str:
    """Return the kind of picture to draw; one that does not fit the model is a problem."""
    answers = answers_of(model)
    if any(model.heads) or answers not in OWN:
        raise Problem(422, f"expected a model whose answers can be drawn, got a {type(model).__name__}")
    fitting = [each for each in (OWN[answers], *ALSO.get(answers, ())) if each != "trellis" or can_choose(model)]
    if asked not in ("auto", *fitting):
        raise Problem(422, f"body.picture: expected one of auto, {', '.join(fitting)} for this model, got {asked}")
    return fitting[0] if asked == "auto" else asked


def _draw(model: Model, kind: str, pairs: Sequence[tuple[Sentence, SentencePins]]) -> list[JsonObject]:
    sentences = [sentence for sentence, _ in pairs]
    known: JsonObject = {"pins": [pins for _, pins in pairs]} if any(pins for _, pins in pairs) else {}
    for each in sentences:
        if len(each) > LONGEST:
            raise Problem(413, f"expected sentences of at most {LONGEST} tokens to draw, got one of {len(each)}")
    answers = model.predict(sentences, top_k=1 if kind == "alignment" else 0, **known)
    if kind != "trellis":
        return [_record(kind, each.draw().svg if each.inputs else "") for each in answers]
    choices = model.choices(sentences, **known)
    return [_record(kind, _trellis(*each)) for each in zip(answers, choices, strict=True)]


def _record(kind: str, svg: str) -> JsonObject:
    return {"picture": kind, "svg": svg or None}


def _trellis(answer: Answer, choices: Sequence[PartChoices]) -> str:
    """Return the tags that are possible anywhere, as dark as they are probable."""
    if not answer.inputs:
        return ""
    shares = [{part.label: part.probability for part in each.choices} for each in choices]
    order = sorted({tag for row in shares for tag, p in row.items() if p >= 0.005} | set(answer.value))
    table = [[row.get(tag, 0.0) for tag in order] for row in shares]
    return trellis(table, list(answer.inputs), order, best=answer.value).svg
