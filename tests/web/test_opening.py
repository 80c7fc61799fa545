"""Whether `serve` opens its page by itself."""

from __future__ import annotations

import sys
import webbrowser

import pytest

pytest.importorskip("uvicorn", reason="the extra [web] is not installed")

from trelliswork.web.server import has_browser


@pytest.fixture
def at_a_desktop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A person at a terminal of a Linux desktop with a browser."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.delenv("SSH_CONNECTION", raising=False)
    monkeypatch.setattr(webbrowser, "get", lambda: webbrowser.BackgroundBrowser("firefox"))


@pytest.mark.usefixtures("at_a_desktop")
def test_it_opens_at_a_desktop() -> None:
    assert has_browser()


@pytest.mark.usefixtures("at_a_desktop")
def test_it_does_not_open_where_nobody_would_see_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        raise webbrowser.Error("no browser")

    for name, change in {
        "no display": lambda patch: patch.delenv("DISPLAY"),
        "from another machine": lambda patch: patch.setenv("SSH_CONNECTION", "x"),
        "a service": lambda patch: patch.setattr(sys.stdout, "isatty", lambda: False),
        "no browser": lambda patch: patch.setattr(webbrowser, "get", none),
        "a browser in the terminal": lambda patch: patch.setattr(
            webbrowser, "get", lambda: webbrowser.GenericBrowser("w3m")
        ),
    }.items():
        with monkeypatch.context() as patch:
            patch.delenv("WAYLAND_DISPLAY", raising=False)
            change(patch)
            assert not has_browser(), name
