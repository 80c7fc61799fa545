"""Machine code on disk: one checked file for each kernel, signature and processor.

numba's own cache knows a function's signature, bytecode and processor, and the time stamp of its file. It does not know
its options, its constants, the helpers in other files that were compiled into it, or the versions of this package and
of llvmlite; it keeps an index that two processes can overwrite for each other, and raises where it can neither read nor
write. Here the file name is the key and covers all of those. A file that is damaged or missing is compiled again; where
no folder can be written, kernels are compiled in memory, with one warning.

A file is unpickled, which runs code: like the keys of ssh, it and its folder must belong to root or to this user, and
nobody else may write to them. What does not is compiled again, with one warning.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import platform
import re
import runpy
import stat
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import llvmlite
import numpy as np

from trelliswork import __version__
from trelliswork.errors import TrellisworkWarning
from trelliswork.lazy import lazy_module
from trelliswork.runtime.shipped import read_shipped

compiler, serialize = lazy_module("numba.core.compiler"), lazy_module("numba.core.serialize")

PACKAGE = Path(__file__).parents[1]
SUFFIX = ".kernel"
_IMPORT = re.compile(rf"^(?:from|import)\s+{PACKAGE.name}\.([\w.]+)", re.MULTILINE)
_HARMLESS = {"NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS", "NUMBA_DEBUG_CACHE", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"}
_DIGEST_SIZE = hashlib.sha256().digest_size
_FORMAT = 1  # of a file; the code here is no part of any kernel, and does not count among its sources
_BESIDE_SOURCE = "__pycache__"
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_warned: list[str] = []


class UntrustedError(Exception):
    """A file or folder that another user may have written."""


class Codegen(Protocol):
    """A generator of machine code, of numba or `light.Host`: it knows the processor."""

    def magic_tuple(self) -> tuple[str, ...]: ...


class KernelCache:
    """The cache that a numba dispatcher asks (`numba.core.caching._Cache`), for one kernel.

    Args:
        function: the Python function of the kernel.
        arithmetic: what the compiler may do with floats, such as EXACT.
        for_kernels: whether kernels call it, instead of Python.
    """

    def __init__(
        self, function: Callable[..., object], arithmetic: Iterable[str], *, for_kernels: bool = False
    ) -> None:
        if function.__closure__:
            raise TypeError(
                f"{function.__qualname__} closes over variables; a kernel reads arguments and constants only"
            )
        self.kernel = function.__module__, function.__qualname__
        self.source = Path(function.__code__.co_filename)
        self.stem = f"{self.source.stem}.{function.__qualname__}{'.part' * for_kernels}"
        self._own = (function.__module__, function.__code__.co_firstlineno, sorted(arithmetic))

    @property
    def cache_path(self) -> str:
        """The first folder that is tried."""
        return str(next(folders(self.source)))

    def load_overload(self, signature: object, target: Any) -> Any:
        """Return the compiled kernel for these types and this processor; None if there is no sound file."""
        target.refresh()  # declares what the machine code may refer to
        for payload in self.payloads(signature, target.codegen()):
            with contextlib.suppress(Exception):  # whatever pickle meets in a file of another world: compile
                return compiler.CompileResult._rebuild(target, *pickle.loads(payload))
        return None

    def payloads(self, signature: object, codegen: Codegen) -> Iterator[bytes]:
        """Yield what may be the compiled kernel for these types and this processor, the most fitting first."""
        name, untrusted = self._name(signature, codegen), None
        for folder in folders(self.source):
            try:
                payload = _read(folder / name)
            except UntrustedError:
                untrusted = folder / name
                continue
            if payload is not None:
                yield payload
        shipped = read_shipped(self.shipped_name(signature))
        payload = None if shipped is None else _checked(shipped)
        if payload is not None:
            yield payload
        if untrusted is not None:
            _warn_once(
                f"{untrusted} is not loaded, as another user may have written it; it is compiled again. "
                "Remove that folder, or set NUMBA_CACHE_DIR to one that you alone may write to."
            )

    def save_overload(self, signature: object, compiled: Any) -> None:
        """Keep a compiled kernel in the first folder that can be written; files of earlier versions go."""
        unannotated = compiled._replace(type_annotation="")  # it takes long to write and names folders of this machine
        payload, name = serialize.dumps(unannotated._reduce()), self._name(signature, compiled.codegen)
        for folder in folders(self.source):
            with contextlib.suppress(OSError, UntrustedError):
                _write(folder / name, payload)
                self._remove_earlier_versions(folder)
                return
        _warn_once(
            "no folder for compiled kernels can be written by you alone; they are compiled again in every "
            "process. Set NUMBA_CACHE_DIR to a folder of your own with space."
        )

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

    def file(self, signature: object, codegen: Codegen) -> Path | None:
        """Return the file in which the compiled kernel is kept; None if there is none."""
        name = self._name(signature, codegen)
        return next((folder / name for folder in folders(self.source) if (folder / name).is_file()), None)

    def shipped_name(self, signature: object) -> str:
        """Return the name of the file that a wheel brings along."""
        return f"{self.stem}-{self._version(_release())}-{_short(signature)}{SUFFIX}"

    def _name(self, signature: object, codegen: Codegen) -> str:
        return f"{self.stem}-{self._version(_tools())}-{_processor(codegen)}-{_short(signature)}{SUFFIX}"

    def _version(self, tools: str) -> str:
        return _short(self._own, sources_digest(self.source), tools, _FORMAT)

    def _files(self, folder: Path) -> Iterator[Path]:
        with contextlib.suppress(OSError):
            yield from folder.glob(f"{self.stem}-*{SUFFIX}")

    def _remove_earlier_versions(self, folder: Path) -> None:
        present = f"{self.stem}-{self._version(_tools())}-"
        for file in self._files(folder):
            if not file.name.startswith(present):
                file.unlink(missing_ok=True)


def folders(source: Path) -> Iterator[Path]:
    """Return the folders in which the kernels of a file may be kept, in the order in which they are tried."""
    inside = source.parent.relative_to(PACKAGE) if source.is_relative_to(PACKAGE) else Path(_short(source.parent))
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        yield Path(chosen) / PACKAGE.name / inside
        return
    yield source.parent / _BESIDE_SOURCE
    home = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or os.path.expanduser("~/.cache")
    if os.path.isabs(home):
        yield Path(home) / PACKAGE.name / inside


@cache
def sources_digest(source: Path) -> str:
    """Return a digest of a file and of the files of the package that it imports, directly or not, without this one."""
    seen: dict[Path, bytes] = {}
    waiting = [source]
    while waiting:
        file = waiting.pop()
        if file not in seen and file != Path(__file__):
            seen[file] = file.read_bytes()
            waiting += _imports(seen[file].decode())
    return _short(*(seen[file] for file in sorted(seen)))


def _imports(text: str) -> Iterator[Path]:
    for module in _IMPORT.findall(text):
        path = PACKAGE.joinpath(*module.split("."))
        if path.is_dir():
            yield from path.glob("*.py")
        elif path.with_suffix(".py").exists():
            yield path.with_suffix(".py")


@cache
def numba_folder() -> Path:
    """Return the folder of numba."""
    spec = find_spec("numba")
    assert spec is not None and spec.origin is not None, "numba is a requirement of this package"
    return Path(spec.origin).parent


@cache
def numba_version() -> str:
    """Return the version of numba, from the one of its files that has it: to import all takes a quarter of a second."""
    if (numba := sys.modules.get("numba")) is not None and hasattr(numba, "__version__"):
        return str(numba.__version__)
    return str(runpy.run_path(str(numba_folder() / "_version.py"))["get_versions"]()["version"])


@cache
def _tools() -> str:
    """Return the versions and settings that machine code depends on in addition to its source and its processor."""
    versions = __version__, numba_version(), llvmlite.__version__, np.__version__, sys.version, platform.machine()
    return _short(versions, _settings())


@cache
def _release() -> str:
    """Return the same for a file that was made on another machine: versions without how Python and NumPy were built."""
    numpy, python = np.__version__.split(".")[:2], sys.implementation.cache_tag
    versions = __version__, numba_version(), llvmlite.__version__, numpy, python, sys.platform, platform.machine()
    return _short(versions, _settings())


def _settings() -> list[tuple[str, str]]:
    return sorted((k, v) for k, v in os.environ.items() if k.startswith("NUMBA_") and k not in _HARMLESS)


def _processor(codegen: Codegen) -> str:
    return _short(codegen.magic_tuple())


def _short(*what: object) -> str:
    digest = hashlib.sha256()
    for each in what:
        digest.update(each if isinstance(each, bytes) else repr(each).encode())
        digest.update(b"\0")
    return digest.hexdigest()[:12]


def _read(file: Path) -> bytes | None:
    """Return the payload of a file whose checksum holds; an error if others may have written it."""
    try:
        content = _trusted_content(file) if os.name == "posix" else file.read_bytes()
    except OSError:
        return None
    return _checked(content)


def _pack(payload: bytes) -> bytes:
    """Return the content of a file: a checksum, and what it is of."""
    return hashlib.sha256(payload).digest() + payload


def _checked(content: bytes) -> bytes | None:
    payload = content[_DIGEST_SIZE:]
    return payload if _pack(payload) == content else None


def _trusted_content(file: Path) -> bytes:
    """Read a file. What is checked is what was opened, not what has its name a moment later."""
    folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        flags = os.O_NOFOLLOW | os.O_NONBLOCK
        with open(file.name, "rb", opener=lambda name, read: os.open(name, read | flags, dir_fd=folder)) as stream:
            for handle in (folder, stream.fileno()):
                _require_trusted(os.fstat(handle))
            return stream.read()
    finally:
        os.close(folder)


def _require_trusted(info: os.stat_result) -> None:
    """Require that only root and this user can have written a file, or exchanged the files of a folder."""
    if os.name != "posix":  # access lists take the place of owners and modes
        return
    keeps_owners = stat.S_ISDIR(info.st_mode) and info.st_mode & stat.S_ISVTX  # as /tmp: files stay their owners'
    if info.st_uid not in (0, os.geteuid()) or (info.st_mode & _WRITABLE_BY_OTHERS and not keeps_owners):
        raise UntrustedError


def _make_folder(folder: Path) -> None:
    """Make a folder and those above it for this user alone; next to the source, for all who can read that."""
    for each in reversed([folder, *folder.parents]):
        if not each.exists():
            each.mkdir(mode=0o755 if each.name == _BESIDE_SOURCE else 0o700, exist_ok=True)


def require_own_folder(folder: Path) -> None:
    """Make a folder if there is none; nobody else may write to it."""
    _make_folder(folder)
    _require_trusted(folder.stat())


def _write(file: Path, payload: bytes) -> None:
    """Under a temporary name first: another process sees a whole file or none."""
    require_own_folder(file.parent)
    handle, part = tempfile.mkstemp(dir=file.parent, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as stream:
            if file.parent.name == _BESIDE_SOURCE and os.name == "posix":
                os.fchmod(handle, 0o644)  # what root installs is there for everybody
            stream.write(_pack(payload))
        os.replace(part, file)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise


def _warn_once(sentence: str) -> None:
    """Say the first thing that is wrong with the folders of kernels; the others follow from it."""
    if not _warned:
        _warned.append(sentence)
        warnings.warn(sentence, TrellisworkWarning, stacklevel=3)
