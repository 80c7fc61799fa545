"""Starting and stopping: models are loaded, the socket is bound, and uvicorn runs until it is stopped.

A connection that waits, for a request or for the rest of one, holds a file and some memory. When there are too many
connections, the one that has waited longest makes room for the newest, so that idle clients, however many, never keep
others out. A limit for each address would do so too, but behind a proxy all clients have the same address.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import resource
import signal
import socket
import sys
import webbrowser
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import ClassVar

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from trelliswork.data.json_values import JsonObject
from trelliswork.errors import ModelError, TrellisworkError
from trelliswork.logs import tell
from trelliswork.web.app import Site, make_app
from trelliswork.web.guard import HEADERS, Access, is_local
from trelliswork.web.measures import Measures
from trelliswork.web.pool import Pool
from trelliswork.web.problems import PROBLEM_JSON, problem_json, throttle_logs
from trelliswork.web.requests import Limits
from trelliswork.web.teaching.session import TeachingSession

WILDCARDS = ("0.0.0.0", "[::]")  # addresses that mean all of this machine
OPENS_AFTER = 0.5  # seconds until a browser asks for the page: the server listens by then
GRACE = 10  # seconds that requests have to end once the server is asked to stop


@dataclass(frozen=True)
class ServerSettings:
    """Settings of a server."""

    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = None
    allowed_hosts: tuple[str, ...] = ()
    workers: int = 1
    threads: int = 1
    limits: Limits = field(default_factory=Limits)
    open_page: bool | None = None  # None: if there is a display and a terminal
    teach: str = "teaching"  # folder of what is taught
    data: Mapping[str, str | None] = field(default_factory=dict)  # files `train` and `dev` to train on again
    device: str = "auto"


def serve(folders: Sequence[str], settings: ServerSettings) -> None:
    """Serve models until SIGTERM or Ctrl-C."""
    if not is_local(settings.host) and not settings.token:
        raise TrellisworkError(
            f"--host {settings.host} lets other machines in, so a token is needed; add --token, or TRELLISWORK_TOKEN"
        )
    models = named_models(folders)
    listener = _listen(settings.host, settings.port)
    asyncio.run(_serve(models, settings, listener))


def named_models(folders: Sequence[str]) -> dict[str, str]:
    """Return each folder under a name: its own, or NAME=FOLDER.

    >>> named_models(["models/ner", "old=archive/ner"])
    {'ner': 'models/ner', 'old': 'archive/ner'}
    """
    models: dict[str, str] = {}
    for each in folders:
        name, is_named, folder = each.partition("=")
        if not is_named or os.sep in name:
            name, folder = Path(os.path.abspath(each)).name, each
        if name in models:
            raise ModelError(f"expected models of different names, got {name!r} twice; name one, as in other={folder}")
        models[name] = folder
    return models


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; a port in use is a sentence."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        # asyncio turns Nagle's algorithm off for sockets that say TCP, and 40 ms of waiting with it
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        problem = f"expected a free address {host}:{port}, got: {error.strerror or error}"
        raise TrellisworkError(f"{problem}; stop what runs there, or choose another --port (0 is any)") from error
    return listener


class _Server(uvicorn.Server):
    """A server that our handlers of signals stop, so that requests can end."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals as they are."""
        yield

    def stop(self) -> None:
        """Let requests end; asked again, end them."""
        self.force_exit = self.should_exit
        self.should_exit = True


def has_browser() -> bool:
    """Return whether a person at a terminal of this machine has a display, and a browser on it."""
    has_display = sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if not has_display or "SSH_CONNECTION" in os.environ or not sys.stdout.isatty():
        return False
    try:
        return type(webbrowser.get()) is not webbrowser.GenericBrowser  # which would take over the terminal
    except webbrowser.Error:
        return False


async def _serve(models: dict[str, str], settings: ServerSettings, listener: socket.socket) -> None:
    measures = Measures()
    pool = Pool(
        models, measures, workers=settings.workers, threads=settings.threads, device=settings.device,
        limits=settings.limits,
    )  # fmt: skip
    await pool.start()
    host, port = listener.getsockname()[:2]
    access = Access.of(host, settings.allowed_hosts, settings.token)
    session = TeachingSession(settings.teach, pool, dict(settings.data))
    await session.resume()
    site = Site(pool, settings.limits, access, measures, session)
    config = uvicorn.Config(
        make_app(site), log_level="warning", access_log=False, timeout_graceful_shutdown=GRACE,
        server_header=False, date_header=False, proxy_headers=False, lifespan="on",
        http=connection_class(settings.limits), ws="none", backlog=BACKLOG,
        timeout_keep_alive=int(settings.limits.idle_seconds),
    )  # fmt: skip
    server = _Server(config)
    throttle_logs()  # after uvicorn has set up its loggers
    for each in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(each, server.stop)
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{'127.0.0.1' if shown in WILDCARDS else shown}:{port}/"
    everywhere = f"; listens on all addresses, {shown}:{port}" if shown in WILDCARDS else ""
    print(f"serving {', '.join(models)} at {address}  (API: {address}docs; Ctrl-C stops{everywhere})", flush=True)
    if has_browser() if settings.open_page is None else settings.open_page:
        asyncio.get_running_loop().call_later(OPENS_AFTER, webbrowser.open, address)
    gc.freeze()  # what is here stays: the collector need not go through it while requests wait
    try:
        await server.serve(sockets=[listener])
    finally:
        await pool.stop()
    tell("stopped")


# Connections of clients: how many there may be, and how long one may keep the server waiting.

BACKLOG = 128  # connections that the system keeps until they are accepted, and that are accepted at a time
OTHER_FILES = 64  # that the server has open besides its connections
LEAST_READ = 100_000  # bytes of a long answer that a client must read within `Limits.send_seconds`
MOST_FILES = 65_536


class Connection(H11Protocol):
    """A connection that is closed if it is too slow, or if it waits while others need its place."""

    limits: ClassVar[Limits] = Limits()
    most: ClassVar[int] = 1000
    waiting: ClassVar[dict[Connection, None]] = {}  # without a whole request, the one that has waited longest first

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a new client in, in the place of another if there are too many."""
        self._head: asyncio.TimerHandle | None = None
        self._sending: asyncio.TimerHandle | None = None
        super().connection_made(transport)
        if len(self.connections) > self.most:
            tell(f"more than {self.most:,} connections: idle ones are closed", level=logging.WARNING)
            next(iter(self.waiting), self).drop()
        if not transport.is_closing():
            self.waiting[self] = None
            self._head = self.loop.call_later(self.limits.header_seconds, self._give_up)

    def data_received(self, data: bytes) -> None:
        """Read on; from the first byte of a request to the end of its head there is a time limit."""
        is_new = not self._is_asked and self._head is None
        if is_new:
            self._head = self.loop.call_later(self.limits.header_seconds, self._give_up)
        super().data_received(data)
        self._note()

    def on_response_complete(self) -> None:
        """Wait for the next request; a client that does not read its answer is dropped."""
        super().on_response_complete()
        self._note()
        self._watch_sending()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._stop_timers()
        self.waiting.pop(self, None)
        super().connection_lost(exc)

    def drop(self) -> None:
        """Close it now; what has not been sent is lost."""
        self._stop_timers()
        self.waiting.pop(self, None)
        self.connections.discard(self)
        self.transport.abort()

    @property
    def _is_asked(self) -> bool:
        """True while a request has not been answered."""
        return self.cycle is not None and not self.cycle.response_complete

    def _note(self) -> None:
        """Note whether it waits."""
        if self._is_asked and self._head is not None:
            self._head.cancel()
            self._head = None
        if self._is_asked and not self.cycle.more_body:
            self.waiting.pop(self, None)
        elif not self.transport.is_closing():
            self.waiting.setdefault(self)

    def _give_up(self) -> None:
        """Close a connection on which no request, or half of one, has come."""
        if self.conn.trailing_data[0] and not self.transport.is_closing():
            limit = self.limits.header_seconds
            self._refuse(408, f"expected the whole head of a request within {limit:g} s; send it faster")
        else:
            self.drop()

    def send_400_response(self, msg: str) -> None:
        """Refuse bytes that are not a request."""
        self._refuse(400, "expected a request of HTTP/1.1 with a head of at most 16 kB, got something else")

    def _refuse(self, status: int, problem: str) -> None:
        """Say what is wrong, and close."""
        body = problem_json(status, problem)
        own = {"content-type": PROBLEM_JSON, "content-length": str(len(body)), "connection": "close"}
        lines = [f"{name}: {value}" for name, value in own.items()]
        lines += [f"{name.decode()}: {value.decode()}" for name, value in HEADERS]
        head = "\r\n".join([f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", *lines, "", ""])
        self.transport.write(head.encode() + body)
        self.transport.close()
        self._watch_sending()

    def _stop_timers(self) -> None:
        for timer in (self._head, self._sending):
            if timer is not None:
                timer.cancel()
        self._head = self._sending = None

    # Answers that are read slowly

    def pause_writing(self) -> None:
        """Too much is waiting to be read."""
        super().pause_writing()
        self._watch_sending()

    def _watch_sending(self) -> None:
        size = self.transport.get_write_buffer_size()
        if size and self._sending is None:
            self._sending = self.loop.call_later(self.limits.send_seconds, self._check_sending, size)

    def _check_sending(self, before: int) -> None:
        self._sending = None
        if self.transport.get_write_buffer_size() > before - min(LEAST_READ, before // 2):
            self.drop()
        else:
            self._watch_sending()


def connection_class(limits: Limits) -> type[Connection]:
    """Return the connections of one server; there are never more than the system allows files."""
    members: JsonObject = {"limits": limits, "most": _most(limits.connections), "waiting": {}}
    return type("LimitedConnection", (Connection,), members)


def _most(wanted: int) -> int:
    """Return the number of connections that fit into the limit of open files, which is raised as far as allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < highest:
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest, hard))
        soft = highest
    return wanted if soft == resource.RLIM_INFINITY else max(min(wanted, soft - BACKLOG - OTHER_FILES), 16)
