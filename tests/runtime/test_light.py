"""Cached kernels without numba: the same types, symbols, answers and errors as with it, and numba for all else."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numba
import numpy as np
import pytest
from numba.core import intrinsics
from numba.core.registry import cpu_target

from trelliswork.runtime import light
from trelliswork.runtime.compilation import EXACT, Kernel, kernel
from trelliswork.runtime.entries import read_entries
from trelliswork.runtime.kernel_cache import PACKAGE, SUFFIX, numba_version
from trelliswork.runtime.light import symbols_of
from trelliswork.runtime.type_names import UnknownTypeError, check_of, written

pytestmark = pytest.mark.skipif(not light.is_possible(), reason="numba calls the kernels of this machine")
Pair = namedtuple("Pair", ["left", "right"])
ROW = np.arange(6.0)
READONLY = np.arange(3)
READONLY.flags.writeable = False
VALUES = [
    1, -(2**40), True, 0.5, np.float32(1), np.int64(3), np.uint8(3), np.bool_(True), ROW, ROW.astype(np.float32),
    ROW.reshape(2, 3), ROW.reshape(2, 3).T, ROW[::2], ROW.reshape(2, 3)[:, :2], READONLY, np.zeros((2, 0), np.bool_),
    np.zeros(()), ROW.astype(np.uint16), (1, 2), (1, 0.5), (ROW, ROW), ((1, ROW), (2, ROW)), Pair(1, ROW),
    Pair(ROW, ROW), (Pair(READONLY, ROW), 1), Pair((1, 2), Pair(ROW, 1)),
]  # fmt: skip
UNKNOWN = [
    "text", None, 2**64, 2**63, -(2**63) - 1, [1.0], (), ROW.astype(">f8"), np.zeros(2, "U3"), ROW.astype(complex),
    np.ma.array([1.0]), np.frombuffer(bytes(17), np.uint8)[1:].view(np.float64), (1, "text"), range(3),
]  # fmt: skip


@kernel(EXACT)
def _describe(row, scale):
    """Return a bit of everything: an array, a number, a bool and None."""
    if scale < 0:
        raise ValueError("below zero")
    return row * scale, row.sum(), scale > 1.0


@kernel(EXACT)
def _fill(rows, value):
    for row in rows:
        row[:] = value


@kernel(EXACT)
def _pair(pair, offset):
    return Pair(pair.left + offset, pair.right.sum() * offset)


@pytest.fixture(autouse=True)
def few_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests of this process may have called kernels so often that numba has taken over."""
    monkeypatch.setattr(light, "_calls", count())


def fresh(function: Kernel) -> Kernel:
    """The kernel as a new process has it."""
    return Kernel(function.py_func, EXACT, False)


def is_light(function: Kernel) -> bool:
    return "dispatcher" not in vars(function)


@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(numba.typeof(value)))
def test_types_are_written_as_numba_writes_them(value: Any) -> None:
    assert written(value) == (repr(numba.typeof(value)), str(numba.typeof(value)))


@pytest.mark.parametrize("value", UNKNOWN, ids=repr)
def test_other_types_are_left_to_numba(value: Any) -> None:
    with pytest.raises(UnknownTypeError):
        written(value)


def test_a_check_takes_values_of_equal_types_and_no_others() -> None:
    kinds = [numba.typeof(value) for value in VALUES]
    for i, first in enumerate(VALUES):
        check = check_of((first,))
        assert [check((other,)) for other in VALUES] == [
            kind == kinds[i] and type(other) is type(first) for kind, other in zip(kinds, VALUES, strict=True)
        ]
        assert not any(check((other,)) for other in UNKNOWN) and not check((first, first)) and not check(())


def test_the_key_of_a_file_is_that_of_numba() -> None:
    assert light.Host.magic_tuple() == cpu_target.target_context.codegen().magic_tuple()
    assert numba_version() == numba.__version__
    code = "import sys; from trelliswork.runtime import kernel_cache; "
    code += "print(kernel_cache.numba_version(), 'numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == [numba.__version__, "False"]


def test_symbols_have_the_addresses_that_numba_gives_them() -> None:
    cpu_target.target_context.refresh()
    assert set(light.MATH) == set(intrinsics.INTR_MATH)
    ours = dict(light.numba_symbols())
    assert {name: llvm.address_of_symbol(name) for name in ours} == ours


@pytest.mark.parametrize("scale", [0.5, 3.0])
def test_answers_are_those_of_numba(scale: float) -> None:
    _describe.dispatcher(ROW, scale)
    ours = fresh(_describe)
    (array, total, more), expected = ours(ROW, scale), _describe.dispatcher(ROW, scale)
    assert is_light(ours)
    np.testing.assert_array_equal(array, expected[0])
    assert array.flags.owndata == expected[0].flags.owndata and array.dtype == expected[0].dtype
    assert (total, more) == expected[1:] and type(total) is float and type(more) is bool


def test_errors_and_named_tuples_are_those_of_numba() -> None:
    _describe.dispatcher(ROW, 1.0)
    _pair.dispatcher(Pair(1, ROW), 2)
    described, paired = fresh(_describe), fresh(_pair)
    with pytest.raises(ValueError, match="below zero"):
        described(ROW, -1.0)
    assert paired(Pair(1, ROW), 2) == Pair(3, 30.0) and type(paired(Pair(1, ROW), 2)) is Pair
    assert is_light(described) and is_light(paired)


def test_what_is_not_cached_or_not_known_is_called_by_numba() -> None:
    rows = np.zeros((2, 3), complex)
    _fill.dispatcher(np.zeros((2, 3)), 2.0)
    filled = fresh(_fill)
    filled(np.zeros((2, 3)), 2.0)
    assert is_light(filled)
    filled(rows, 2.0)
    assert not is_light(filled) and rows.tolist() == [[2] * 3] * 2
    by_name = fresh(_fill)
    by_name(np.zeros((2, 3)), value=2.0)
    assert not is_light(by_name)


def test_numba_takes_over_a_kernel_that_is_called_often(monkeypatch: pytest.MonkeyPatch) -> None:
    _fill.dispatcher(np.zeros((2, 3)), 2.0)
    filled = fresh(_fill)
    filled(np.zeros((2, 3)), 2.0)
    assert is_light(filled)
    monkeypatch.setattr(light, "MOST_CALLS", 0)
    filled(np.zeros((2, 3)), 2.0)
    assert filled.run is filled.dispatcher


def test_arrays_are_not_kept_and_not_freed_early() -> None:
    _describe.dispatcher(ROW, 1.0)
    ours, row = fresh(_describe), np.arange(1000.0)
    before = sys.getrefcount(row)
    kept = [ours(row, 2.0)[0] for _ in range(100)]
    assert is_light(ours) and sys.getrefcount(row) == before
    assert all((each == row * 2.0).all() for each in kept)


def test_threads_load_a_kernel_once(monkeypatch: pytest.MonkeyPatch) -> None:
    _describe.dispatcher(ROW, 1.0)
    ours, loaded, load = fresh(_describe), [], light.load

    def counted(*given: Any) -> Any:
        loaded.append(given)
        return load(*given)

    monkeypatch.setattr(light, "load", counted)
    with ThreadPoolExecutor(8) as pool:
        totals = [*pool.map(lambda scale: ours(ROW, scale)[0].sum(), [1.0, 2.0] * 50, timeout=60)]
    assert totals == [15.0, 30.0] * 50 and len(loaded) == 1


def test_another_object_for_the_same_dtype_loads_nothing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    _describe.dispatcher(ROW, 1.0)
    ours = fresh(_describe)
    ours(ROW, 1.0)
    monkeypatch.setattr(light, "load", None)
    other = ROW.astype(np.dtype("float64", metadata={"unit": "m"}))
    assert other.dtype is not ROW.dtype and ours(other, 2.0)[1] == 15.0 and is_light(ours)


def test_functions_that_numba_is_told_to_leave_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    ours = fresh(_describe)
    assert ours(ROW, 1.0)[1] == 15.0 and ours.run is _describe.py_func


def object_of(function: Kernel) -> bytes:
    """The machine code in its file, which is written again if another process has removed it."""
    dispatcher = fresh(function).dispatcher
    dispatcher.compile("(float64[::1], float64)")
    file = dispatcher._cache.file(dispatcher.signatures[0], dispatcher.targetctx.codegen())
    return light.read(file.read_bytes()[32:]).code


def test_a_missing_symbol_is_seen_before_llvm_sees_it() -> None:
    """LLVM ends the process when it cannot resolve a symbol."""
    code = object_of(_describe)
    symbols = symbols_of(code)
    assert symbols is not None and "NRT_MemInfo_alloc_aligned" in symbols.missing
    wrapper = next(name for name in symbols.defined if name.startswith("_ZN7cpython"))
    assert light.link(code, wrapper, {})[wrapper] > 0
    damaged = code.replace(b"NRT_MemInfo_alloc_aligned", b"XRT_MemInfo_alloc_aligned")
    for unsound, function in ((damaged, wrapper), (code, "no_such_function"), (b"MZ" + code, wrapper)):
        with pytest.raises(light.NeedsNumbaError):
            light.link(unsound, function, {})


def test_a_file_that_names_other_code_runs_nothing(tmp_path: Path) -> None:
    proof = tmp_path / "proof"
    planted = pickle.dumps((proof.touch, ()))
    calling = planted[:-1] + pickle.REDUCE + pickle.STOP
    for payload in (planted, calling, b"", pickle.dumps(Path.touch)):
        with pytest.raises(light.NeedsNumbaError):
            light.read(payload)
    assert not proof.exists()


@pytest.mark.parametrize("setting", [{"NUMBA_DISABLE_JIT": "1"}, {"NUMBA_OPT": "1"}, {"NUMBA_CPU_NAME": "generic"}])
def test_settings_of_numba_are_left_to_numba(setting: dict[str, str]) -> None:
    code = "from trelliswork.runtime import light; print(light.is_possible())"
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, **setting}, capture_output=True, text=True)
    assert done.stdout == "False\n"


def test_numba_that_is_imported_later_finds_its_extensions() -> None:
    """The C extensions are the same, and an array that one has made lives on with the other."""
    code = """
import sys
import numpy as np
from trelliswork.runtime.kernel_math import highest, first_not_a_score
row = np.array([1.0, 3.0, 2.0])
assert highest(row, 3) == 3.0
before = "numba" in sys.modules, [name for name in sys.modules if name.startswith("numba")]
import numba
import numba._helperlib, numba._dynfunc
from numba.core.runtime import rtsys
from trelliswork.runtime import light
ours = light._extensions()
assert numba._helperlib.c_helpers == ours["_helperlib"].c_helpers
assert numba._dynfunc.Environment is ours["_dynfunc"].Environment
assert numba.njit(lambda row: row.sum())(row) == 6.0 and highest.dispatcher(row, 3) == 3.0
assert first_not_a_score((row, row)) == (-1, -1)
print(before)
"""
    warm = "import numpy as np; from trelliswork.runtime.kernel_math import highest; highest.dispatcher(np.ones(1), 1)"
    subprocess.run([sys.executable, "-c", warm], check=True)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "(False, [])\n"), done.stderr


def test_every_cached_kernel_can_be_linked() -> None:
    """No kernel needs a symbol that only numba's Python modules declare."""
    light.declare_symbols()
    missing, needing_numba = set[str](), set[str]()
    for file in PACKAGE.rglob(f"*{SUFFIX}"):
        try:
            stored = light.read(file.read_bytes()[32:])
        except light.NeedsNumbaError:  # it takes another kernel as an argument
            module = ".".join((PACKAGE.name, *file.relative_to(PACKAGE).parts[:-2], file.name.split(".")[0]))
            needing_numba.add(f"{module}:{file.name.split('.')[1].split('-')[0]}")
            continue
        symbols = symbols_of(stored.code)
        assert symbols is not None
        missing |= {name for name in symbols.missing if not llvm.address_of_symbol(name)}
    assert missing == set()
    assert needing_numba & {f"{entry.module}:{entry.name}" for entry in read_entries()} == set()
