"""Faults: workers that are killed under load, and requests that nobody should send.

TRELLISWORK_FUZZ=10000 sends as many malformed requests as the issue asks for; without it, 300.
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import trelliswork as tw
from tests.web.conftest import Served, sentences
from trelliswork.web import Client, ServerError

FUZZ = int(os.environ.get("TRELLISWORK_FUZZ", "300"))
CLIENTS = 4
GROWTH = 40_000_000  # bytes that the server and its workers may grow by
PATHS = ("/v1/predict", "/v1/draw", "/v1/explain", "/v1/teach/decide", "/v1/teach/open", "/v1/teach/undo", "/v1/none")
VALID: list[Any] = [
    {"text": "Ann met Bob.", "top_k": 2, "choices": 2, "pins": [{"token": 0, "value": "B-PER"}]},
    {"tokens": [["Ann", "met"]], "confidences": False},
    {"texts": ["Ann", ""], "model": "ner"},
    {"id": 3, "tags": ["O", None]},
    {"name": "x", "content": "", "format": "conll"},
]
ODD: list[Any] = [
    None, True, -1, 10**30, 1e308, "", "\u0000", "\ud800", "x" * 3000, [], {}, [[]], {"a": {}}, [None], "B-PER", 2**63,
    ["\u202e", "\U0001f600"], {"": 0}, -0.0, "\n\r\t",
]  # fmt: skip


def test_killed_workers_lose_at_most_requests_in_flight(serve: Callable[..., Served], tagger: Path) -> None:
    server, model = serve(tagger, options=("--workers", "2", "--timeout", "300")), tw.load(tagger)
    rows = [list(each.words) for each in sentences(30, seed=8)]
    wanted = [answer.value for answer in model.predict(rows, top_k=0, confidence=False)]
    wrong, lost, answered, over = list[int](), list[int](), list[int](), threading.Event()

    def ask(i: int) -> None:
        """One question after the other; one that was lost is asked again, as a client that retries does."""
        with Client(server.address, retries=0, timeout=400) as client:
            while not over.is_set():
                try:
                    found = client.predict(tokens=[rows[i % 30]], confidences=False)["results"][0]["sentences"][0]
                except ServerError:
                    lost.append(i)
                    continue
                answered.append(i)
                if found["value"] != wanted[i % 30]:
                    wrong.append(i)
                i += 1

    with Client(server.address) as client:
        while client.get("/healthz")["ready"] < 2:
            time.sleep(0.1)
    threads = [threading.Thread(target=ask, args=(first,), daemon=True) for first in range(CLIENTS)]
    for each in threads:
        each.start()
    killed = set[int]()
    for _ in range(3):
        before = len(answered)
        victim = next(pid for pid in server.workers() if pid not in killed)
        os.kill(victim, signal.SIGKILL)
        killed.add(victim)
        limit = time.monotonic() + 120
        while (len(answered) < before + 20 or len(server.workers()) < 2) and time.monotonic() < limit:
            time.sleep(0.05)
        assert len(answered) >= before + 20
    over.set()
    for each in threads:
        each.join(timeout=60)
    assert wrong == []
    assert len(lost) <= 3 * CLIENTS, "each kill may cost what was in flight, and nothing else"
    with Client(server.address) as client:
        assert client.get("/healthz")["status"] == "ok"


def malformed(source: random.Random, netloc: str) -> bytes:
    """A request that is wrong in one way or another, now and then right."""
    body = _body(source)
    path = source.choice(PATHS) if source.random() < 0.9 else "/" + "".join(source.choices("%./\\?&=v1\x7f", k=8))
    head = [
        f"POST {path} HTTP/1.1",
        f"Host: {netloc}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    ]
    kind = source.randrange(12)
    if kind == 0:
        head[0] = source.choice(["GET /v1/teach/next?by=%00&id=x HTTP/1.1", "BREW / HTTP/1.1", "POST", "\x00\x01", ""])
    elif kind == 1:
        head[source.randrange(1, 4)] = source.choice(
            ["Host: x", "X: \x01", ": ", "Content-Length: -5", "Content-Length: 9e9"]
        )
    elif kind == 2:
        head[3] = f"Content-Length: {source.choice([10**12, 10**30, 3_000_000])}"
    return "\r\n".join([*head, "Connection: close", "", ""]).encode("latin-1") + body


def _body(source: random.Random) -> bytes:
    """JSON with wrong values, or hardly JSON."""
    value = json.loads(json.dumps(source.choice(VALID)))
    for _ in range(source.randrange(3)):
        name = source.choice([*value, "pins", "extra"])
        value[name] = source.choice(ODD)
    if "pins" in value and source.random() < 0.5:
        value["pins"] = [{source.choice(["token", "value", "start", "end", "label", "input"]): source.choice(ODD)}]
    raw = json.dumps(value).encode()
    kind = source.randrange(10)
    if kind == 0:
        raw = raw[: source.randrange(len(raw) + 1)]
    elif kind == 1:
        place = source.randrange(len(raw))
        raw = raw[:place] + bytes(source.randrange(256) for _ in range(3)) + raw[place:]
    elif kind == 2:
        raw = b"[" * source.choice([10, 1000, 100_000])
    elif kind == 3:
        raw = source.choice(
            [b'{"text": NaN}', b'{"text": "a", "text": "b"}', b'{"top_k": ' + b"9" * 6000 + b"}", b"\xff"]
        )
    return raw


def answer_of(address: str, request: bytes, pause: float = 0.0) -> bytes:
    """What comes back; nothing if the connection was closed."""
    parts = urlsplit(address)
    try:
        with socket.create_connection((parts.hostname, parts.port), timeout=60) as line:
            if pause:
                line.sendall(request[:-5])
                time.sleep(pause)
                return b""  # and gone, in the middle of its body
            line.sendall(request)
            line.shutdown(socket.SHUT_WR)
            found = b""
            while more := line.recv(65536):
                found += more
            return found
    except OSError:
        return b""


def test_malformed_requests_are_refused_and_memory_stays(serve: Callable[..., Served], tagger: Path) -> None:
    server, source = serve(tagger), random.Random(1)
    netloc, statuses, memory = urlsplit(server.address).netloc, dict[bytes, int](), 0
    for i in range(FUZZ):
        if i == FUZZ // 3:
            memory = server.memory()
        request = malformed(source, netloc)
        answer = answer_of(server.address, request, pause=0.01 if i % 100 == 50 else 0.0)
        status = answer[9:12]
        statuses[status] = statuses.get(status, 0) + 1
        assert not status.startswith(b"5"), (request[:2000], answer[:2000])
        assert b"Traceback" not in answer
        if status[:1] == b"4" and b"application/problem+json" in answer:
            assert json.loads(answer.partition(b"\r\n\r\n")[2])["detail"]
    assert server.memory() < memory + GROWTH
    assert statuses[b"422"] > FUZZ // 10 and statuses[b"400"] > FUZZ // 30, statuses
    with Client(server.address) as client:
        assert client.predict(text="Ann met Bob.")["results"]


HEADERS = (
    "Host", "Origin", "Content-Type", "Content-Length", "Content-Encoding", "Authorization", "Transfer-Encoding",
    "Expect", "Connection", "Upgrade", "Range", "If-Modified-Since", "If-None-Match", "Accept-Encoding", "Cookie",
    "Sec-Fetch-Site",
)  # fmt: skip
VALUES = (
    "", "[", "http://[", "http://[::1", "::", "%", "%00", "\xff", "\xb2", "0", "-1", "1e3", "9" * 25, "chunked", "gzip",
    "bytes=0-", "bytes=5-1", "bytes=-", "Bearer", "Bearer \xff", "Basic Og==", "100-continue", "close, upgrade", "h2c",
    "websocket", "application/json;;", "null", "*", "Thu, 99 Foo 0000", "a" * 5000, "http://localhost:99999999",
)  # fmt: skip
PLACES = (
    "/", "/docs", "/docs/", "/openapi.json", "/healthz", "/metrics", "/palette.css", "/index.html", "/v1/models",
    "/v1/teach", "/v1/teach/next", "/v1/teach/next?by=x", "/v1/teach/next?id=-1", "/v1/teach/next?id=%D9%A3",
    "/v1/teach/next?id=1&id=2", "/v1/teach/next?%", "/v1/teach/next?by=%FF", "/v1/teach/training", "/%00", "/%FF",
    "/..%2f..%2fetc/passwd", "/" + "a" * 5000, "/%2e%2e", "/a%0ab", "//", "/?", "/v1/models/", "/v1/predict", "*",
    "http://x/y", "/%F0%9F%98%80", "/%",
)  # fmt: skip


def test_odd_headers_and_paths_never_break_the_server(serve: Callable[..., Served], tagger: Path) -> None:
    """Every path with every method, and headers that say what they should not."""
    server, source = serve(tagger), random.Random(2)
    netloc = urlsplit(server.address).netloc
    methods = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "X")
    requests = [(place, method, dict[str, str]()) for place in PLACES for method in methods]
    odd = [(name, value) for name in HEADERS for value in VALUES]
    requests += [(source.choice(PLACES), source.choice(("GET", "POST")), dict([pair])) for pair in odd]
    for place, method, headers in requests:
        sent = {"Host": netloc, "Content-Type": "application/json", "Content-Length": "2", **headers}
        lines = [f"{method} {place} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items())]
        answer = answer_of(server.address, "\r\n".join([*lines, "", "{}"]).encode("latin-1"))
        assert not answer[9:12].startswith(b"5") or answer[9:12] == b"501", (place, method, headers, answer[:500])
        assert b"Traceback" not in answer
    with Client(server.address) as client:
        assert client.predict(text="Ann met Bob.")["results"]


def test_what_the_schema_allows_is_answered_and_nothing_else(serve: Callable[..., Served], tagger: Path) -> None:
    """Bodies and queries made of the OpenAPI document, some of them spoilt, get an answer or a sentence."""
    server, source = serve(tagger), random.Random(4)
    with Client(server.address, retries=0) as client:
        document = client.get("/openapi.json")
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                if path == "/v1/teach/train":
                    continue
                for _ in range(25):
                    status = asked_by(client, source, path, method, operation)
                    assert status in (200, 400, 404, 409, 413, 422), (path, status)


def asked_by(client: Client, source: random.Random, path: str, method: str, operation: Any) -> int:
    """The status of a request that the schema allows, now and then spoilt."""
    try:
        if method == "get":
            names = [each["name"] for each in operation.get("parameters", ())]
            values = {name: source.choice(("order", 0, 3, "", "x")) for name in names if source.random() < 0.5}
            client.get(path, **values)
        else:
            schema = operation["requestBody"]["content"]["application/json"]["schema"]
            body = made(schema, source)
            if body and source.random() < 0.3:
                body[source.choice(list(body))] = source.choice(ODD)
            client.post(path, body)
    except ServerError as error:
        return error.status if str(error) else 0
    return 200


def made(schema: Any, source: random.Random) -> Any:
    """A value that a schema allows."""
    if "anyOf" in schema:
        return made(source.choice(schema["anyOf"]), source)
    if "enum" in schema:
        return source.choice(schema["enum"])
    if schema["type"] == "object":
        chosen = {name for name in schema["properties"] if source.random() < 0.4} | set(schema.get("required", ()))
        groups = [each["required"][0] for each in schema.get("oneOf", ())]
        chosen = (chosen - set(groups)) | ({source.choice(groups)} if groups else set())
        return {name: made(schema["properties"][name], source) for name in chosen}
    if schema["type"] == "array":
        n = source.randrange(schema.get("minItems", 0), schema.get("minItems", 0) + 3)
        return [made(schema["items"], source) for _ in range(n)]
    if schema["type"] == "integer":
        return source.randint(schema["minimum"], min(schema["maximum"], schema["minimum"] + 3))
    if schema["type"] == "string":
        return source.choice(("Ann met Bob.", "O", "B-PER", "x", "ner", "\u00e9\u4e2d\U0001f600"))
    return source.random() < 0.5 if schema["type"] == "boolean" else None
