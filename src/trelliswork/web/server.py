"""Starting and stopping: models are loaded, the socket is bound, and uvicorn runs until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import socket
import sys
import webbrowser
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import uvicorn

from trelliswork.errors import ModelError, TrellisworkError
from trelliswork.logs import tell
from trelliswork.web.app import Site, make_app
from trelliswork.web.connections import BACKLOG, connection_class
from trelliswork.web.guard import Access, is_local
from trelliswork.web.limits import Limits
from trelliswork.web.measures import Measures
from trelliswork.web.pool import Pool
from trelliswork.web.seldom import write_seldom
from trelliswork.web.teaching.school import School

WILDCARDS = ("0.0.0.0", "[::]")  # addresses that mean all of this machine
OPENS_AFTER = 0.5  # seconds until a browser asks for the page: the server listens by then
GRACE = 10  # seconds that requests have to end once the server is told to stop


@dataclass(frozen=True)
class Settings:
    """How to serve."""

    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = None
    allowed_hosts: tuple[str, ...] = ()
    workers: int = 1
    threads: int = 1
    limits: Limits = field(default_factory=Limits)
    open_page: bool | None = None  # None: if somebody sits at this machine
    teach: str = "teaching"  # folder of what is taught
    data: Mapping[str, str | None] = field(default_factory=dict)  # files `train` and `dev` to train on again
    device: str = "auto"


def serve(folders: Sequence[str], settings: Settings) -> None:
    """Serve models until SIGTERM or Ctrl-C."""
    if not is_local(settings.host) and not settings.token:
        raise TrellisworkError(
            f"--host {settings.host} lets other machines in, so a token is needed; add --token, or TRELLISWORK_TOKEN"
        )
    models = named_models(folders)
    bound = _bound(settings.host, settings.port)
    asyncio.run(_serve(models, settings, bound))


def named_models(folders: Sequence[str]) -> dict[str, str]:
    """Each folder under a name: its own, or NAME=FOLDER.

    >>> named_models(["models/ner", "old=archive/ner"])
    {'ner': 'models/ner', 'old': 'archive/ner'}
    """
    found: dict[str, str] = {}
    for each in folders:
        name, is_named, folder = each.partition("=")
        if not is_named or os.sep in name:
            name, folder = Path(os.path.abspath(each)).name, each
        if name in found:
            raise ModelError(f"expected models of different names, got {name!r} twice; name one, as in other={folder}")
        found[name] = folder
    return found


def _bound(host: str, port: int) -> socket.socket:
    """A socket that listens; a port in use is a sentence."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        # asyncio turns Nagle's algorithm off for sockets that say TCP, and 40 ms of waiting with it
        found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(BACKLOG)
    except OSError as error:
        problem = f"expected a free address {host}:{port}, got: {error.strerror or error}"
        raise TrellisworkError(f"{problem}; stop what runs there, or choose another --port (0 is any)") from error
    return found


class _Server(uvicorn.Server):
    """A server that is told to stop by our handlers of signals, so that its end is a good one."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals as they are."""
        yield

    def stop(self) -> None:
        """Let requests end; asked again, end them."""
        self.force_exit = self.should_exit
        self.should_exit = True


def has_browser() -> bool:
    """Whether a person at a terminal of this machine has a display, and a browser on it."""
    has_display = sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if not has_display or "SSH_CONNECTION" in os.environ or not sys.stdout.isatty():
        return False
    try:
        return type(webbrowser.get()) is not webbrowser.GenericBrowser  # which would take over the terminal
    except webbrowser.Error:
        return False


async def _serve(models: dict[str, str], settings: Settings, bound: socket.socket) -> None:
    measures = Measures()
    pool = Pool(
        models, measures, workers=settings.workers, threads=settings.threads, device=settings.device,
        limits=settings.limits,
    )  # fmt: skip
    await pool.start()
    host, port = bound.getsockname()[:2]
    access = Access.of(host, settings.allowed_hosts, settings.token)
    school = School(settings.teach, pool, dict(settings.data))
    await school.resume()
    site = Site(pool, settings.limits, access, measures, school)
    config = uvicorn.Config(
        make_app(site), log_level="warning", access_log=False, timeout_graceful_shutdown=GRACE,
        server_header=False, date_header=False, proxy_headers=False, lifespan="on",
        http=connection_class(settings.limits), ws="none", backlog=BACKLOG,
        timeout_keep_alive=int(settings.limits.idle_seconds),
    )  # fmt: skip
    server = _Server(config)
    write_seldom()  # after uvicorn has set up its loggers
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
        await server.serve(sockets=[bound])
    finally:
        await pool.stop()
    tell("stopped")
