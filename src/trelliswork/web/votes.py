"""Explanations as plain values: which feature voted for which tag, which other heads words may have, alignments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trelliswork.models.base import PartProbability
from trelliswork.web.answers import part_record
from trelliswork.web.asking import Asked
from trelliswork.web.problems import Problem


def votes(model: Any, question: Asked) -> dict[str, Any]:
    """What speaks for the answers to the sentences of a request."""
    if not model.explains:
        raise Problem(422, f"expected a model with explanations, got a {type(model).__name__}; see can.explain")
    most = question.body["shown"]
    found = iter([_record(each, most) for each in model.explain(question.sentences)])
    return {"results": [{"sentences": [next(found) for _ in range(n)]} for n in question.sizes]}


def _record(explained: Any, most: int) -> dict[str, Any]:
    found: dict[str, Any] = {"title": explained.title, "lead": explained.lead, "tokens": list(explained.words)}
    if hasattr(explained, "tokens"):
        return found | {"votes": [_token(each, most) for each in explained.tokens]}
    if hasattr(explained, "arcs"):
        rows = zip(explained.arcs, explained.others, strict=True)
        return found | {"arcs": [{**part_record(arc), "others": _parts(others[:most])} for arc, others in rows]}
    chunks = [{"source": c.source, "target": c.target, "probability": c.probability} for c in explained.chunks]
    return found | {"chunks": chunks, "targets": [{"value": y, "probability": p} for y, p in explained.targets[:most]]}


def _parts(parts: Sequence[PartProbability]) -> list[dict[str, Any]]:
    return [part_record(each) for each in parts]


def _token(each: Any, most: int) -> dict[str, Any]:
    return {
        "token": each.token, "label": each.label, "probability": each.probability, "score": each.score,
        "votes": [_vote(vote) for vote in each.votes[:most]], "more": max(len(each.votes) - most, 0),
        "rival": each.rival, "rival_votes": [_vote(vote) for vote in each.rival_votes[:most]],
    }  # fmt: skip


def _vote(vote: Any) -> dict[str, Any]:
    return {"words": vote.words, "score": vote.score, "name": vote.name}
