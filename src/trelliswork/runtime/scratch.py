"""Large arrays in memory, or in temporary files that are mapped into it, for data larger than memory.

The files have no name and are gone when nobody uses them any more, also after a kill: nothing is left behind.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from trelliswork.errors import OutputError
from trelliswork.runtime.arrays import Array

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


@dataclass(frozen=True)
class Scratch:
    """The place of large arrays: files of a directory, or memory if there is none.

    >>> Scratch().array(2, np.int64).fill(1)
    """

    directory: Path | None = None

    def __post_init__(self) -> None:
        if self.directory is not None:
            with self.explained():
                self.directory.mkdir(parents=True, exist_ok=True)
                self.file().close()

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn errors of writing inside into a sentence."""
        try:
            yield
        except OSError as error:
            problem = f"expected a directory for temporary files, got {error.strerror or error}"
            raise OutputError(f"{self.directory}: {problem}; free space, or choose another --scratch") from error

    @classmethod
    def at(cls, directory: str | None) -> Scratch:
        """Return a place in a directory that is named, or in memory."""
        return cls(None if directory is None else Path(directory))

    @property
    def on_disk(self) -> bool:
        return self.directory is not None

    def file(self) -> IO[bytes]:
        """Return a temporary file without a name."""
        return tempfile.TemporaryFile(dir=self.directory)  # open as long as it is mapped

    def array(self, n: int, kind: DTypeLike) -> Array:
        """Return room for n numbers; what is in it is not defined."""
        if self.directory is None or n == 0:
            return np.empty(n, kind)
        with self.explained(), self.file() as file:
            _reserve(file, n * np.dtype(kind).itemsize)
            return _map_file(file, kind, n)

    def taken(self, numbers: Array, places: Array) -> Array:
        """Return numbers[places]."""
        if self.directory is None:
            return numbers[places]
        out = self.array(len(places), numbers.dtype)
        return np.take(numbers, places, out=out, mode="clip") if len(places) else out

    def growing(self, kind: DTypeLike) -> Growing:
        """Return an array whose length is not known yet."""
        return Growing(self, kind)


class Growing:
    """Numbers that are added part by part, and are one array in the end.

    >>> numbers = Scratch().growing(np.int64)
    >>> numbers.add(np.arange(2)); numbers.add(np.arange(3)); numbers.whole().tolist()
    [0, 1, 0, 1, 2]
    """

    def __init__(self, scratch: Scratch, kind: DTypeLike) -> None:
        self.kind, self._n, self._parts, self._scratch = np.dtype(kind), 0, list[Array](), scratch
        self._file = scratch.file() if scratch.on_disk else None

    def __len__(self) -> int:
        return self._n

    def add(self, numbers: Array) -> None:
        """Add numbers at the end."""
        self._n += len(numbers)
        if self._file is None:
            self._parts.append(numbers)
            return
        with self._scratch.explained():
            self._file.write(np.ascontiguousarray(numbers, self.kind).tobytes())

    def whole(self) -> Array:
        """Return all numbers; nothing can be added afterwards."""
        if self._file is None:
            parts, self._parts = self._parts, []
            return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, self.kind), *parts])
        with self._scratch.explained(), self._file as file:
            file.flush()
            return _map_file(file, self.kind, self._n) if self._n else np.empty(0, self.kind)


def _reserve(file: IO[bytes], n_bytes: int) -> None:
    """Reserve room on the disk: writing to a mapped file on a full one would kill the program."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, n_bytes)
    else:
        file.truncate(n_bytes)


def _map_file(file: IO[bytes], kind: DTypeLike, n: int) -> Array:
    return np.memmap(file, kind, "r+", shape=(n,)).view(np.ndarray)
