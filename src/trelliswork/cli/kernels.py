"""Saying on standard error that kernels are compiled, and how long that takes."""

from __future__ import annotations

import time
from typing import Any

from numba.core import event

from trelliswork.logs import tell

PATIENCE = 2.0  # seconds of compiling that nobody need hear of


class Announcer(event.Listener):
    """Hears when numba starts and ends to compile a kernel; kernels that are read from the cache are not among them.

    A kernel is compiled while that of its caller is, so only the outermost are told of.
    """

    def __init__(self) -> None:
        self.quiet, self.told = True, False
        self.depth, self.began, self.seconds = 0, 0.0, 0.0

    def on_start(self, event: Any) -> None:
        if self.depth == 0:
            self.began = time.perf_counter()
        self.depth += 1
        if not self.told and self.seconds + time.perf_counter() - self.began > PATIENCE:
            self.told = True
            self._say("compiling kernels for this machine, once ...")

    def on_end(self, event: Any) -> None:
        self.depth -= 1
        if self.depth:
            return
        took = time.perf_counter() - self.began
        self.seconds += took
        if took > PATIENCE:
            function = event.data["dispatcher"].py_func
            self._say(f"{function.__module__.rpartition('.')[2]}.{function.__name__} compiled in {took:.1f} s")

    def _say(self, text: str) -> None:
        if not self.quiet:
            tell(text, event="compiling")


ANNOUNCER = Announcer()
event.register("numba:compile", ANNOUNCER)


def announce_compiling(*, quiet: bool = False) -> None:
    """From now on say when kernels are compiled and it takes more than `PATIENCE` seconds; `quiet` ends that."""
    ANNOUNCER.quiet = quiet
