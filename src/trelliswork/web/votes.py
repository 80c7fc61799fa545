"""Explanations as plain values: what decided the parts of answers, and what else they may be."""

from __future__ import annotations

from typing import Any

from trelliswork.web.asking import Asked
from trelliswork.web.problems import Problem


def votes(model: Any, question: Asked) -> list[dict[str, Any]]:
    """What speaks for the answers to the sentences of a question."""
    if not model.explains:
        raise Problem(422, f"expected a model with explanations, got a {type(model).__name__}; see can.explain")
    most = question.body["shown"]
    return [_record(each, most) for each in model.explain(question.sentences)]


def _record(explained: Any, most: int) -> dict[str, Any]:
    told = {"title": explained.title, "lead": explained.lead, "tokens": list(explained.words)}
    return told | explained.record(most)
