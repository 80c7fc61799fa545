"""Checks before anything else runs: Host, Origin, token, size, time and number of requests."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trelliswork.data.json_values import Json
from trelliswork.logs import tell
from trelliswork.web.measures import Measures
from trelliswork.web.problems import PROBLEM_JSON, Problem, place_of
from trelliswork.web.requests import Limits

BODY = "trelliswork.body"  # where the body of a request is in its scope
ROUTE = "trelliswork.route"  # and the path of its route, for the metrics
LOCAL = ("127.0.0.1", "localhost", "::1")
OPEN = ("/healthz",)  # needs no token, and is never too many
SAFE = ("GET", "HEAD", "OPTIONS")
JSON_TYPES = ("application/json",)
SMALL = 65_536  # bytes of a body that is always taken in
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-cache"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
]


@dataclass
class Access:
    """Names that the server is called by, and the token that requests need."""

    hosts: frozenset[str] = frozenset(LOCAL)
    token: str | None = None

    @classmethod
    def of(cls, bound: str, more: Iterable[str] = (), token: str | None = None) -> Access:
        """Return the access to a server that is bound to an address; `more` are further names of it.

        Args:
            bound: The address that the server is bound to.
            more: Further names of it.
            token: The token that requests need; None lets all in.

        Returns:
            The access.
        """
        return cls(frozenset({*LOCAL, bound, *more}), token)


@dataclass
class Guard:
    """An ASGI application around another one."""

    app: ASGIApp
    access: Access
    limits: Limits
    measures: Measures
    running: int = field(default=0)
    held: int = field(default=0)  # bytes of the bodies of all requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        answer = _Answer(send)
        began = time.perf_counter()
        try:
            await self._answer(scope, receive, answer)
        except Problem as problem:
            if BODY not in scope and scope["method"] not in SAFE:  # the rest of the body would be the next request
                problem.headers["Connection"] = "close"
            await answer.problem(problem)
        except Exception as error:  # an internal error
            tell(f"{type(error).__name__}: {error} at {scope['path']!r}", level=logging.ERROR, kind=place_of(error))
            await answer.problem(Problem(500, "the server failed on this request; its log has the reason"))
        finally:
            self.measures.request(scope.get(ROUTE, "other"), answer.status, time.perf_counter() - began)

    async def _answer(self, scope: Scope, receive: Receive, answer: _Answer) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        self._check_host(headers, scope.get("server"))
        self._check_origin(scope["method"], headers)
        if scope["path"] not in OPEN:
            self._check_token(scope["path"], headers)
        body = _Body(self)
        try:
            if scope["method"] == "POST":
                scope[BODY] = await self._body(headers, receive, body, self._most(scope["path"]))
            await self._within(scope, receive, answer)
        finally:
            body.clear()

    async def _within(self, scope: Scope, receive: Receive, answer: _Answer) -> None:
        """Answer a request whose body is here; those that are slow to send one take no place."""
        if scope["path"] not in OPEN and self.running >= self.limits.at_once:
            raise Problem(429, "too many requests at once; try again in a second", {"Retry-After": "1"})
        self.running += 1
        try:
            await self.app(scope, receive, answer)
        finally:
            self.running -= 1

    def _most(self, path: str) -> int:
        return self.limits.taught if path == "/v1/teach/open" else self.limits.body

    def _check_host(self, headers: dict[str, str], server: tuple[str, int | None] | None) -> None:
        """A page of another name that leads here (DNS rebinding) has its own name as Host.

        The address that a connection came to is always right: a probe of a container asks by its address.
        """
        if host_of(headers.get("host", "")) not in (*self.access.hosts, *(server or ())[:1]):
            raise Problem(421, "this server is not called by that name; use its address, or start it with --allow-host")

    def _check_origin(self, method: str, headers: dict[str, str]) -> None:
        """Refuse requests of pages of other sites (CSRF); a program that is not a page sends no Origin."""
        origin = headers.get("origin")
        same = origin is None or origin.partition("://")[2].lower() == headers.get("host", "").lower()
        if not same or (method not in SAFE and headers.get("sec-fetch-site", "same-origin") == "cross-site"):
            raise Problem(403, "pages of other sites may not ask this server; open the page of this server")

    def _check_token(self, path: str, headers: dict[str, str]) -> None:
        token = self.access.token
        if token is None or not path.startswith(("/v1/", "/metrics")):
            return
        given = headers.get("authorization", "")
        kind, _, value = given.partition(" ")
        if kind.lower() != "bearer" or not hmac.compare_digest(value.strip().encode("latin-1"), token.encode()):
            expected = "expected the token of this server; send the header Authorization: Bearer TOKEN"
            raise Problem(401, expected, {"WWW-Authenticate": "Bearer"})

    async def _body(self, headers: dict[str, str], receive: Receive, body: _Body, most: int) -> bytes:
        """Return the body of a request, refused as soon as it is known to be too large."""
        if headers.get("content-type", "").partition(";")[0].strip().lower() not in JSON_TYPES:
            raise Problem(415, "expected a body of JSON; send the header Content-Type: application/json")
        if headers.get("content-encoding", "identity").lower() != "identity":
            raise Problem(415, "expected a body that is not compressed; leave out Content-Encoding")
        length = headers.get("content-length", "")
        has_length = length.isascii() and length.isdecimal()
        if "transfer-encoding" in headers or not has_length:  # chunks of a byte each cost a second for each 50 kB
            raise Problem(411, "expected a body of known length; send the header Content-Length")
        if len(length) > 20 or int(length) > most:
            raise Problem(413, f"expected a body of at most {most:,} bytes; send less at once")
        try:
            async with asyncio.timeout(self.limits.body_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Problem(400, "the request ended before its body did")
                    body.add(message.get("body", b""))
                    if not message.get("more_body", False):
                        return bytes(body.received)
        except TimeoutError as error:
            problem = f"expected the whole body within {self.limits.body_seconds:g} s; send it faster"
            raise Problem(408, problem) from error


class _Body:
    """A body as it comes in; what is beyond `SMALL` counts to what all bodies together may take."""

    def __init__(self, guard: Guard) -> None:
        self._guard, self.received, self._counted = guard, bytearray(), 0

    def add(self, part: bytes) -> None:
        """Take a part in, if there is room for it."""
        self.received += part
        counted = max(len(self.received) - SMALL, 0)
        self._guard.held += counted - self._counted
        self._counted = counted
        if counted and self._guard.held > self._guard.limits.held:
            raise Problem(429, "too many large bodies at once; try again in a second", {"Retry-After": "1"})

    def clear(self) -> None:
        """Make room for others."""
        self._guard.held -= self._counted
        self._counted = 0


class _Answer:
    """The `send` of an answer, which adds the headers of every answer; a problem after the beginning ends it."""

    def __init__(self, send: Send) -> None:
        self._send, self.status = send, 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            given = {name for name, _ in message.get("headers", ())}
            added = [header for header in HEADERS if header[0] not in given]
            message = {**message, "headers": [*message.get("headers", ()), *added]}
        await self._send(message)

    async def problem(self, problem: Problem) -> None:
        """Say what is wrong, unless an answer has begun."""
        if self.status:
            return
        body = problem.body()
        headers: list[Json] = [(b"content-type", PROBLEM_JSON.encode()), (b"content-length", str(len(body)).encode())]
        headers += [(name.lower().encode(), value.encode()) for name, value in problem.headers.items()]
        await self({"type": "http.response.start", "status": problem.status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})


def host_of(header: str) -> str:
    """Return the name in a Host header, without the port.

    >>> host_of("localhost:8000"), host_of("[::1]:8000"), host_of("Example.org"), host_of("a:b:c")
    ('localhost', '::1', 'example.org', '')
    """
    try:
        address = urlsplit(f"//{header.strip()}")
        name = address.hostname or ""
        _ = address.port
    except ValueError:
        return ""
    return name if "@" not in header and "/" not in header else ""


def is_local(address: str) -> bool:
    """Return whether an address to bind to is of this machine alone."""
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
