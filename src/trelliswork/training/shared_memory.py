"""Numbers that all processes of one machine see, in memory that they share."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np

from trelliswork.training.processes import Processes

Array = np.ndarray[Any, Any]
MARK = 16  # random bytes before the numbers: on another machine the same path may be another file


class SharedFile(NamedTuple):
    """Where other processes find the room of the first one."""

    path: str
    mark: bytes

    @classmethod
    def of(cls, file: int) -> SharedFile:
        """That of an open file of this process."""
        return cls(f"/proc/{os.getpid()}/fd/{file}", os.pread(file, MARK, 0))


def shared_numbers(processes: Processes, n: int) -> Array | None:
    """Room for n numbers that all processes read and write; None in all of them if any cannot have it.

    The room is a file without a name (memfd), which the others open through the first process: it is gone with the last
    of them, also after a kill. None if processes are on several machines, or the system has no such files.
    """
    file = _reserve(n) if processes.is_first else None
    try:
        shared = processes.from_first(None if file is None else SharedFile.of(file))
        room = None if shared is None else opened(shared, n)
        return None if processes.any(room is None) else room
    finally:
        if file is not None:
            os.close(file)


def _reserve(n: int) -> int | None:
    """The descriptor of a file for n numbers."""
    if not hasattr(os, "memfd_create"):
        return None
    file = os.memfd_create("trelliswork")
    try:
        os.posix_fallocate(file, 0, MARK + 8 * n)  # a page that cannot be had later would kill the program
        os.pwrite(file, os.urandom(MARK), 0)
        return file
    except OSError:
        os.close(file)
        return None


def opened(shared: SharedFile, n: int) -> Array | None:
    """The n numbers there; None if it is not to be had from here."""
    try:
        with open(shared.path, "r+b") as file:
            if file.read(MARK) != shared.mark:
                return None
            return np.memmap(file, np.float64, "r+", offset=MARK, shape=(n,)).view(np.ndarray)
    except (OSError, ValueError):
        return None
