"""Cached kernels without numba, whose import takes longer than most commands.

The file of a kernel holds machine code with a wrapper that takes Python's arguments and returns Python's answer. numba
has LLVM link it and calls the wrapper; so does this module, with numba's own C extensions, which need none of its
Python modules. The name of the file, its checks and its machine code are the same, and so are the answers. Whatever is
not as expected here (a type, a setting of numba, a symbol, a file of another format or none at all) is left to numba:
`docs/decisions/0058-light.md`.
"""

from __future__ import annotations

import builtins
import contextlib
import ctypes
import io
import os
import pickle
import platform
import struct
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from itertools import count
from pathlib import Path
from threading import RLock
from typing import Any, NamedTuple, cast

import llvmlite.binding as llvm
import numpy as np

from trelliswork.runtime.compilation import Function, Kernel
from trelliswork.runtime.kernel_cache import KernelCache, numba_folder
from trelliswork.runtime.type_names import UnknownTypeError, check_of, written

# The symbols of an object file, without LLVM: it ends the process when one that it needs is missing.
#
# ELF with 64 bits and little-endian numbers, which is what Linux has on x86 and arm64.

_MAGIC = b"\x7fELF\x02\x01"
_SYMBOLS = 2  # the kind of a section


class CodeSymbols(NamedTuple):
    """The names that an object file defines, and those that it refers to."""

    defined: set[str]
    missing: set[str]


class _Section(NamedTuple):
    name: int
    kind: int
    flags: int
    address: int
    start: int
    size: int
    linked: int
    info: int
    alignment: int
    entry_size: int


def symbols_of(code: bytes) -> CodeSymbols | None:
    """Return the symbols of an object file; None for a file of another kind."""
    if not code.startswith(_MAGIC):
        return None
    symbols = CodeSymbols(set(), set())
    sections = list(_sections(code))
    for section in sections:
        if section.kind == _SYMBOLS:
            names = sections[section.linked].start
            for place in range(section.start, section.start + section.size, section.entry_size):
                name, _, _, owner = struct.unpack_from("<IBBH", code, place)
                text = code[names + name : code.index(b"\0", names + name)].decode()
                (symbols.defined if owner else symbols.missing).add(text)
    symbols.missing.discard("")
    return symbols


def _sections(code: bytes) -> Iterator[_Section]:
    (start,) = struct.unpack_from("<Q", code, 0x28)
    size, n = struct.unpack_from("<HH", code, 0x3A)
    for i in range(n):
        yield _Section(*struct.unpack_from("<IIQQQQIIQQ", code, start + i * size))


MOST_CALLS = 50_000  # in one process; numba looks at arguments faster, which pays for its import in the end
SETTINGS = {"NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS"}  # those that do not concern machine code
SETTINGS_FILE = ".numba_config.yaml"
# The functions of C that numba binds to those of its own extension.
MATH = tuple(
    """
    acos acosf acosh acoshf asin asinf asinh asinhf atan atan2 atan2f atanf atanh atanhf ceil ceilf cos cosf cosh coshf
    exp expf expm1 expm1f fabs fabsf floor floorf fmod fmodf log log10 log10f log1p log1pf logf pow powf round roundf
    sin sinf sinh sinhf sqrt sqrtf tan tanf tanh tanhf trunc truncf
    """.split()  # noqa: SIM905, a list of 52 lines
)
Check = Callable[[tuple[object, ...]], bool]
_calls = count()
_loading = RLock()


class NeedsNumbaError(Exception):
    """Something that only numba can handle."""


def entry(kernel: Kernel, arithmetic: frozenset[str]) -> Function:
    """Return what is called as a kernel until its dispatcher takes over."""
    if not is_possible() or _is_disabled():
        return _dispatcher_of(kernel)
    loaded = Loaded(KernelCache(kernel.py_func, arithmetic))
    checks = loaded.checks

    def call(*arguments: object, **keywords: object) -> Any:
        if next(_calls) < MOST_CALLS and not keywords:
            for fits, function in checks:
                if fits(arguments):
                    return function(*arguments)
            if (new := loaded.function_for(arguments)) is not None:
                return new(*arguments)
        return _dispatcher_of(kernel)(*arguments, **keywords)

    return call


class Loaded:
    """The compiled functions of a kernel that are loaded: by their signatures, and with a quick check of arguments."""

    def __init__(self, cache: KernelCache) -> None:
        self.cache, self.checks = cache, list[tuple[Check, Function]]()
        self._functions: dict[bytes, Function] = {}

    def function_for(self, arguments: tuple[object, ...]) -> Function | None:
        """Return the function for arguments of these types, loaded once; None if only numba has it."""
        with _loading, contextlib.suppress(UnknownTypeError):
            signature = signature_of(arguments)
            if signature not in self._functions and (function := load(self.cache, arguments)) is not None:
                self._functions[signature] = function
                self.checks.append((check_of(arguments), function))
            return self._functions.get(signature)
        return None


def signature_of(arguments: tuple[object, ...]) -> bytes:
    """Return the types of arguments as numba writes a signature."""
    types = [written(each).repr for each in arguments]
    return f"({', '.join(types)}{',' * (len(types) == 1)})".encode()


def _is_disabled() -> bool:
    """Return True if a program asks numba to leave functions as they are; the variable is among the settings."""
    config = getattr(sys.modules.get("numba"), "config", None)
    return bool(getattr(config, "DISABLE_JIT", False))


def _dispatcher_of(kernel: Kernel) -> Function:
    """Return numba's dispatcher, which is called from now on."""
    kernel.run = function = kernel.dispatcher
    return cast("Function", function)


@cache
def is_possible() -> bool:
    """Return True if machine code is known and nothing of numba is set."""
    is_set = any(name.startswith("NUMBA_") and name not in SETTINGS for name in os.environ)
    is_linux = sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64")
    return is_linux and not is_set and not os.path.exists(SETTINGS_FILE)


def load(cache: KernelCache, arguments: tuple[object, ...]) -> Function | None:
    """Load the compiled function of a kernel for arguments of these types; None if only numba can."""
    with contextlib.suppress(Exception):  # `NeedsNumbaError`, and what other versions of numba may do otherwise
        for payload in cache.payloads(signature_of(arguments), Host()):
            return linked(read(payload), cache)
    return None


class Host:
    """The processor as numba's code generator describes it."""

    @staticmethod
    @cache
    def magic_tuple() -> tuple[str, str, str]:
        return llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


class Stored(NamedTuple):
    """The content of a kernel's file: machine code, its function, and the objects that it refers to.

    The objects are constants in environments, each with a variable that points to it; one is that of the function.
    """

    code: bytes
    function: str
    environments: dict[str, list[object]]
    environment: str


class _Environment(NamedTuple):
    """An environment as it was pickled."""

    module: str
    constants: list[object]
    name: str


class _Object:
    """Stands in for an object of numba that is of no interest here, or for its class: what was pickled of it."""

    state: Any = None

    def __new__(cls, *_: object) -> _Object:
        return object.__new__(cls)

    def __init__(self, *_: object) -> None:
        """Take any arguments."""

    def __setstate__(self, state: object) -> None:
        self.state = state


class Unpickler(pickle.Unpickler):
    """Reads a file of a kernel without the modules that it names; nothing but this is called."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("numba.core.environment", "_rebuild_env"):
            return _Environment
        return super().find_class(module, name) if (module, name) == ("numpy", "dtype") else _Object


def read(payload: bytes) -> Stored:
    """Return what is needed of the content of a file."""
    try:
        parts = Unpickler(io.BytesIO(payload)).load()
        (_, kind, (code, _)), descriptor, environment, _, object_mode, lifted, _, reload, others = parts
        about = descriptor.state[1]
        environments = {each.name: each.constants for each in (*others, environment)}
        constants = [each for listed in environments.values() for each in listed]
        if kind == "object" and not (object_mode or lifted or reload or any(map(_is_foreign, constants))):
            return Stored(code, about["mangled_name"], environments, environment.name)
    except Exception as error:  # whatever pickle meets in a file of another world
        raise NeedsNumbaError from error
    raise NeedsNumbaError


def _is_foreign(constant: object) -> bool:
    return not isinstance(constant, np.dtype)


def linked(stored: Stored, cache: KernelCache) -> Function:
    """Link the machine code of a kernel and return the function that calls it."""
    module, name = cache.kernel
    wrapper = f"_ZN7cpython{stored.function.removeprefix('_ZN')}"
    addresses = link(stored.code, wrapper, stored.environments)
    dynamic = _extensions()["_dynfunc"]
    environments = {each: dynamic.Environment({}) for each in stored.environments}  # no globals: code has its constants
    for each, constants in stored.environments.items():
        environments[each].consts[:] = constants
        ctypes.c_void_p.from_address(addresses[each]).value = id(environments[each])
    _IMMORTAL.append(environments)
    function = name.rpartition(".")[2]
    own = environments[stored.environment]
    made: Function = dynamic.make_function(
        sys.modules[module], function, f"compiled wrapper for {name!r}", addresses[wrapper], own, ()
    )
    return made


_IMMORTAL: list[object] = []  # machine code is never unloaded, and neither is what it points to


def link(code: bytes, function: str, variables: Mapping[str, object]) -> dict[str, int]:
    """Return the addresses of a function and of variables in an object file, linked to what the process has.

    Args:
        code: an object file.
        function: the function to look up.
        variables: the variables to look up, by name.

    Returns:
        An address for each of these names.
    """
    symbols = symbols_of(code)
    if symbols is None or not symbols.defined.issuperset([function, *variables]):
        raise NeedsNumbaError
    declare_symbols()
    engine = _engine()
    if not all(map(llvm.address_of_symbol, symbols.missing)):  # LLVM would end the process
        raise NeedsNumbaError
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    addresses = {name: engine.get_global_value_address(name) for name in variables}
    addresses[function] = engine.get_function_address(function)
    _IMMORTAL.append(engine)
    return addresses


def _engine() -> Any:
    """Return an engine of its own for each object file: names of helpers may occur in several, for different code."""
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(jit=True)
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)


@cache
def declare_symbols() -> None:
    """Tell LLVM what numba tells it: the addresses of numba's functions, of None and of the exceptions."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for name, address in dict(numba_symbols()).items():
        llvm.add_symbol(name, address)


def numba_symbols() -> Iterator[tuple[str, int]]:
    """Yield the symbols that numba declares, with their addresses."""
    yield "_Py_NoneStruct", id(None)
    for kind in vars(builtins).values():
        if isinstance(kind, type) and issubclass(kind, BaseException):
            yield f"PyExc_{kind.__name__}", id(kind)
    helpers = _extensions()["_helperlib"].c_helpers
    for name, address in (helpers | _extensions()["_dynfunc"].c_helpers).items():
        yield f"numba_{name}", address
    for name in MATH:
        yield name, helpers[name]
    for name, address in _extensions()["core.runtime._nrt_python"].c_helpers.items():
        yield name if name.startswith("_") else f"NRT_{name}", address


@cache
def _extensions() -> dict[str, Any]:
    """Return numba's C extensions, by name."""
    return {name: _extension(name) for name in ("_helperlib", "_dynfunc", "core.runtime._nrt_python")}


def _extension(name: str) -> Any:
    """Import a C extension of numba without the package around it, which finds the same one when it is imported."""
    full, path = f"numba.{name}", numba_folder().joinpath(*name.split("."))
    if full in sys.modules:
        return sys.modules[full]
    for file in (Path(f"{path}{suffix}") for suffix in EXTENSION_SUFFIXES):
        if file.exists():
            loader = ExtensionFileLoader(full, str(file))
            spec = spec_from_file_location(full, file, loader=loader)
            assert spec is not None
            module = module_from_spec(spec)
            loader.exec_module(module)
            sys.modules.pop(full, None)
            return module
    raise NeedsNumbaError
