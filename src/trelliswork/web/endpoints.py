"""The paths of the API: what each reads, and who answers. Routes, checks and OpenAPI are made of this table."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, TypeAlias

from trelliswork import __version__
from trelliswork.data.json_values import Json, JsonObject
from trelliswork.web.problems import Problem
from trelliswork.web.requests import (
    Limits,
    ObjectOf,
    decide_body,
    draw_body,
    empty_body,
    explain_body,
    next_query,
    open_body,
    predict_body,
)

if TYPE_CHECKING:
    from trelliswork.web.app import Site

Kind = Callable[[Limits], ObjectOf]
Handler: TypeAlias = "Callable[[Site, JsonObject, int], Awaitable[Json]]"  # the site, what is given, and its bytes


@dataclass(frozen=True)
class Endpoint:
    """A method of a path: what it is for, what it reads, and the function (site, given, bytes) that answers."""

    method: str
    path: str
    summary: str
    answer: Handler
    body: Kind | None = None
    query: Kind | None = None


async def _models(site: Site, _: JsonObject, __: int) -> Json:
    return {"models": site.pool.models}


def _ask_worker(op: str) -> Handler:
    async def answer(site: Site, given: JsonObject, size: int) -> Json:
        return await site.ask(op, given, size)

    return answer


async def _teach(site: Site, _: JsonObject, __: int) -> Json:
    return await site.session.state()


async def _open(site: Site, given: JsonObject, _: int) -> Json:
    name = None if given["content"] is None and given["model"] is None else site.model_name(given["model"])
    about = next((each for each in site.pool.models if each["name"] == name), None)
    if about is not None and not about["can"]["teach"]:
        expected = "expected a tagger of one task, or a parser that reads words and predicts arcs alone"
        raise Problem(422, f"body.model: {expected}; got {name!r}, see can.teach")
    return await site.session.open(given["name"], name, given["format"], given["content"])


async def _next(site: Site, given: JsonObject, _: int) -> Json:
    return await site.session.next(given["by"], given["id"])


async def _decide(site: Site, given: JsonObject, _: int) -> Json:
    decided = await site.session.decide(given["id"], given["tags"], given["skip"])
    site.measures.add("decisions")
    return decided


async def _undo(site: Site, _: JsonObject, __: int) -> Json:
    return await site.session.undo()


async def _train(site: Site, _: JsonObject, __: int) -> Json:
    return await site.session.train()


async def _training(site: Site, _: JsonObject, __: int) -> Json:
    return site.session.training.state()


ENDPOINTS = (
    Endpoint("GET", "/v1/models", "The models, and what each can do.", _models),
    Endpoint(
        "POST",
        "/v1/predict",
        "Answers with exact probabilities, under pins.",
        _ask_worker("predict"),
        body=predict_body,
    ),
    Endpoint("POST", "/v1/draw", "Pictures of answers as SVG.", _ask_worker("draw"), body=draw_body),
    Endpoint("POST", "/v1/explain", "What speaks for the answers.", _ask_worker("explain"), body=explain_body),
    Endpoint("GET", "/v1/teach", "What is being taught, and how far it is.", _teach),
    Endpoint("POST", "/v1/teach/open", "Open a set of sentences to teach.", _open, body=open_body),
    Endpoint("GET", "/v1/teach/next", "The sentence to decide about now.", _next, query=next_query),
    Endpoint("POST", "/v1/teach/decide", "Keep what is known of a sentence, durably.", _decide, body=decide_body),
    Endpoint("POST", "/v1/teach/undo", "Take the last decision back.", _undo, body=empty_body),
    Endpoint("POST", "/v1/teach/train", "Train on what was taught.", _train, body=empty_body),
    Endpoint("GET", "/v1/teach/training", "How the training goes.", _training),
)


# The API described for programs (OpenAPI 3.1) and people, from the declarations that check requests.

PROBLEM = {
    "type": "object",
    "required": ["title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "One sentence: what was expected, and what was found."},
    },
}


def openapi(limits: Limits) -> JsonObject:
    """Return the description of the API as an OpenAPI document."""
    paths: JsonObject = {}
    for each in ENDPOINTS:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each, limits)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Trelliswork", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": {"Problem": PROBLEM},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}, {}],
    }


def _operation(endpoint: Endpoint, limits: Limits) -> JsonObject:
    problem = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    operation: JsonObject = {
        "summary": endpoint.summary,
        "operationId": endpoint.path.removeprefix("/v1/").replace("/", "_"),
        "responses": {
            "200": {"description": "The answer.", "content": {"application/json": {"schema": {"type": "object"}}}},
            "default": {"description": "What is wrong, in one sentence.", "content": problem},
        },
    }
    if endpoint.body is not None:
        schema = endpoint.body(limits).schema()
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    if endpoint.query is not None:
        schema = endpoint.query(limits).schema()
        operation["parameters"] = [
            {"name": name, "in": "query", "required": name in schema.get("required", ()), "schema": of_it,
             "description": of_it.get("description", "")}
            for name, of_it in schema["properties"].items()
        ]  # fmt: skip
    return operation


def docs_page(limits: Limits) -> str:
    """Return the description of the API as an HTML page."""
    sections = "".join(_section(each, limits) for each in ENDPOINTS)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Trelliswork: the API</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="stylesheet" href="/docs.css"></head>\n<body><main><h1>The API</h1>\n'
        "<p>Bodies are JSON. What is wrong comes back as <code>application/problem+json</code> with one sentence. "
        'The same for programs: <a href="/openapi.json">/openapi.json</a>; <a href="/metrics">/metrics</a> and '
        f'<a href="/healthz">/healthz</a> are for those who run the server.</p>\n{sections}</main></body></html>\n'
    )


def _section(endpoint: Endpoint, limits: Limits) -> str:
    kind = endpoint.body or endpoint.query
    rows = "" if kind is None else _rows(kind(limits).schema())
    table = f"<table><tr><th>member</th><th>kind</th><th>default</th><th>meaning</th></tr>{rows}</table>\n"
    title = f"<h2><code>{endpoint.method} {endpoint.path}</code></h2>\n<p>{escape(endpoint.summary)}</p>\n"
    return title + (table if rows else "")


def _rows(schema: JsonObject, inside: str = "") -> str:
    rows = ""
    for name, of_it in schema["properties"].items():
        shown = str(of_it["default"]) if "default" in of_it and of_it["default"] not in (None, ()) else ""
        cells = (f"<code>{inside}{name}</code>", _kind(of_it), escape(shown), escape(of_it.get("description", "")))
        rows += "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>\n"
        inner = of_it.get("items", {})
        rows += _rows(inner, f"{inside}{name}[].") if inner.get("type") == "object" else ""
    return rows


def _kind(schema: JsonObject) -> str:
    if "enum" in schema:
        return escape(" | ".join(schema["enum"]))
    if "anyOf" in schema:
        return " or ".join(map(_kind, schema["anyOf"]))
    if schema["type"] == "array":
        return f"list of {_kind(schema['items'])}"
    if "maximum" in schema:
        return f"{schema['minimum']}..{schema['maximum']}"
    return str(schema["type"])
