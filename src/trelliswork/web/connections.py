"""Connections of clients: how many there may be, and how long one may keep the server waiting.

A connection that waits, for a request or for the rest of one, holds a file and some memory. When there are too many
connections, the one that has waited longest makes room for the newest, so that idle clients, however many, never keep
others out. A limit for each address would do so too, but behind a proxy all clients have the same address.
"""

from __future__ import annotations

import asyncio
import logging
import resource
from http import HTTPStatus
from typing import Any, ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

from trelliswork.logs import tell
from trelliswork.web.guard import HEADERS
from trelliswork.web.limits import Limits
from trelliswork.web.problems import PROBLEM_JSON, problem_json

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
        """Whether there is a request that has not been answered."""
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
        """Refuse what is no request."""
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
    """The connections of one server; there are never more than the system allows files."""
    members: dict[str, Any] = {"limits": limits, "most": _most(limits.connections), "waiting": {}}
    return type("LimitedConnection", (Connection,), members)


def _most(wanted: int) -> int:
    """How many connections fit into the limit of open files, which is raised as far as it may be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < highest:
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest, hard))
        soft = highest
    return wanted if soft == resource.RLIM_INFINITY else max(min(wanted, soft - BACKLOG - OTHER_FILES), 16)
