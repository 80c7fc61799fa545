"""Options of compiled kernels: each is stated here, none is left to whoever calls a kernel first.

numba lets a function *inherit* `fastmath`, `error_model` and `forceinline` from the caller that first compiles it when
it does not set them. A check for NaN compiled that way inside a kernel that assumes there are none is optimised away.
So each kernel names one of the sets below, which give all three. `docs/decisions/0022-kernel-options.md` has the story.

numba itself is imported by the first kernel that is called (`compiler.py`), not by the modules that define kernels:
`docs/decisions/0058-light.md`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, update_wrapper, wraps
from threading import RLock
from typing import Any

from trelliswork.lazy import lazy_module

Function = Callable[..., Any]  # Python's or compiled: the types of kernels are inferred by numba

# How far LLVM may depart from the arithmetic as written. Never `ninf`: -inf is a score like any other.
Arithmetic = frozenset[str]
EXACT: Arithmetic = frozenset()  # as written; NaN and infinities behave
ORDERED: Arithmetic = frozenset({"contract", "nsz", "nnan"})  # sums keep their order; there is no NaN
FAST: Arithmetic = ORDERED | {"reassoc", "arcp"}  # sums in any order, for vector registers; there is no NaN
FAST_WITH_NAN: Arithmetic = FAST - {"nnan"}

_compiler, _light = lazy_module("trelliswork.runtime.compiler"), lazy_module("trelliswork.runtime.light")
_building = RLock()  # a kernel has one dispatcher, whichever threads call it first
_unregistered: list[Callable[[], object]] = []  # overloads and intrinsics that numba has not been given yet


class Kernel:
    """A function that numba compiles: it has every attribute of a numba dispatcher, made when one is first needed.

    numba takes it for a dispatcher when another kernel calls it (`_numba_type_`): its own if Python calls it as well,
    otherwise one that is compiled for kernels only.

    Args:
        function: the Python function.
        arithmetic: what the compiler may do with floats, such as EXACT.
        inline: whether the code is copied into the kernels that call it.
    """

    dispatcher: Any
    helper: Any
    run: Function  # cached machine code without numba (`light.py`), or the dispatcher

    def __init__(self, function: Function, arithmetic: Arithmetic, inline: bool) -> None:
        update_wrapper(self, function)
        self.py_func, self._arithmetic, self._inline = function, arithmetic, inline

    def __call__(self, *arguments: object, **keywords: object) -> Any:
        return self.run(*arguments, **keywords)

    def __getattr__(self, name: str) -> Any:
        """Return what the dispatcher has; what is annotated above is missing only until it is made here."""
        if name.startswith("__"):  # asked of every object by pickle, inspect and others
            raise AttributeError(name)
        if name == "_numba_type_":
            return (self.dispatcher if _compiler.is_entry(self.py_func) else self.helper)._numba_type_
        if name not in ("dispatcher", "helper", "run"):
            return getattr(self.dispatcher, name)
        with _building:
            if name == "run":
                self.run = _light.entry(self, self._arithmetic)
                return self.run
            while _unregistered:
                _unregistered.pop()()
            if name not in vars(self):
                make = _compiler.dispatcher_of if name == "dispatcher" else _compiler.helper_of
                vars(self)[name] = make(self.py_func, self._arithmetic, self._inline)
        return vars(self)[name]

    def __reduce__(self) -> str:
        return self.py_func.__qualname__  # pickled by its name, as functions are


def kernel(arithmetic: Arithmetic, *, inline: bool = False) -> Callable[[Function], Any]:
    """Compile a function with numba when it is first called, and keep the machine code on disk.

    `inline` makes it part of every caller's loop, with its own arithmetic. (numba's `inline="always"` would copy the
    source into the caller and give it the caller's arithmetic.)

        @kernel(FAST)
        def total(row):
            ...
    """
    return partial(Kernel, arithmetic=arithmetic, inline=inline)


def overload(arithmetic: Arithmetic, *, inline: bool = False) -> Callable[[Function], Function]:
    """Do numba's `overload`: the definition returns an implementation by the types of the arguments.

    It has the options of `kernel`, and is for kernels only: Python has no types to choose by.
    """

    def decorate(choose: Function) -> Function:
        @wraps(choose)
        def chosen(*arguments: object) -> None:
            raise NotImplementedError(f"{choose.__name__} can only be called by kernels")

        _unregistered.append(lambda: _compiler.add_overload(chosen, choose, arithmetic, inline))
        return chosen

    return decorate


def intrinsic(definition: Function) -> Function:
    """Return numba's `intrinsic`: the definition writes the instructions of LLVM itself. For kernels only."""
    _unregistered.append(lambda: _compiler.add_intrinsic(definition))
    return definition


def before_compiling(call: Callable[[], object]) -> None:
    """Have something done when the first kernel is called that needs numba; what imports numba, say."""
    _unregistered.append(call)


def options(arithmetic: Arithmetic, inline: bool = False) -> Any:
    """Return the options for numba; all that could be inherited are among them.

    No kernel is handed to C, which is all that a `cfunc` wrapper is compiled for.
    """
    fastmath = set(arithmetic) if arithmetic else False
    return dict(
        fastmath=fastmath, error_model="numpy", forceinline=inline, nogil=True, boundscheck=False, no_cfunc_wrapper=True
    )
