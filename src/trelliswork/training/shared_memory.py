"""Memory that all processes of one machine share, in which they wait for each other without asking the system.

A message through a socket takes some milliseconds until a sleeping process goes on, and a training step has several.
Here each process writes its numbers where the others see them and looks at a counter until all are there.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from trelliswork.errors import TrellisworkError

Array = np.ndarray[Any, Any]
MARK = 64  # random bytes at the beginning: on another machine the same path may be another file
LINE = 8  # whole numbers of 64 bits between two counters, so that no two are in one line of a cache
AWAKE, NAP = 0.02, 0.0005  # seconds of waiting without sleeping, and of a sleep after that
LOOK = 1.0  # seconds of waiting until a process looks whether the others are still there


class SharedFile(NamedTuple):
    """Where other processes find the memory of the first one."""

    path: str
    mark: bytes

    @classmethod
    def of(cls, file: int) -> SharedFile:
        """That of an open file of this process."""
        return cls(f"/proc/{os.getpid()}/fd/{file}", os.pread(file, MARK, 0))


class SharedMemory:
    """`rows` shows each process what all of them have. All must call it in the same order."""

    def __init__(self, memory: Array, rank: int, size: int) -> None:
        lines = memory[: 8 * LINE * size].view(np.int64).reshape(size, LINE)
        self._arrived, self._pids, self._rank, self.room = lines[:, 0], lines[:, 1], rank, memory[8 * LINE * size :]
        self._pids[rank] = os.getpid()

    @contextmanager
    def rows(self, own: Array) -> Iterator[Array]:
        """Inside, [processes, ...]: the numbers of each process, which are read and not changed."""
        size = len(self._arrived)
        rows = self.room[: size * own.nbytes].view(own.dtype).reshape(size, *own.shape)
        rows[self._rank] = own
        self._wait()
        yield rows
        self._wait()  # others may still be reading

    def _wait(self) -> None:
        """Until all processes are here."""
        self._arrived[self._rank] += 1
        wanted, began = self._arrived[self._rank], time.monotonic()
        look = began + LOOK
        while self._arrived.min() < wanted:
            now = time.monotonic()
            if now - began < AWAKE:
                os.sched_yield()
                continue
            time.sleep(NAP)
            if now > look:
                look = now + LOOK
                self._check(wanted)

    def _check(self, wanted: int) -> None:
        """Nobody waits for a process that has ended."""
        for rank in np.flatnonzero((self._arrived < wanted) & (self._pids > 0)).tolist():
            try:
                os.kill(int(self._pids[rank]), 0)
            except ProcessLookupError:
                raise TrellisworkError(f"process {rank} of the run has ended; see what it printed") from None


def shared_memory(
    n_bytes: int, rank: int, size: int, from_first: Callable[[Any], Any], any_of: Callable[[bool], bool]
) -> SharedMemory | None:
    """Memory with room for n bytes of each process; None in all of them if any cannot have it.

    It is a file without a name (memfd), which the others open through the first process: it is gone with the last of
    them, also after a kill. None if processes are on several machines, or if the system has no such files or the
    processor may show what another one wrote in another order. `from_first` gives all processes the value of the first,
    `any_of` says whether a flag is set in any of them.
    """
    n_bytes = size * (8 * LINE + n_bytes)
    file = _reserve(n_bytes) if rank == 0 else None
    try:
        shared = from_first(None if file is None else SharedFile.of(file))
        memory = None if shared is None else opened(shared, n_bytes)
        return None if any_of(memory is None) or memory is None else SharedMemory(memory, rank, size)
    finally:
        if file is not None:
            os.close(file)


def _reserve(n_bytes: int) -> int | None:
    """The descriptor of a file of so many bytes behind its mark, all 0."""
    if not hasattr(os, "memfd_create") or platform.machine() not in ("x86_64", "AMD64"):
        return None
    file = os.memfd_create("trelliswork")
    try:
        os.posix_fallocate(file, 0, MARK + n_bytes)  # a page that cannot be had later would kill the program
        os.pwrite(file, os.urandom(MARK), 0)
        return file
    except OSError:
        os.close(file)
        return None


def opened(shared: SharedFile, n_bytes: int) -> Array | None:
    """The bytes behind the mark; None if they are not to be had from here."""
    try:
        with open(shared.path, "r+b") as file:
            if file.read(MARK) != shared.mark:
                return None
            return np.memmap(file, np.uint8, "r+", offset=MARK, shape=(n_bytes,)).view(np.ndarray)
    except (OSError, ValueError):
        return None
