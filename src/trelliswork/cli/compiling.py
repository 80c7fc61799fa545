"""Kernels compiled by other processes: on request, and while a command does what it can without them."""

from __future__ import annotations

import atexit
import time
from collections.abc import Collection, Sequence
from typing import Any

from numba.core import event

from trelliswork.cli.messages import NOTE, say
from trelliswork.errors import TrellisworkError
from trelliswork.lazy import named
from trelliswork.logs import tell
from trelliswork.plugins import plugins_of
from trelliswork.runtime.compile_all import Helpers, compile_all
from trelliswork.runtime.entries import Entry, read_entries, read_uses
from trelliswork.runtime.threads import n_cores
from trelliswork.runtime.warming import calls_of, missing_of


def compile_in_background(*calls: str, quiet: bool = False) -> None:
    """Start processes that compile what is missing of the kernels of some calls, and let this one go on.

    It waits for a kernel that one of them is compiling when it needs it, and compiles what none has begun.
    """
    missing = missing_of(read_entries(*calls)) if calls else []
    seconds = estimate(missing)
    if seconds < PATIENCE:
        return
    helpers = Helpers(missing)
    atexit.register(helpers.stop)
    if helpers.processes and not quiet:
        ANNOUNCER.announced = True  # once is enough
        tell(f"compiling {len(missing)} kernels for this machine, once, for about {seconds:.0f} s", event="compiling")


def estimate(entries: Sequence[Entry]) -> float:
    """Return about how many seconds it takes to compile some kernels on all cores."""
    uses = read_uses()
    seconds = [uses[entry].seconds for entry in entries]
    return max(sum(seconds) / n_cores(), *seconds, 0.0)


def warm_up(names: Collection[str], *, every: bool, quiet: bool) -> None:
    """Compile the kernels of some structures and models, of all models, or of everything.

    Args:
        names: Structures and models; none for all models.
        every: Whether to compile the kernels of everything.
        quiet: Whether to print nothing.
    """
    if every:
        calls = set[str]()
    elif names:
        calls = calls_of(names)
    else:
        calls = {call for use in read_uses().values() for call in use.calls if call.startswith(("train ", "predict "))}
    missing = missing_of(read_entries(*calls))
    if missing and not quiet:
        print(f"compiling {len(missing)} kernels, for about {estimate(missing):.0f} s", flush=True)
    compile_all(missing)
    if every:
        for name in plugins_of("structures"):
            _exercise_foreign(name)
    if not quiet:
        print("kernels are compiled" if missing else "kernels are compiled already; nothing to do")


def _exercise_foreign(name: str) -> None:
    """Call the kernels of a structure of another package; one that is broken does not stop the others."""
    registry = "trelliswork.distributions.registry"  # imports torch
    try:
        named(f"{registry}:exercise")(named(f"{registry}:distribution_of")(name)._structure)
    except TrellisworkError as error:
        say(f"{NOTE}{error}")


# Saying on standard error that kernels are compiled, and how long that takes.

PATIENCE = 2.0  # seconds of compiling that nobody need hear of


class Announcer(event.Listener):
    """Hears when numba starts and ends to compile a kernel; kernels that are read from the cache are not among them.

    A kernel is compiled while that of its caller is, so only the outermost are reported.
    """

    def __init__(self) -> None:
        self.quiet, self.announced = True, False
        self.depth, self.began, self.seconds = 0, 0.0, 0.0

    def on_start(self, event: object) -> None:
        if self.depth == 0:
            self.began = time.perf_counter()
        self.depth += 1
        if not self.announced and self.seconds + time.perf_counter() - self.began > PATIENCE:
            self.announced = True
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
