"""How kernels are compiled: every option is stated here, none is left to whoever calls a kernel first.

numba lets a function *inherit* `fastmath`, `error_model` and `forceinline` from the caller that first compiles it when
it does not set them. A check for NaN compiled that way inside a kernel that assumes there are none is optimised away.
So each kernel names one of the sets below, which give all three. `docs/decisions/0022-kernel-options.md` has the story.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import partial
from typing import Any

import numba
from numba import extending, types
from numba.core import event

from trelliswork.runtime.kernel_cache import KernelCache

# How far LLVM may depart from the arithmetic as written. Never `ninf`: -inf is a score like any other.
Arithmetic = frozenset[str]
EXACT: Arithmetic = frozenset()  # as written; NaN and infinities behave
ORDERED: Arithmetic = frozenset({"contract", "nsz", "nnan"})  # sums keep their order; there is no NaN
FAST: Arithmetic = ORDERED | {"reassoc", "arcp"}  # sums in any order, for vector registers; there is no NaN
FAST_WITH_NAN: Arithmetic = FAST - {"nnan"}


def kernel(arithmetic: Arithmetic, *, inline: bool = False) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function with numba when it is first called, and keep the machine code on disk.

    `inline` makes it part of every caller's loop, with its own arithmetic. (numba's `inline="always"` would copy the
    source into the caller and give it the caller's arithmetic.)

        @kernel(FAST)
        def total(row):
            ...
    """

    def decorate(function: Callable[..., Any]) -> Any:
        compiled = numba.njit(**options(arithmetic, inline))(function)
        if hasattr(compiled, "_cache"):  # not under NUMBA_DISABLE_JIT
            compiled._cache = KernelCache(function, arithmetic)
            compiled.get_call_template = partial(_call_with_variables, compiled.get_call_template)
        return compiled

    return decorate


def _call_with_variables(template_of: Callable[..., Any], arguments: Any, keywords: Any) -> Any:
    """How kernels call a kernel: what is written out, as in `fill(0, n, True)`, is a number or a bool like any other.

    numba would compile the kernel once for 0 and once for variables.
    """
    return template_of(
        tuple(map(_variable, arguments)), {name: _variable(each) for name, each in dict(keywords).items()}
    )


def _variable(kind: Any) -> Any:
    return types.unliteral(kind) if isinstance(kind, types.IntegerLiteral | types.BooleanLiteral) else kind


def overload(
    function: Callable[..., Any], arithmetic: Arithmetic, *, inline: bool = False
) -> Callable[[Callable[..., Any]], Any]:
    """numba's `overload`, an implementation chosen by the types of the arguments, with the options of `kernel`."""
    return extending.overload(function, jit_options=options(arithmetic, inline))


def options(arithmetic: Arithmetic, inline: bool = False) -> Any:
    """The options for numba; all that could be inherited are among them.

    No kernel is handed to C, which is all that a `cfunc` wrapper is compiled for.
    """
    fastmath = set(arithmetic) if arithmetic else False
    return dict(
        fastmath=fastmath, error_model="numpy", forceinline=inline, nogil=True, boundscheck=False, no_cfunc_wrapper=True
    )


class WithoutCollection(event.Listener):
    """No garbage collection while a kernel is compiled.

    A compiler makes objects by the million and keeps most of them, so that collections find little and take a sixth of
    the time.
    """

    def __init__(self) -> None:
        self.depth, self.was_enabled = 0, False

    def on_start(self, event: Any) -> None:
        if self.depth == 0:
            self.was_enabled = gc.isenabled()
            gc.disable()
        self.depth += 1

    def on_end(self, event: Any) -> None:
        self.depth -= 1
        if self.depth == 0 and self.was_enabled:
            gc.enable()


event.register("numba:compile", WithoutCollection())
