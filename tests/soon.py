"""A limit in time for what must not hang."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import event


class WhileCompiling(event.Listener):
    """The clock stands still while kernels are compiled: that happens once, and is as slow as the machine is busy."""

    def __init__(self) -> None:
        self.depth, self.left = 0, 0.0

    def on_start(self, event: Any) -> None:
        if self.depth == 0:
            self.left, _ = signal.setitimer(signal.ITIMER_REAL, 0)
        self.depth += 1

    def on_end(self, event: Any) -> None:
        self.depth -= 1
        if self.depth == 0:
            signal.setitimer(signal.ITIMER_REAL, max(self.left, 1e-3))  # 0 would be no limit


@contextmanager
def soon(seconds: float = 30.0) -> Iterator[None]:
    """Inside, what takes longer fails instead of hanging; compiling kernels does not count."""

    def late(*_: object) -> None:
        raise AssertionError(f"not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        with event.install_listener("numba:compile", WhileCompiling()):
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
