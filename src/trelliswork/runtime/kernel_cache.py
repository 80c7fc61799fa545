"""Machine code on disk: one checked file for each kernel, signature and processor.

numba's own cache knows a function's signature, bytecode and processor, and the time stamp of its file. It does not know
its options, its constants, the helpers in other files that were compiled into it, or the versions of this package and
of llvmlite; it keeps an index that two processes can overwrite for each other, and raises where it can neither read nor
write. Here the file name is the key and covers all of those. A file that is damaged or missing is compiled again; where
no folder can be written, kernels are compiled in memory, with one warning.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import platform
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from trelliswork import __version__
from trelliswork.errors import TrellisworkWarning

PACKAGE = Path(__file__).parents[1]
SUFFIX = ".kernel"
_IMPORT = re.compile(rf"^(?:from|import)\s+{PACKAGE.name}\.([\w.]+)", re.MULTILINE)
_HARMLESS = {"NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS", "NUMBA_DEBUG_CACHE", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"}
_DIGEST_SIZE = hashlib.sha256().digest_size


class KernelCache:
    """What a numba dispatcher asks of its cache (`numba.core.caching._Cache`), for one kernel."""

    def __init__(self, function: Callable[..., Any], arithmetic: Iterable[str]) -> None:
        if function.__closure__:
            raise TypeError(
                f"{function.__qualname__} closes over variables; a kernel reads arguments and constants only"
            )
        self.source = Path(function.__code__.co_filename)
        self.stem = f"{self.source.stem}.{function.__qualname__}"
        self._own = (function.__module__, function.__code__.co_firstlineno, sorted(arithmetic))

    @property
    def cache_path(self) -> str:
        """The first folder that is tried."""
        return str(next(folders(self.source)))

    def load_overload(self, signature: Any, target: Any) -> Any:
        """The compiled kernel for these types and this processor; None if there is no sound file."""
        target.refresh()  # declares what the machine code may refer to
        name = self._name(signature, target.codegen())
        for folder in folders(self.source):
            payload = _read(folder / name)
            if payload is not None:
                with contextlib.suppress(Exception):  # whatever pickle meets in a file of another world: compile
                    return CompileResult._rebuild(target, *pickle.loads(payload))
        return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep a compiled kernel in the first folder that can be written; files of earlier versions go."""
        payload, name = dumps(compiled._reduce()), self._name(signature, compiled.codegen)
        for folder in folders(self.source):
            with contextlib.suppress(OSError):
                _write(folder / name, payload)
                self._remove_earlier_versions(folder)
                return
        _warn_once()

    def flush(self) -> None:
        """Remove what is kept of this kernel."""
        for folder in folders(self.source):
            for file in self._files(folder):
                with contextlib.suppress(OSError):
                    file.unlink()

    def enable(self) -> None:
        """Always on."""

    def disable(self) -> None:
        """Always on."""

    def _name(self, signature: Any, codegen: Any) -> str:
        return f"{self.stem}-{self._version()}-{_processor(codegen)}-{_short(signature)}{SUFFIX}"

    def _version(self) -> str:
        return _short(self._own, sources_digest(self.source), _tools())

    def _files(self, folder: Path) -> Iterator[Path]:
        with contextlib.suppress(OSError):
            yield from folder.glob(f"{self.stem}-*{SUFFIX}")

    def _remove_earlier_versions(self, folder: Path) -> None:
        present = f"{self.stem}-{self._version()}-"
        for file in self._files(folder):
            if not file.name.startswith(present):
                file.unlink(missing_ok=True)


def folders(source: Path) -> Iterator[Path]:
    """Where the kernels of a file may be kept, in the order in which they are tried."""
    inside = source.parent.relative_to(PACKAGE) if source.is_relative_to(PACKAGE) else Path(_short(source.parent))
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        yield Path(chosen) / PACKAGE.name / inside
        return
    yield source.parent / "__pycache__"
    home = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or os.path.expanduser("~/.cache")
    if os.path.isabs(home):
        yield Path(home) / PACKAGE.name / inside


@cache
def sources_digest(source: Path) -> str:
    """A digest of a file and of the files of the package that it imports, directly or not."""
    seen: dict[Path, bytes] = {}
    waiting = [source]
    while waiting:
        file = waiting.pop()
        if file not in seen:
            seen[file] = file.read_bytes()
            waiting += _imported(seen[file].decode())
    return _short(*(seen[file] for file in sorted(seen)))


def _imported(text: str) -> Iterator[Path]:
    for module in _IMPORT.findall(text):
        path = PACKAGE.joinpath(*module.split("."))
        if path.is_dir():
            yield from path.glob("*.py")
        elif path.with_suffix(".py").exists():
            yield path.with_suffix(".py")


@cache
def _tools() -> str:
    """The versions and settings that machine code depends on beside its source and its processor."""
    settings = sorted((k, v) for k, v in os.environ.items() if k.startswith("NUMBA_") and k not in _HARMLESS)
    versions = __version__, numba.__version__, llvmlite.__version__, np.__version__, sys.version, platform.machine()
    return _short(versions, settings)


def _processor(codegen: Any) -> str:
    return _short(codegen.magic_tuple())


def _short(*what: Any) -> str:
    digest = hashlib.sha256()
    for each in what:
        digest.update(each if isinstance(each, bytes) else repr(each).encode())
        digest.update(b"\0")
    return digest.hexdigest()[:12]


def _read(file: Path) -> bytes | None:
    """The payload of a file whose checksum holds."""
    try:
        content = file.read_bytes()
    except OSError:
        return None
    checksum, payload = content[:_DIGEST_SIZE], content[_DIGEST_SIZE:]
    return payload if hashlib.sha256(payload).digest() == checksum else None


def _write(file: Path, payload: bytes) -> None:
    """Under a temporary name first: another process sees a whole file or none."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, part = tempfile.mkstemp(dir=file.parent, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(hashlib.sha256(payload).digest() + payload)
        os.replace(part, file)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise


@cache
def _warn_once() -> None:
    warnings.warn(
        "no folder for compiled kernels can be written; they are compiled again in every process. "
        "Set NUMBA_CACHE_DIR to a folder with space that you may write to.",
        TrellisworkWarning,
        stacklevel=2,
    )
