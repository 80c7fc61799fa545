"""The API described for programs (OpenAPI 3.1) and people, from the declarations that check requests."""

from __future__ import annotations

from html import escape
from typing import Any

from trelliswork import __version__
from trelliswork.web.endpoints import ENDPOINTS, Endpoint
from trelliswork.web.limits import Limits

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


def openapi(limits: Limits) -> dict[str, Any]:
    """The whole document."""
    paths: dict[str, Any] = {}
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


def _operation(endpoint: Endpoint, limits: Limits) -> dict[str, Any]:
    problem = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    found: dict[str, Any] = {
        "summary": endpoint.summary,
        "operationId": endpoint.path.removeprefix("/v1/").replace("/", "_"),
        "responses": {
            "200": {"description": "The answer.", "content": {"application/json": {"schema": {"type": "object"}}}},
            "default": {"description": "What is wrong, in one sentence.", "content": problem},
        },
    }
    if endpoint.body is not None:
        schema = endpoint.body(limits).schema()
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    if endpoint.query is not None:
        schema = endpoint.query(limits).schema()
        found["parameters"] = [
            {"name": name, "in": "query", "required": name in schema.get("required", ()), "schema": of_it,
             "description": of_it.get("description", "")}
            for name, of_it in schema["properties"].items()
        ]  # fmt: skip
    return found


def docs_page(limits: Limits) -> str:
    """The same as a plain page."""
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


def _rows(schema: dict[str, Any], inside: str = "") -> str:
    found = ""
    for name, of_it in schema["properties"].items():
        shown = str(of_it["default"]) if "default" in of_it and of_it["default"] not in (None, ()) else ""
        cells = (f"<code>{inside}{name}</code>", _kind(of_it), escape(shown), escape(of_it.get("description", "")))
        found += "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>\n"
        inner = of_it.get("items", {})
        found += _rows(inner, f"{inside}{name}[].") if inner.get("type") == "object" else ""
    return found


def _kind(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return escape(" | ".join(schema["enum"]))
    if "anyOf" in schema:
        return " or ".join(map(_kind, schema["anyOf"]))
    if schema["type"] == "array":
        return f"list of {_kind(schema['items'])}"
    if "maximum" in schema:
        return f"{schema['minimum']}..{schema['maximum']}"
    return str(schema["type"])
