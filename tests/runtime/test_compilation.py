"""Every kernel states how it is compiled; nothing is left to the caller that happens to compile it first."""

from __future__ import annotations

import ast
import gc
import importlib
import inspect
import os
import pickle
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba.core import cpu, targetconfig
from numba.core.compiler import Flags

import trelliswork
from trelliswork.runtime.compilation import (
    EXACT,
    FAST,
    FAST_WITH_NAN,
    ORDERED,
    Kernel,
    kernel,
    options,
    overload,
)
from trelliswork.runtime.compiler import WithoutCollection
from trelliswork.runtime.kernel_math import exp, right_padded

PACKAGE = Path(trelliswork.__file__).parent
DECORATORS = {
    "njit",
    "jit",
    "vectorize",
    "guvectorize",
    "cfunc",
    "stencil",
    "overload",
    "intrinsic",
    "register_jitable",
    "generated_jit",
}


def modules() -> list[str]:
    found = pkgutil.walk_packages([str(PACKAGE)], "trelliswork.")
    return [each.name for each in found if not each.name.endswith("__main__")]


def dispatchers() -> dict[str, Any]:
    """Every compiled function of the package, by its full name."""
    found = {}
    for name in modules():
        for each in vars(importlib.import_module(name)).values():
            if isinstance(each, Kernel) and each.py_func.__module__.startswith("trelliswork."):
                found[f"{each.py_func.__module__}.{each.py_func.__qualname__}"] = each
    return found


def inherited(given: dict[str, Any]) -> set[str]:
    """The flags that a function with these options takes over from a caller with other ones."""
    caller = Flags()
    cpu.CPUTargetOptions.parse_as_flags(caller, dict(fastmath=True, error_model="numpy", forceinline=True))
    with targetconfig.ConfigStack().enter(caller):
        inside = cpu.CPUTargetOptions.parse_as_flags(Flags(), dict(given))
    outside = cpu.CPUTargetOptions.parse_as_flags(Flags(), dict(given))
    names = ("fastmath", "error_model", "forceinline", "nrt", "boundscheck")
    return {name for name in names if getattr(inside, name) != getattr(outside, name)}


def test_no_kernel_leaves_an_option_to_its_caller() -> None:
    found = dispatchers()
    assert len(found) > 400
    assert {name: inherited(each.targetoptions) for name, each in found.items() if inherited(each.targetoptions)} == {}
    inlined = [name for name, each in found.items() if each.targetoptions.get("inline", "never") != "never"]
    assert inlined == [], "numba's own inlining gives a helper the arithmetic of its caller"


def test_no_kernel_takes_a_star() -> None:
    """Compiled code and Python give `*arguments` different types: one is cached, the other loaded at every call."""
    flagged = [name for name, each in dispatchers().items() if each.py_func.__code__.co_flags & inspect.CO_VARARGS]
    assert flagged == []


def test_the_check_sees_what_is_inherited() -> None:
    assert inherited({"nopython": True}) == {"fastmath", "error_model", "forceinline"}
    assert inherited({"nopython": True, "error_model": "numpy"}) == {"fastmath", "forceinline"}
    assert inherited({**options(EXACT), "nopython": True}) == set()


def numba_decorators(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "numba":
            yield from (alias.name for alias in node.names if alias.name in DECORATORS)
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("numba", "extending", "numba.extending"):
            yield from {node.attr} & DECORATORS


def test_decorators_of_numba_are_used_in_one_file() -> None:
    users = {
        str(file.relative_to(PACKAGE)) for file in PACKAGE.rglob("*.py") if [*numba_decorators(file.read_text("utf-8"))]
    }
    assert users == {"runtime/compiler.py"}
    assert [*numba_decorators("from numba import njit\nimport numba\nnumba.vectorize")] == ["njit", "vectorize"]


@kernel(EXACT)
def _count_nans(row):  # type: ignore[no-untyped-def]
    found = 0
    for i in range(row.shape[0]):
        found += not (row[i] < np.inf)
    return found


@kernel(FAST)
def _from_fast_code(row):  # type: ignore[no-untyped-def]
    return _count_nans(row)


def test_a_check_for_nan_survives_a_fast_caller() -> None:
    """The first compilation of `_count_nans` happens inside a kernel that assumes there is no NaN."""
    row = np.array([1.0, np.nan, np.inf, -np.inf])
    assert _from_fast_code(row) == 2
    assert _count_nans(row) == 2


@overload(EXACT, inline=True)
def _value(x):  # type: ignore[no-untyped-def]
    return lambda x: x if x == x else -1.0


@kernel(FAST)
def _overloaded(x):  # type: ignore[no-untyped-def]
    return _value(x)


def test_an_overload_keeps_its_own_arithmetic() -> None:
    assert _overloaded(np.nan) == -1.0
    with pytest.raises(NotImplementedError, match="_value can only be called by kernels"):
        _value(1.0)


@pytest.mark.parametrize("arithmetic", [EXACT, ORDERED, FAST, FAST_WITH_NAN])
def test_infinities_are_scores_in_every_arithmetic(arithmetic: frozenset[str]) -> None:
    assert "ninf" not in arithmetic and "fast" not in arithmetic


def test_the_exponential_keeps_its_digits_inside_fast_code() -> None:
    """Its two-part reduction would lose digits if the caller's licence to reassociate reached it."""
    from trelliswork.runtime.kernel_math import log

    @numba.njit(fastmath=True, error_model="numpy", forceinline=False)
    def exps(row):  # type: ignore[no-untyped-def]
        return np.array([exp(x) for x in row])

    @numba.njit(fastmath=True, error_model="numpy", forceinline=False)
    def logs(row):  # type: ignore[no-untyped-def]
        return np.array([log(x) for x in row])

    row = -np.random.default_rng(0).uniform(0, 700, 20_000)
    np.testing.assert_allclose(exps(row), np.exp(row), rtol=4.5e-16, atol=0)
    np.testing.assert_allclose(logs(-row), np.log(-row), rtol=4.5e-16, atol=0)


@kernel(EXACT)
def shifted(x, by):
    return x + by


@kernel(EXACT)
def shifted_twice(x, by):
    return shifted(shifted(x, 1), by)


def test_a_number_that_is_written_out_compiles_nothing_of_its_own() -> None:
    shifted_twice._cache.flush()
    assert shifted_twice.dispatcher(3, 4) == 8
    assert len(shifted.helper.signatures) == 1


@kernel(EXACT)
def doubled(x):
    return x + x


@kernel(EXACT)
def doubled_twice(x):
    return doubled(doubled(x))


def test_what_only_kernels_call_has_no_wrapper_for_python() -> None:
    def has_wrapper(dispatcher: Any) -> bool:
        (compiled,) = dispatcher.overloads.values()
        return any("cpython" in function.name for function in compiled.library.get_defined_functions())

    for each in (doubled_twice.dispatcher, doubled.dispatcher, doubled.helper):
        each._cache.flush()
    assert doubled_twice(3.0) == 12.0 and doubled(3.0) == 6.0, "Python may call both all the same"
    doubled_twice.dispatcher(3.0), doubled.dispatcher(3.0)
    assert has_wrapper(doubled_twice.dispatcher) and has_wrapper(doubled.dispatcher)
    assert not has_wrapper(doubled.helper)
    assert right_padded._numba_type_.dispatcher is right_padded.dispatcher, "a listed entry has one dispatcher for both"


@kernel(EXACT)
def signed(x, negative):
    return -x if negative else x


@kernel(EXACT)
def signed_twice(x, negative):
    return signed(signed(x, True), negative)


def test_a_bool_that_is_written_out_compiles_nothing_of_its_own() -> None:
    signed_twice._cache.flush()
    assert signed_twice.dispatcher(3, True) == 3
    assert len(signed.helper.signatures) == 1


@pytest.mark.parametrize("enabled", [True, False])
def test_compiling_leaves_garbage_collection_as_it_was(enabled: bool) -> None:
    before, listener = gc.isenabled(), WithoutCollection()
    try:
        (gc.enable if enabled else gc.disable)()
        for event in ("on_start", "on_start", "on_end"):
            getattr(listener, event)(None)
            assert not gc.isenabled()
        listener.on_end(None)
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if before else gc.disable)()


def run(code: str, **environment: str) -> str:
    """What a new process prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


IMPORT_ALL = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
print([module for module in ("numba", "llvmlite") if module in sys.modules])
"""


def test_modules_of_kernels_are_imported_without_numba() -> None:
    owners = {each.__module__ for each in dispatchers().values()}
    assert len(owners) > 70
    done = subprocess.run([sys.executable, "-c", IMPORT_ALL, *owners], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_kernel_is_pickled_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(shifted)) is shifted


def test_a_kernel_reads_like_its_function() -> None:
    assert str(inspect.signature(shifted)) == "(x, by)"
    assert (shifted.__name__, shifted.__module__) == ("shifted", __name__)


def test_threads_that_call_a_kernel_first_share_its_dispatcher() -> None:
    for _ in range(20):
        fresh = kernel(EXACT)(shifted.py_func)
        with ThreadPoolExecutor(4) as pool:
            made = [*pool.map(getattr, [fresh] * 8, ["dispatcher"] * 8, timeout=60)]
        assert len(set(map(id, made))) == 1


def test_a_kernel_that_is_given_to_a_kernel_is_called_there() -> None:
    assert _applied(shifted, 3) == 4


@kernel(EXACT)
def _applied(function, x):  # type: ignore[no-untyped-def]
    return function(x, 1)


def test_without_compiling_kernels_are_functions() -> None:
    code = "from trelliswork.structures.frontier_kernels import offer; print(offer.dispatcher is offer.py_func)"
    assert run(code, NUMBA_DISABLE_JIT="1") == "True"
