"""Everything that needs numba: dispatchers of kernels, overloads, intrinsics. The first call of a kernel imports it."""

from __future__ import annotations

import gc
import json
from collections.abc import Mapping
from functools import cache, partial
from typing import Any

import numba
from numba import extending, types
from numba.core import event
from numba.core.typing.templates import infer, infer_global, make_intrinsic_template

from trelliswork.runtime import turns
from trelliswork.runtime.compilation import Arithmetic, Function, options
from trelliswork.runtime.entries import LISTED
from trelliswork.runtime.turns import SharedCache


def dispatcher_of(function: Function, arithmetic: Arithmetic, inline: bool) -> Any:
    """Return the dispatcher of a kernel; the function itself under NUMBA_DISABLE_JIT.

    Args:
        function: the Python function of the kernel.
        arithmetic: what the compiler may do with floats, such as EXACT.
        inline: whether the code is copied into the kernels that call it.

    Returns:
        What Python calls.
    """
    return _dispatcher(function, SharedCache(function, arithmetic), **options(arithmetic, inline))


def helper_of(function: Function, arithmetic: Arithmetic, inline: bool) -> Any:
    """Return the dispatcher of a kernel that only kernels call: it has no wrapper for Python, a seventh of the work.

    Args:
        function: the Python function of the kernel.
        arithmetic: what the compiler may do with floats, such as EXACT.
        inline: whether the code is copied into the kernels that call it.

    Returns:
        What kernels call.
    """
    cache = SharedCache(function, arithmetic, for_kernels=True)
    return _dispatcher(function, cache, **options(arithmetic, inline), no_cpython_wrapper=True)


def is_entry(function: Function) -> bool:
    """Return True if Python calls the kernel: it is listed in `entries.json`."""
    return f"{function.__module__}:{function.__qualname__}" in _listed()


@cache
def _listed() -> frozenset[str]:
    return frozenset(json.loads(LISTED.read_text(encoding="utf-8")))


def _dispatcher(function: Function, cache: SharedCache, **chosen: Any) -> Any:
    compiled = numba.njit(**chosen)(function)
    if hasattr(compiled, "_cache"):
        compiled._cache = cache
        compiled.get_call_template = partial(_call_with_variables, compiled.get_call_template)
    return compiled


def add_overload(function: Function, choose: Function, arithmetic: Arithmetic, inline: bool) -> None:
    """Tell numba which implementation of a function kernels call.

    Args:
        function: the function that kernels call.
        choose: a function from the types of the arguments to an implementation.
        arithmetic: what the compiler may do with floats, such as EXACT.
        inline: whether the code is copied into the kernels that call it.
    """
    extending.overload(function, jit_options=options(arithmetic, inline) | {"no_cpython_wrapper": True})(choose)


def add_intrinsic(definition: Function) -> None:
    """Do what `numba.extending.intrinsic` does, with the definition in place of a new object under its name."""
    template = make_intrinsic_template(definition, definition, definition.__name__)
    infer(template)
    infer_global(definition, types.Function(template))


def _call_with_variables(
    template_of: Function, arguments: tuple[types.Type, ...], keywords: Mapping[str, types.Type]
) -> Any:
    """Take what a kernel writes out in a call of a kernel, as in `fill(0, n, True)`, for a number or a bool like any.

    numba would compile the kernel once for 0 and once for variables.
    """
    return template_of(
        tuple(map(_variable, arguments)), {name: _variable(each) for name, each in dict(keywords).items()}
    )


def _variable(kind: types.Type) -> types.Type:
    return types.unliteral(kind) if isinstance(kind, types.IntegerLiteral | types.BooleanLiteral) else kind


class WithoutCollection(event.Listener):
    """No garbage collection while a kernel is compiled.

    A compiler makes objects by the million and keeps most of them, so that collections find little and take a sixth of
    the time.
    """

    def __init__(self) -> None:
        self.depth, self.was_enabled = 0, False

    def on_start(self, event: object) -> None:
        if self.depth == 0:
            self.was_enabled = gc.isenabled()
            gc.disable()
        self.depth += 1

    def on_end(self, event: object) -> None:
        self.depth -= 1
        if self.depth == 0 and self.was_enabled:
            gc.enable()


class EndOfTurns(event.Listener):
    """A kernel that does not compile is not saved, and neither are those that call it: nobody need wait for them."""

    def on_start(self, event: object) -> None:
        """Do nothing."""

    def on_end(self, event: Any) -> None:
        if event._exc_details is not None:  # `is_failed` of numba 0.68 says the opposite
            turns.end()


event.register("numba:compile", WithoutCollection())
event.register("numba:compile", EndOfTurns())
