"""The kernels that Python calls while tests run: each has to be on the list of those that wheels carry.

`pytest --record-kernels` adds what is missing and removes what the sources no longer have. For calls that are noted
apart, such as `train crf`, the list has what each needs, so that other processes can compile it in time. `python -m
tests.entry_recorder` measures the seconds.
"""

from __future__ import annotations

import fcntl
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numba
from numba.core import event

from trelliswork.runtime import light
from trelliswork.runtime.compilation import Kernel
from trelliswork.runtime.entries import Entry, Use, read_entries, read_uses, write_uses
from trelliswork.runtime.kernel_cache import KernelCache


class Recorder(event.Listener):
    """Notes what is loaded or compiled while no other kernel is being compiled: that was called by Python."""

    def __init__(self) -> None:
        self.depth, self.called, self.listed = 0, set[Entry](), read_uses()
        self.needed: dict[str, set[Entry]] = defaultdict(set)
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

    @contextmanager
    def needs(self, call: str) -> Iterator[None]:
        """Note what a call needs in a process that has no kernels yet."""
        for kernel in all_kernels():
            for made in ("dispatcher", "run"):
                vars(kernel).pop(made, None)
        before, self.called = self.called, set()
        try:
            yield
        finally:
            self.needed[call] |= self.called
            self.called |= before

    def unlisted(self) -> set[str]:
        """Return what was called and is not on the list, or not for its call, once."""
        missing = {shown(entry) for entry in self.called - self.listed.keys()}
        self.listed |= {entry: Use() for entry in self.called - self.listed.keys()}
        for call, entries in self.needed.items():
            lacking = {entry for entry in entries if call not in self.listed[entry].calls}
            missing |= {f"{shown(entry)} for {call!r}" for entry in lacking}
            self.listed |= {
                entry: self.listed[entry]._replace(calls=self.listed[entry].calls | {call}) for entry in lacking
            }
        return missing

    def write(self) -> None:
        """Add what this process called to the list; the processes of a run do so in turn."""
        with Path(__file__).open("rb") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            uses = {entry: use for entry, use in read_uses().items() if exists(entry)}
            uses |= {entry: Use() for entry in self.called - uses.keys()}
            for entry, use in uses.items():
                calls = (use.calls - self.needed.keys()) | {call for call in self.needed if entry in self.needed[call]}
                uses[entry] = use._replace(calls=calls)
            write_uses(uses)


def shown(entry: Entry) -> str:
    return f"{entry.module}:{entry.name}{entry.arguments}"


def exists(entry: Entry) -> bool:
    """Return whether the sources have the kernel, with as many arguments, and its types."""
    try:
        code = entry.dispatcher.py_func.__code__
        return len(entry.signature) == code.co_argcount
    except (ImportError, AttributeError):
        return False


def all_kernels() -> set[Kernel]:
    """Return every kernel of the modules that are imported."""
    modules = [module for name, module in sys.modules.items() if name.startswith("trelliswork.")]
    return {each for module in modules for each in list(vars(module).values()) if isinstance(each, Kernel)}


def record() -> Recorder:
    """From now on note the kernels that are called."""
    recorder = Recorder()
    event.register("numba:compile", recorder)
    KernelCache.load_overload = lambda *given: recorder.load_and_note(*given)  # type: ignore[method-assign]
    light.load = lambda *given: recorder.load_light_and_note(*given)
    return recorder


def measure() -> None:
    """Compile every entry from an empty cache and write the seconds, which include the kernels that are new to it."""
    with tempfile.TemporaryDirectory() as cache:
        os.environ["NUMBA_CACHE_DIR"] = cache
        uses = read_uses()
        for entry in read_entries():
            began = time.process_time()
            entry.dispatcher.compile(entry.signature)
            uses[entry] = uses[entry]._replace(seconds=round(time.process_time() - began, 1))
    write_uses(uses)


if __name__ == "__main__":
    measure()
