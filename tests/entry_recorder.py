"""The kernels that Python calls while tests run: each has to be on the list of those that wheels carry.

`pytest --record-kernels` writes the list anew from what a whole run calls.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numba
from numba.core import event

from trelliswork.runtime import light
from trelliswork.runtime.entries import Entry, read_entries, write_entries
from trelliswork.runtime.kernel_cache import KernelCache


class Recorder(event.Listener):
    """Notes what is loaded or compiled while no other kernel is being compiled: that was called by Python."""

    def __init__(self) -> None:
        self.depth, self.called, self.listed = 0, set[Entry](), set(read_entries())
        self.load, self.load_light = KernelCache.load_overload, light.load

    def load_and_note(self, cache: KernelCache, signature: Any, target: Any) -> Any:
        """Stand in for `KernelCache.load_overload`."""
        self.note(cache, signature)
        return self.load(cache, signature, target)

    def load_light_and_note(self, cache: KernelCache, arguments: tuple[Any, ...]) -> Any:
        """Stand in for `light.load`."""
        loaded = self.load_light(cache, arguments)
        if loaded is not None:
            self.note(cache, map(numba.typeof, arguments))
        return loaded

    def note(self, cache: KernelCache, signature: Iterable[Any]) -> None:
        module, name = cache.kernel
        if self.depth == 0 and module.startswith("trelliswork."):
            self.called.add(Entry.of(module, name, signature))

    def on_start(self, event: Any) -> None:
        self.depth += 1

    def on_end(self, event: Any) -> None:
        self.depth -= 1

    def unlisted(self) -> set[Entry]:
        """Return what was called and is not on the list, once."""
        missing = self.called - self.listed
        self.listed |= missing
        return missing

    def write(self) -> None:
        """Add what this process called to the list; the processes of a run do so in turn."""
        with Path(__file__).open("rb") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            write_entries([*read_entries(), *self.called])


def record() -> Recorder:
    """From now on note the kernels that are called."""
    recorder = Recorder()
    event.register("numba:compile", recorder)
    KernelCache.load_overload = lambda *given: recorder.load_and_note(*given)  # type: ignore[method-assign]
    light.load = lambda *given: recorder.load_light_and_note(*given)
    return recorder
