"""Settings of the whole suite: one thread, and property tests that draw the same examples every time."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
import torch
from hypothesis import HealthCheck, settings

from trelliswork.runtime import threads

pytest.register_assert_rewrite("tests.contract.base")  # so that its failures show both sides
torch.set_num_threads(1)
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores Ctrl-C for what it runs in the background

settings.register_profile(
    "ci", derandomize=True, deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("ci")


@pytest.fixture
def two_threads() -> Iterator[None]:
    """Two threads for one test."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def worth_splitting(monkeypatch: pytest.MonkeyPatch, two_threads: None) -> None:
    """Two threads that take their share of the smallest work."""
    monkeypatch.setattr(threads, "WORTH_SPLITTING", 1)
