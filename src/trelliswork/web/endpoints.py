"""The paths of the API: what each reads, and who answers. Routes, checks and OpenAPI are made of this table."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from trelliswork.web.limits import Limits
from trelliswork.web.problems import Problem
from trelliswork.web.requests import (
    decide_body,
    draw_body,
    empty_body,
    explain_body,
    next_query,
    open_body,
    predict_body,
)
from trelliswork.web.schema import Record

Kind = Callable[[Limits], Record]


@dataclass(frozen=True)
class Endpoint:
    """A method of a path: what it is for, what it reads, and the function (site, given, bytes) that answers."""

    method: str
    path: str
    summary: str
    answer: Callable[[Any, dict[str, Any], int], Awaitable[Any]]
    body: Kind | None = None
    query: Kind | None = None


async def _models(site: Any, _: dict[str, Any], __: int) -> Any:
    return {"models": site.pool.models}


def _asks(op: str) -> Callable[[Any, dict[str, Any], int], Awaitable[Any]]:
    async def answer(site: Any, given: dict[str, Any], size: int) -> Any:
        return await site.ask(op, given, size)

    return answer


async def _teach(site: Any, _: dict[str, Any], __: int) -> Any:
    return await site.school.state()


async def _open(site: Any, given: dict[str, Any], _: int) -> Any:
    name = None if given["content"] is None and given["model"] is None else site.model_named(given["model"])
    about = next((each for each in site.pool.models if each["name"] == name), None)
    if about is not None and not about["can"]["teach"]:
        told = "expected a tagger of one task, or a parser that reads words and predicts arcs alone"
        raise Problem(422, f"body.model: {told}; got {name!r}, see can.teach")
    return await site.school.open(given["name"], name, given["format"], given["content"])


async def _next(site: Any, given: dict[str, Any], _: int) -> Any:
    return await site.school.next(given["by"], given["id"])


async def _decide(site: Any, given: dict[str, Any], _: int) -> Any:
    found = await site.school.decide(given["id"], given["tags"], given["skip"])
    site.measures.add("decisions")
    return found


async def _undo(site: Any, _: dict[str, Any], __: int) -> Any:
    return await site.school.undo()


async def _train(site: Any, _: dict[str, Any], __: int) -> Any:
    return await site.school.train()


async def _training(site: Any, _: dict[str, Any], __: int) -> Any:
    return site.school.training.state()


ENDPOINTS = (
    Endpoint("GET", "/v1/models", "The models, and what each can do.", _models),
    Endpoint(
        "POST", "/v1/predict", "Answers with exact probabilities, under pins.", _asks("predict"), body=predict_body
    ),
    Endpoint("POST", "/v1/draw", "Pictures of answers as SVG.", _asks("draw"), body=draw_body),
    Endpoint("POST", "/v1/explain", "What speaks for the answers.", _asks("explain"), body=explain_body),
    Endpoint("GET", "/v1/teach", "What is being taught, and how far it is.", _teach),
    Endpoint("POST", "/v1/teach/open", "Open a set of sentences to teach.", _open, body=open_body),
    Endpoint("GET", "/v1/teach/next", "The sentence to decide about now.", _next, query=next_query),
    Endpoint("POST", "/v1/teach/decide", "Keep what is known of a sentence, durably.", _decide, body=decide_body),
    Endpoint("POST", "/v1/teach/undo", "Take the last decision back.", _undo, body=empty_body),
    Endpoint("POST", "/v1/teach/train", "Train on what was taught.", _train, body=empty_body),
    Endpoint("GET", "/v1/teach/training", "How the training goes.", _training),
)
