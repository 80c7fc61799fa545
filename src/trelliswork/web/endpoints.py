"""The paths of the API: what each reads, and who answers. Routes, checks and OpenAPI are made of this table."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from trelliswork.web.limits import Limits
from trelliswork.web.requests import draw_body, explain_body, predict_body
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


ENDPOINTS = (
    Endpoint("GET", "/v1/models", "The models, and what each can do.", _models),
    Endpoint(
        "POST", "/v1/predict", "Answers with exact probabilities, under pins.", _asks("predict"), body=predict_body
    ),
    Endpoint("POST", "/v1/draw", "Pictures of answers as SVG.", _asks("draw"), body=draw_body),
    Endpoint("POST", "/v1/explain", "What speaks for the answers.", _asks("explain"), body=explain_body),
)
