"""What a model is and can do, for the list of models."""

from __future__ import annotations

from typing import Any

from trelliswork.errors import ModelError
from trelliswork.models.base import Model
from trelliswork.web.palette import colours_of

ANSWERS = {"tags": "tags", "heads": "arcs", "brackets": "brackets", "pairs": "string"}
READS = ("words",)


def described(name: str, folder: str, model: Any) -> dict[str, Any]:
    """An entry of the list of models."""
    about = model.describe(0)
    return {
        "name": name,
        "folder": folder,
        "kind": about.kind,
        "class": type(model).__name__,
        "reads": "symbols" if model.learns_from == "pairs" else model.reads,
        "answers": answers_of(model),
        "scheme": model.scheme,
        "labels": labels_of(model),
        "colours": colours_of(labels_of(model), model.scheme),
        "tasks": [task for task in model.heads if task],
        "columns": model.n_columns,
        "search": model.search,
        "can": {
            "pins": model.takes_pins,
            "choices": can_choose(model),
            "chains": getattr(model, "pins_chains", False),
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


def _can_learn(model: Any) -> bool:
    """Whether it can be taught: a tagger of one task, or a parser of words alone that predicts arcs alone."""
    if model.learns_from == "heads":
        return can_choose(model) and model.n_columns == 0 and not model.tags
    return model.learns_from == "tags" and not any(model.heads)


def answers_of(model: Any) -> str:
    """What its answers are made of: tags, spans, segments, arcs, brackets, string, or something else."""
    found = ANSWERS.get(model.learns_from, "value")
    if found == "tags" and type(model).__name__ == "Segmenter":
        return "segments"
    return "spans" if found == "tags" and model.scheme != "plain" else found


def labels_of(model: Any) -> list[str]:
    """The labels that its parts can have: tags, labels of arcs or of constituents."""
    labels = getattr(model, "labels", None)
    if (tags := getattr(labels, "data_tags", None)) is not None:
        return list(tags)
    if hasattr(model, "label_names"):
        return list(model.label_names)
    return sorted(model.known_labels) if hasattr(model, "known_labels") else []


def can_choose(model: Any) -> bool:
    """Whether it knows the choices of each part."""
    return type(model).choices is not Model.choices


def require_servable(folder: str, model: Any) -> None:
    """A model that does not read words is refused."""
    if model.reads not in READS:
        problem = f"expected a model that reads words, got a {type(model).__name__}, which reads {model.reads}"
        raise ModelError(f"{folder}: {problem}; serve another, or use it from Python")
