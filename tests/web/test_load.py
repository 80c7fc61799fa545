"""Bodies and connections that would keep the server from others."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.web.conftest import Served
from trelliswork.web import Client, app
from trelliswork.web.app import Site, make_app
from trelliswork.web.endpoints import ENDPOINTS
from trelliswork.web.guard import Access
from trelliswork.web.measures import Measures
from trelliswork.web.pool import INLINE
from trelliswork.web.problems import Throttle
from trelliswork.web.requests import Limits
from trelliswork.web.server import Connection, connection_class

LONGEST_STALL = 15.0  # seconds; before, a body of 1.6 MB took minutes
IDLE = 1100
MEMBERS = ",".join(f'"{i}": 0' for i in range(120_000))
HOSTILE = {
    "many members, the last one twice": f'{{{MEMBERS}, "119999": 1}}',
    "many members": f"{{{MEMBERS}}}",
    "objects with doubled members": "[" + '{"a": 1, "a": 2}, ' * 90_000 + "0]",
    "deep lists": "[" * 1_900_000,
    "deep objects": '{"a": ' * 300_000,
    "a long whole number": '{"top_k": ' + "7" * 1_900_000 + "}",
    "a long fraction": '{"top_k": 0.' + "7" * 1_900_000 + "}",
    "a long string": '{"model": "' + "x" * 1_900_000 + '"}',
    "many lists": '{"tokens": [' + "[]," * 600_000 + "[]]}",
    "many words": '{"tokens": [' + '["ab", 0],' * 180_000 + "[]]}",
}


def answer_to(address: str, body: bytes, path: str = "/v1/predict", headers: str = "") -> tuple[int, str]:
    """The status and the sentence that a body is answered with."""
    parts = urlsplit(address)
    head = f"POST {path} HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: application/json\r\nConnection: close\r\n"
    with socket.create_connection((parts.hostname, parts.port), timeout=120) as line:
        line.sendall(f"{head}{headers}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = b""
        while more := line.recv(65536):
            answer += more
    return int(answer[9:12]), str(json.loads(answer.partition(b"\r\n\r\n")[2]).get("detail"))


class Pulse:
    """Asks for the health of a server again and again; `longest` is how long an answer took at most."""

    def __init__(self, address: str) -> None:
        self.longest, self.n, self._over = 0.0, 0, threading.Event()
        self._client = Client(address, retries=0, timeout=120)
        self._thread = threading.Thread(target=self._beat)

    def _beat(self) -> None:
        while not self._over.is_set():
            began = time.perf_counter()
            self._client.get("/healthz")
            self.longest, self.n = max(self.longest, time.perf_counter() - began), self.n + 1
            time.sleep(0.01)

    def __enter__(self) -> Pulse:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._client.close()


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
def test_others_are_answered_while_a_hostile_body_is_read(server: Served, body: str) -> None:
    with Pulse(server.address) as pulse:
        status, sentence = answer_to(server.address, body.encode())
    assert status in (400, 413, 422) and "expected" in sentence and len(sentence) < 500
    assert pulse.longest < LONGEST_STALL


def test_compressed_and_chunked_bodies_get_a_sentence(server: Served) -> None:
    status, sentence = answer_to(server.address, b"\x1f\x8b" + b"\0" * 10_000, headers="Content-Encoding: gzip\r\n")
    assert (status, "not compressed" in sentence) == (415, True)
    parts = urlsplit(server.address)
    head = f"POST /v1/predict HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: application/json\r\n"
    with socket.create_connection((parts.hostname, parts.port), timeout=60) as line:
        line.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n1\r\n{{\r\n".encode())
        assert line.recv(100).startswith(b"HTTP/1.1 411")


def test_no_body_is_read_in_the_event_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every path that takes a body hands a large one to another thread."""
    threads: dict[str, threading.Thread] = {}

    def read_elsewhere(raw: bytes, kind: Any) -> Any:
        threads[path] = threading.current_thread()
        raise app.Problem(400, "read")

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b" " * (INLINE + 1), "more_body": False}

    async def send(message: Any) -> None:
        pass

    monkeypatch.setattr(app, "read_json", read_elsewhere)
    limits, measures = Limits(), Measures()
    headers = [(b"host", b"localhost"), (b"content-type", b"application/json"), (b"content-length", b"5000")]
    paths = [each.path for each in ENDPOINTS if each.body is not None]
    for path in paths:
        scope = {"type": "http", "method": "POST", "path": path, "headers": headers, "query_string": b""}
        site = Site(None, limits, Access(), measures, None)  # type: ignore[arg-type]
        asked = make_app(site)
        with ThreadPoolExecutor(1) as loop:
            loop.submit(lambda s=scope, a=asked: asyncio.run(a(s, receive, send))).result()
        assert threads[path].name.startswith("trelliswork-web"), path
    assert len(threads) == len(paths) >= 7


# Connections


def is_socket(descriptor: Path) -> bool:
    """Return whether an open file of a process is a socket; one may be closed meanwhile."""
    try:
        return os.readlink(descriptor).startswith("socket:")
    except FileNotFoundError:
        return False


def test_idle_connections_keep_nobody_out(tagger: Path, tmp_path: Path) -> None:
    """With 1,100 idle clients and room for 256 files, others are answered, and the log stays short."""
    log = tmp_path / "log"
    limited = ["bash", "-c", f'ulimit -n 256; exec "$0" "$@" 2>{log}']

    class Limited(Served):
        def start(self) -> None:
            self.command = [*limited, *self.command]
            super().start()

    server = Limited([tagger], tmp_path / "teaching", ("--token", "secret"))
    parts = urlsplit(server.address)
    idle = []
    try:
        half = socket.create_connection((parts.hostname, parts.port), timeout=60)
        half.sendall(b"GET /healthz HTTP/1.1\r\n")  # and the rest of the head does not come
        for _ in range(IDLE):
            idle.append(socket.create_connection((parts.hostname, parts.port), timeout=60))
        with Client(server.address, token="secret") as client:
            assert client.get("/healthz")["status"] == "ok"
            assert client.predict(text="Ann met Bob.")["results"]
        descriptors = list(Path(f"/proc/{server.process.pid}/fd").iterdir())
        n_open = sum(is_socket(each) for each in descriptors)
        assert n_open < 256
        assert log.stat().st_size < 5000, log.read_text()[:2000]
    finally:
        for line in idle:
            line.close()
        server.stop()


@contextmanager
def connections(kind: type[Connection], answer: Callable[..., Awaitable[None]]) -> Iterator[socket.socket]:
    """Inside, a server in a thread of this process answers; yield a connection to it."""
    import uvicorn

    with socket.create_server(("127.0.0.1", 0)) as bound:
        server = uvicorn.Server(uvicorn.Config(answer, http=kind, log_level="error", lifespan="off"))
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[bound])))
        thread.start()
        with socket.create_connection(bound.getsockname(), timeout=120) as line:
            yield line
        server.should_exit = True
        thread.join()


async def long_answer(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"x" * 50_000_000})


def test_a_client_that_does_not_read_its_answer_is_dropped() -> None:
    dropped = threading.Event()
    kind = connection_class(Limits(send_seconds=0.3))
    lost = kind.connection_lost
    kind.connection_lost = lambda self, error: (lost(self, error), dropped.set())[0]  # type: ignore[method-assign, misc]
    with connections(kind, long_answer) as line:
        line.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert dropped.wait(timeout=120)


def test_a_head_that_comes_slowly_is_refused() -> None:
    """A byte now and then does not help."""
    with connections(connection_class(Limits(header_seconds=1.0)), long_answer) as line:
        line.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n")
        for _ in range(3):
            time.sleep(0.2)
            line.sendall(b"X")
        answer = line.recv(4096)
        assert answer.startswith(b"HTTP/1.1 408") and b"within 1 s" in answer


def test_messages_of_a_kind_come_once_a_minute() -> None:
    now = 0.0
    throttle = Throttle(clock=lambda: now)
    assert throttle.text("a", "first") == "first"
    assert [throttle.text("a", "again") for _ in range(1000)] == [None] * 1000
    assert throttle.text("b", "other") == "other"
    now = 61.0
    assert throttle.text("a", "later") == "later (and 1,000 more like it since the last such line)"
    assert sum(throttle.text(f"kind {i}", "x") is not None for i in range(10_000)) < 110
