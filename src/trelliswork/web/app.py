"""The application: what each path answers."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from trelliswork.data.json_values import JsonObject
from trelliswork.errors import OutputError, TrellisworkError
from trelliswork.web.endpoints import ENDPOINTS, Endpoint, docs_page, openapi
from trelliswork.web.frames import Reply, pack_call
from trelliswork.web.guard import BODY, ROUTE, Access, Guard
from trelliswork.web.measures import Measures
from trelliswork.web.palette import palette_css
from trelliswork.web.pool import Pool, off_loop
from trelliswork.web.problems import PROBLEM_JSON, Problem, json_bytes
from trelliswork.web.requests import Limits, read_json
from trelliswork.web.teaching.session import TeachingSession

STATIC = Path(__file__).parent / "static"
JSON = "application/json"
Handler = Callable[[Request], Awaitable[Response]]


@dataclass
class Site:
    """State that the handlers of requests share."""

    pool: Pool
    limits: Limits
    access: Access
    measures: Measures
    session: TeachingSession
    guard: Guard | None = None

    def model_name(self, name: str | None) -> str:
        """Return the model that is asked; the first if none is named."""
        names = list(self.pool.folders)
        if name is not None and name not in names:
            raise Problem(404, f"expected one of the models {', '.join(names)}; got {name[:100]!r}")
        return names[0] if name is None else name

    async def ask(self, op: str, body: JsonObject, size: int) -> Reply:
        """Return the reply of a worker.

        Args:
            op: What is asked.
            body: The checked body of the request, which names the model.
            size: Number of bytes of the request.

        Returns:
            Status and body.
        """
        size_of_texts = sum(map(len, body.get("texts") or ()))
        if size_of_texts > self.limits.all_characters:
            problem = f"expected at most {self.limits.all_characters:,} characters in all texts, got {size_of_texts:,}"
            raise Problem(413, f"body.texts: {problem}; send fewer texts at once")
        name = self.model_name(body.pop("model", None))
        payload = await off_loop(size, pack_call, op, name, body)
        body.clear()  # which takes ten times the memory, and may have to wait
        return await self.pool.ask_packed(name, payload)


def make_app(site: Site) -> Guard:
    """Return the whole application, guarded."""
    routes = [Route(path, _handler(site, path, of_path), methods=list(of_path)) for path, of_path in _by_path().items()]
    routes += [
        Route("/healthz", _plain_handler("/healthz", site, _health), methods=["GET"]),
        Route("/metrics", _plain_handler("/metrics", site, _metrics), methods=["GET"]),
        Route("/openapi.json", _plain_handler("/openapi.json", site, _openapi), methods=["GET"]),
        Route("/palette.css", _plain_handler("/palette.css", site, _palette), methods=["GET"]),
        Route("/docs", _plain_handler("/docs", site, _docs), methods=["GET"]),
    ]
    pages = [Mount("/", StaticFiles(directory=STATIC, html=True))] if STATIC.is_dir() else []

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await site.session.stop()
            await site.pool.stop()

    inner = Starlette(routes=[*routes, *pages], exception_handlers=HANDLERS, lifespan=lifespan)
    site.guard = Guard(inner, site.access, site.limits, site.measures)
    return site.guard


def _by_path() -> dict[str, dict[str, Endpoint]]:
    endpoints: dict[str, dict[str, Endpoint]] = {}
    for each in ENDPOINTS:
        endpoints.setdefault(each.path, {})[each.method] = each
    return endpoints


def _handler(site: Site, path: str, of_path: dict[str, Endpoint]) -> Handler:
    """Return the handler that reads a request as it is declared, and answers it."""

    queries = {method: each.query(site.limits) for method, each in of_path.items() if each.query is not None}
    bodies = {method: each.body(site.limits) for method, each in of_path.items() if each.body is not None}

    async def handle(request: Request) -> Response:
        request.scope[ROUTE] = path
        method = "GET" if request.method == "HEAD" else request.method
        endpoint, given, raw = of_path[method], JsonObject(), request.scope.get(BODY, b"")
        if method in queries:
            given = queries[method].check(_query(request), "query")
        if method in bodies:
            given = await off_loop(len(raw), read_json, raw, bodies[method])
        try:
            answer = await endpoint.answer(site, given, len(raw))
        except TrellisworkError as error:
            raise Problem(500 if isinstance(error, OutputError) else 422, str(error)) from error
        if isinstance(answer, Response):
            return answer
        if not isinstance(answer, Reply):
            answer = Reply(200, json_bytes(answer))
        kind = JSON if answer.status == 200 else PROBLEM_JSON
        headers = {"Retry-After": "1"} if answer.status == 503 else None
        return Response(answer.body, answer.status, headers=headers, media_type=kind)

    return handle


def _query(request: Request) -> JsonObject:
    """Return the parameters of a query; those that look like whole numbers are."""
    pairs = request.query_params.multi_items()
    if len({name for name, _ in pairs}) < len(pairs):
        raise Problem(400, "query: expected each parameter once")
    return {name: int(value) if value.isdecimal() and len(value) < 10 else value for name, value in pairs}


def _plain_handler(path: str, site: Site, answer: Callable[[Site], Response]) -> Handler:
    async def handle(request: Request) -> Response:
        request.scope[ROUTE] = path
        return answer(site)

    return handle


def _health(site: Site) -> Response:
    status = 200 if site.pool.ready else 503
    record = {
        "status": "ok" if site.pool.ready else "starting",
        "ready": site.pool.ready,
        "workers": site.pool.n_workers,
    }
    return Response(json.dumps(record), status, media_type=JSON)


def _metrics(site: Site) -> Response:
    text = site.measures.text(
        workers_ready=site.pool.ready,
        requests_running=0 if site.guard is None else site.guard.running,
        calls_waiting=site.pool.waiting,
    )
    return Response(text, media_type="text/plain; version=0.0.4")


def _openapi(site: Site) -> Response:
    return Response(json.dumps(openapi(site.limits)), media_type=JSON)


def _palette(site: Site) -> Response:
    return Response(palette_css(), media_type="text/css")


def _docs(site: Site) -> Response:
    return HTMLResponse(docs_page(site.limits))


async def _problem(_: Request, problem: Exception) -> Response:
    assert isinstance(problem, Problem)
    return Response(problem.body(), problem.status, headers=problem.headers, media_type=PROBLEM_JSON)


async def _not_found(request: Request, _: Exception) -> Response:
    return await _problem(request, Problem(404, "this path does not exist; /docs lists all paths"))


async def _not_allowed(request: Request, error: Exception) -> Response:
    problem = f"{request.method[:20]} is not allowed for this path; see /docs"
    return await _problem(request, Problem(405, problem, dict(getattr(error, "headers", None) or {})))


HANDLERS: dict[int | type[Exception], Callable[[Request, Exception], Awaitable[Response]]] = {
    Problem: _problem,
    404: _not_found,
    405: _not_allowed,
}
