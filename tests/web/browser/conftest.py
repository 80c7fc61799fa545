"""One browser, one server and small models for all tests of the page; each test has a page of its own."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.web.browser.models import train_models
from tests.web.browser.server import Server

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
TEXT = "In May , May Lincoln left Chase for Austin ."


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Debian's Chromium."""
    if not CHROMIUM.exists():
        pytest.skip(f"the page is tested in Chromium, and there is no {CHROMIUM}; install Debian's chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="the page is tested with the package playwright")
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=str(CHROMIUM), args=list(ARGUMENTS))
        yield found
        found.close()


@pytest.fixture(scope="session")
def models(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A model of each kind by name, trained once for all processes of a test run; PAGE_MODELS keeps them for more."""
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if base.name.startswith("popen-") else base) / "page-models"
    folder = Path(os.environ.get("PAGE_MODELS") or shared)
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return train_models(folder)


@pytest.fixture(scope="session")
def server(models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of all models."""
    found = Server(models.values(), tmp_path_factory.mktemp("teaching"))
    yield found
    found.stop()


class Seen:
    """What went wrong in a page, or left it."""

    def __init__(self) -> None:
        self.wrong: list[str] = []
        self.hosts: set[str] = set()

    def watch(self, page: Any) -> None:
        """Note errors, refusals of the content policy among them, and the host of every request."""
        page.on("console", lambda message: self._console(message))
        page.on("pageerror", lambda error: self.wrong.append(f"{error.message}\n{error.stack}"))
        page.on("request", lambda request: self.hosts.add(request.url.split("/")[2]))

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.wrong.append(f"{message.type}: {message.text}")


@pytest.fixture
def seen() -> Seen:
    """What went wrong; a test that expects an error takes it out of `wrong`."""
    return Seen()


@pytest.fixture
def open_page(browser: Any, server: Server, seen: Seen) -> Iterator[Callable[..., Any]]:
    """Open the page: `open_page("ner", text)`, with further settings of the browser such as `color_scheme`."""
    contexts = []

    def opened(models: str = "ner", text: str | None = TEXT, *, pins: str = "", **settings: Any) -> Any:
        settings = {"viewport": {"width": 1200, "height": 900}, **settings}
        context = browser.new_context(**settings)
        context.set_default_timeout(120_000)
        contexts.append(context)
        page = context.new_page()
        seen.watch(page)
        page.goto(f"{server.address}{address(models, text, pins)}")
        page.wait_for_selector(".card:not([aria-busy])")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert seen.wrong == []
    assert seen.hosts <= {f"127.0.0.1:{server.port}"}


def address(models: str, text: str | None, pins: str = "") -> str:
    """The part of a link behind the server."""
    if text is None:
        return ""
    return f"#m={models}&t={quote(text)}" + (f"&p={pins}" if pins else "")


def settled(page: Any) -> None:
    """Wait until the newest answer is there."""
    page.wait_for_function("() => document.querySelector('.card') && !document.querySelector('.card[aria-busy]')")
