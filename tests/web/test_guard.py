"""Who is let in, how much is taken, and what happens at start and stop."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.web.conftest import Served
from trelliswork.cli.main import run
from trelliswork.errors import TrellisworkError
from trelliswork.web import Client, ServerError
from trelliswork.web.guard import POLICY, Access, Guard, host_of, is_local
from trelliswork.web.measures import Measures
from trelliswork.web.requests import Limits
from trelliswork.web.server import named_models

Headers = dict[str, str]


def asked(
    server: Served, method: str, path: str, headers: Headers, body: bytes | None = None
) -> tuple[int, Any, Headers]:
    """A request with just these headers."""
    parts = urlsplit(server.address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    for name, value in {"Host": parts.netloc, **headers}.items():
        connection.putheader(name, value)
    if body is not None and "Content-Length" not in headers:
        connection.putheader("Content-Length", str(len(body)))
    connection.endheaders(body)
    response = connection.getresponse()
    raw, found = response.read(), {name.lower(): value for name, value in response.getheaders()}
    connection.close()
    return response.status, raw, found


JSON = {"Content-Type": "application/json"}
BODY = b'{"text": "Ann met Bob."}'


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "evil.example"}, 421),
        ({"Host": "evil.example:80@127.0.0.1"}, 421),
        ({"Host": ""}, 421),
        ({"Host": "localhost:1"}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://["}, 403),
        ({"Origin": "http://[::1"}, 403),
        ({"Origin": ""}, 403),
        ({"Origin": "://"}, 403),
        ({"Host": "["}, 421),
        ({"Host": "[::1"}, 421),
        ({"Host": "localhost:x"}, 421),
        ({"Host": "localhost:99999999"}, 421),
        ({"Content-Type": ";"}, 415),
        ({"Content-Type": "application/json; charset=\xff"}, 200),
        ({"Authorization": "Bearer \xff\xfe"}, 200),
        ({"Content-Length": "-1"}, 400),
        ({"Content-Length": "\xb2"}, 400),
        ({"Transfer-Encoding": "chunked"}, 411),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content-Encoding": "gzip"}, 415),
    ],
)
def test_pages_of_others_are_refused(server: Served, headers: Headers, status: int) -> None:
    found, raw, given = asked(server, "POST", "/v1/predict", {**JSON, **headers}, BODY)
    assert found == status
    assert given["content-security-policy"] == POLICY
    assert given["x-content-type-options"] == "nosniff"
    if status != 200:
        assert given["content-type"] == "application/problem+json"
        assert json.loads(raw)["status"] == status


def test_the_page_itself_may_ask(server: Served) -> None:
    origin = server.address.rstrip("/")
    assert (
        asked(server, "POST", "/v1/predict", {**JSON, "Origin": origin, "Sec-Fetch-Site": "same-origin"}, BODY)[0]
        == 200
    )


def test_a_huge_body_is_refused_at_once(server: Served) -> None:
    """Without waiting for the rest: that would end with status 408."""
    status, raw, _ = asked(server, "POST", "/v1/predict", {**JSON, "Content-Length": "100000000"}, b"{")
    assert status == 413
    assert "at most 2,000,000 bytes" in json.loads(raw)["detail"]


def test_a_huge_body_of_unknown_length_is_counted(server: Served) -> None:
    parts = urlsplit(server.address)
    with socket.create_connection((parts.hostname, parts.port), timeout=30) as line:
        head = f"POST /v1/predict HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: application/json\r\n"
        line.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        sent = 0
        try:
            for _ in range(1600):  # 100 MB, if it were read
                line.sendall(chunk)
                sent += 0x10000
        except OSError:
            pass
        answer = line.recv(100)
    assert answer.startswith(b"HTTP/1.1 413") or sent < 50_000_000
    assert sent < 100_000_000 or answer.startswith(b"HTTP/1.1 413")


def test_endless_headers_are_refused_and_not_kept(server: Served) -> None:
    parts = urlsplit(server.address)
    with socket.create_connection((parts.hostname, parts.port), timeout=30) as line:
        line.sendall(f"GET /healthz HTTP/1.1\r\nHost: {parts.netloc}\r\n".encode())
        sent = 0
        try:
            for i in range(10_000):  # 40 MB, if they were read
                header = f"X-{i}: {'a' * 4000}\r\n".encode()
                line.sendall(header)
                sent += len(header)
        except OSError:
            pass
    assert sent < 20_000_000


def test_a_slow_body_is_given_up() -> None:
    """A client that sends a byte now and then, for ever, gets 408 when the time for a body is over."""
    sent, n_bytes = list[Any](), 0

    async def receive() -> dict[str, Any]:
        nonlocal n_bytes
        await asyncio.sleep(0.02)
        n_bytes += 1
        return {"type": "http.request", "body": b" ", "more_body": True}

    async def send(message: Any) -> None:
        sent.append(message)

    async def never(*_: Any) -> None:
        raise AssertionError("half a request was answered")

    headers = [(b"host", b"localhost"), (b"content-type", b"application/json"), (b"content-length", b"1000")]
    scope = {"type": "http", "method": "POST", "path": "/v1/predict", "headers": headers}
    guard = Guard(never, Access(), Limits(body_seconds=0.3), Measures())
    with ThreadPoolExecutor(1) as alone:  # the browser of other tests may have a loop in this thread
        alone.submit(lambda: asyncio.run(guard(scope, receive, send))).result()
    assert 1 < n_bytes < 1000
    assert (sent[0]["status"], dict(sent[0]["headers"])[b"connection"]) == (408, b"close")
    assert "within 0.3 s" in json.loads(sent[1]["body"])["detail"] and guard.running == 0


def test_no_file_outside_of_the_page_is_served(server: Served) -> None:
    for path in ("/../app.py", "/%2e%2e/app.py", "/..%2fapp.py", "//etc/passwd", "/static/../../worker.py", "/nothing"):
        status, raw, _ = asked(server, "GET", path, {})
        assert status in (400, 404), path
        assert b"import" not in raw
    assert asked(server, "DELETE", "/v1/predict", {})[0] == 405
    assert asked(server, "GET", "/palette.css", {})[2]["content-type"].startswith("text/css")


def test_every_page_of_the_documentation_is_there(server: Served) -> None:
    status, raw, headers = asked(server, "GET", "/docs", {})
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    page = raw.decode()
    document = json.loads(asked(server, "GET", "/openapi.json", {})[1])
    for path, methods in document["paths"].items():
        for method in methods:
            assert f"<code>{method.upper()} {path}</code>" in page
    assert "list of string or null" in page  # the tags of a decision


def test_a_token_is_asked_for(serve: Callable[..., Served], tagger: Path) -> None:
    server = serve(tagger, options=("--token", "secret"))
    assert asked(server, "GET", "/healthz", {})[0] == 200
    assert asked(server, "GET", "/v1/models", {})[0] == 401
    assert asked(server, "GET", "/metrics", {"Authorization": "Bearer wrong"})[0] == 401
    assert asked(server, "GET", "/v1/models", {"Authorization": "Bearer secret"})[0] == 200
    with Client(server.address, token="secret") as client:
        assert client.models()[0]["name"] == "ner"
    with pytest.raises(ServerError, match="Authorization: Bearer"), Client(server.address) as client:
        client.models()


def test_too_many_at_once() -> None:
    """A request that is being answered counts; a body that has not come takes no place; health is always answered."""
    headers = [(b"host", b"localhost"), (b"content-type", b"application/json"), (b"content-length", b"2")]
    statuses = dict[str, int]()

    async def ask(guard: Guard, name: str, path: str, body: asyncio.Event | None = None) -> None:
        async def receive() -> dict[str, Any]:
            if body is not None:
                await body.wait()
            return {"type": "http.request", "body": b"{}", "more_body": False}

        async def send(message: Any) -> None:
            statuses.setdefault(name, message.get("status", 0))

        await guard({"type": "http", "method": "POST", "path": path, "headers": headers}, receive, send)

    async def run_all() -> None:
        over, body = asyncio.Event(), asyncio.Event()

        async def answer(scope: Any, receive: Any, send: Any) -> None:
            if scope["path"] == "/v1/predict":
                await over.wait()
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b""})

        guard = Guard(answer, Access(), Limits(at_once=1), Measures())
        slow = asyncio.create_task(ask(guard, "slow", "/v1/predict", body))
        await asyncio.sleep(0)
        first = asyncio.create_task(ask(guard, "first", "/v1/predict"))
        await asyncio.sleep(0.01)
        await ask(guard, "second", "/v1/predict")
        await ask(guard, "health", "/healthz")
        over.set()
        await first
        body.set()
        await slow

    with ThreadPoolExecutor(1) as alone:  # the browser of other tests may have a loop in this thread
        alone.submit(lambda: asyncio.run(run_all())).result()
    assert statuses == {"second": 429, "health": 200, "first": 200, "slow": 200}


def _is_alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False


def test_sigterm_lets_requests_end(serve: Callable[..., Served], tagger: Path) -> None:
    server = serve(tagger)
    workers = server.workers()
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(timeout=120) == 0
    assert not any(_is_alive(pid) for pid in workers)


def test_what_cannot_be_served_gets_a_sentence(
    tagger: Path, server: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    port = server.address.rstrip("/").rpartition(":")[2]
    for arguments, sentence in (
        ([str(tagger), "--port", port], "expected a free address"),
        ([str(tmp_path / "none"), "--port", "0"], "none"),
        ([str(tagger), "--host", "0.0.0.0", "--port", "0"], "a token is needed"),
        ([str(tagger), f"x/../{tagger}", "--port", "0"], "got 'ner' twice"),
    ):
        with ThreadPoolExecutor(1) as alone:  # the browser of other tests may have a loop in this thread
            assert alone.submit(run, ["serve", *arguments]).result() == 2
        assert sentence in capsys.readouterr().err


def test_help_needs_neither_starlette_nor_torch() -> None:
    code = (
        "import sys; from trelliswork.cli.main import run; run(['--help']); run(['serve', '--help']);"
        "print([m for m in ('torch', 'numba', 'starlette', 'uvicorn') if m in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert found.stdout.strip().endswith("[]")


def test_names_and_addresses() -> None:
    assert named_models(["a/ner", "b=c/ner"]) == {"ner": "a/ner", "b": "c/ner"}
    with pytest.raises(TrellisworkError, match="twice"):
        named_models(["a/ner", "b/ner"])
    assert [is_local(each) for each in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "10.0.0.1", "x")] == [True] * 3 + [
        False
    ] * 3
    assert [host_of(each) for each in ("a:b", "[::1", "user@localhost", "localhost/x")] == [""] * 4
