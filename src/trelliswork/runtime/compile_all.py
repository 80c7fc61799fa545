"""Many kernels compiled by several processes at once, into the cache of this machine.

Each process goes through the same list, and leaves out what is compiled or what another process is compiling
(`turns.py`), so that a user's own process can take part. They end with the process that started them, and do not hear
Ctrl-C: that one answers it.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from trelliswork.runtime import turns
from trelliswork.runtime.entries import Entry
from trelliswork.runtime.parents import end_with_parent
from trelliswork.runtime.threads import n_cores

_PROGRAM = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]);"
    "from trelliswork.runtime.compile_all import serve; serve(int(sys.argv[2]))"
)


def compile_all(
    entries: Iterable[Entry],
    n_processes: int | None = None,
    *,
    settings: Mapping[str, str] | None = None,
    note: Callable[[int, int], object] = lambda ready, n_kernels: None,
) -> dict[Entry, Path | None]:
    """Compile kernels in parallel processes and return the file of each.

    Args:
        entries: the kernels to compile.
        n_processes: how many processes to start; None for as many as there are cores.
        settings: variables that are added to the environment of the processes.
        note: a function that is called with the number of kernels that are ready and that of all.

    Returns:
        The file of each kernel; None if the package brings it along, or if it could not be kept. Where no process can
        leave what it compiles to another, this one compiles, in memory if need be.
    """
    listed, files = list(dict.fromkeys(entries)), dict[Entry, Path | None]()
    with Helpers(listed, n_processes, settings) as helpers:
        for number, file in helpers.reports():
            if listed[number] not in files:
                files[listed[number]] = Path(file) if file else None
                note(len(files), len(listed))
        if any(status := process.wait() for process in helpers.processes):
            raise RuntimeError(f"a process that compiles kernels has ended with status {status}")
    left = [entry for entry in listed if entry not in files]
    if left and settings:
        raise RuntimeError(f"{len(left)} kernels need other settings than those of this process, which has no helpers")
    for entry in left:
        files[entry] = compile_here(entry)
        note(len(files), len(listed))
    return files


class Helpers:
    """Processes that compile a list of kernels; inside `with`, and not longer than this process lives.

    Args:
        entries: the kernels to compile.
        n_processes: how many processes to start.
        settings: variables that are added to their environment.
    """

    def __init__(
        self, entries: Sequence[Entry], n_processes: int | None = None, settings: Mapping[str, str] | None = None
    ) -> None:
        number = min(n_cores() if n_processes is None else n_processes, len(entries))
        self._reading, writing = os.pipe()
        try:
            possible = can_start(settings)
            self.processes = [_start(entries, writing, settings or {}) for _ in range(number if possible else 0)]
        finally:
            os.close(writing)

    def reports(self) -> Iterable[tuple[int, str]]:
        """Yield the number in the list and the file of each kernel, as they are ready; some twice."""
        with open(self._reading, closefd=False) as lines:
            yield from map(json.loads, lines)

    def __enter__(self) -> Helpers:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End the processes, whatever they are at."""
        for process in self.processes:
            process.kill()
            process.wait()
        os.close(self._reading)


def can_start(settings: Mapping[str, str] | None = None) -> bool:
    """Return True if this interpreter can start others that fill its cache."""
    is_program = bool(getattr(sys, "frozen", False)) or not sys.executable  # which would start itself again
    return not is_program and ("NUMBA_CACHE_DIR" in (settings or {}) or turns.can_share())


def compile_here(entry: Entry) -> Path | None:
    """Compile a kernel in this process, unless it is there; return its file."""
    dispatcher, signature = entry.dispatcher, entry.signature
    if entry.state == "missing":
        dispatcher.compile(signature)
    file: Path | None = dispatcher._cache.file(signature, dispatcher.targetctx.codegen())
    return file


def serve(parent: int) -> None:
    """Compile the entries that standard input lists, as other processes do; report those that are there."""
    end_with_parent(parent)
    entries = [Entry(*row) for row in json.load(sys.stdin)]
    for number, entry in enumerate(entries):
        dispatcher, signature = entry.dispatcher, entry.signature
        if entry.state == "missing" and not dispatcher._cache.take(signature, dispatcher.targetctx.codegen()):
            continue  # another process has begun
        with contextlib.suppress(BrokenPipeError):  # nobody listens
            os.write(1, f"{json.dumps([number, str(compile_here(entry) or '')])}\n".encode())


def _start(entries: Sequence[Entry], output: int, settings: Mapping[str, str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", _PROGRAM, json.dumps(sys.path), str(os.getpid())]
    group: dict[str, Any] = {"process_group": 0} if os.name == "posix" else {}
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=output, env={**os.environ, **settings}, text=True, **group
    )
    with contextlib.suppress(BrokenPipeError), process.stdin or contextlib.nullcontext() as pipe:
        json.dump(entries, pipe)  # type: ignore[arg-type]
    return process
