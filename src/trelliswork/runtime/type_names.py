"""The types of a kernel's arguments as numba writes them, without numba: they are part of the names of files.

A type that is not known here is left to numba.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from trelliswork.runtime.arrays import Array

_ELEMENTS = {
    np.dtype(name): name
    for name in (
        "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64",
    )
}  # fmt: skip
_NUMBERS: dict[type, str] = {int: "int64", float: "float64", bool: "bool"} | {
    kind.type: name for kind, name in _ELEMENTS.items()
}
_C, _F, _ALIGNED, _WRITEABLE = 0x001, 0x002, 0x100, 0x400  # of the flags of an array
_FLAGS = _C | _F | _ALIGNED | _WRITEABLE
_LARGEST = 2**63 - 1


class UnknownTypeError(Exception):
    """A value whose type only numba knows."""


class Written(NamedTuple):
    """A type as numba's `repr` and as its `str` write it."""

    repr: str
    name: str


def check_of(arguments: tuple[object, ...]) -> Callable[[tuple[object, ...]], bool]:
    """Return a function that says, in a fraction of a microsecond, whether other arguments have the types of these.

    It may say no of arguments that do: NumPy can have several objects for one dtype.
    """
    names: dict[str, object] = {}
    conditions = " and ".join(_conditions(arguments, "given", names))
    check: Callable[[tuple[object, ...]], bool] = eval(f"lambda given: {conditions}", names)
    return check


def _conditions(value: Any, place: str, names: dict[str, object]) -> Iterator[str]:
    """Yield what holds of values of this type, in Python; `names` takes the objects that are compared."""

    def named(each: object) -> str:
        name = f"object_{id(each)}"
        names[name] = each
        return name

    yield f"type({place}) is {named(type(value))}"
    if type(value) is np.ndarray:
        flags = f"{place}.flags.num & {_FLAGS} == {value.flags.num & _FLAGS}"
        yield f"{place}.dtype is {named(value.dtype)} and {place}.ndim == {value.ndim} and {flags}"
    elif type(value) is int:
        yield f"{-_LARGEST} <= {place} <= {_LARGEST}"
    elif isinstance(value, tuple):
        yield f"len({place}) == {len(value)}"
        for i, field in enumerate(value):
            yield from _conditions(field, f"{place}[{i}]", names)


def written(value: Any) -> Written:
    """Return the type of an argument."""
    kind = type(value)
    if kind is np.ndarray:
        return _array(value)
    if issubclass(kind, tuple):
        return _tuple(kind, [written(field) for field in value])
    if kind not in _NUMBERS or (kind is int and not -_LARGEST <= value <= _LARGEST):
        raise UnknownTypeError
    return Written(_NUMBERS[kind], _NUMBERS[kind])


def _array(value: Array) -> Written:
    flags = value.flags.num
    element = _ELEMENTS.get(value.dtype)
    if element is None or not value.dtype.isnative or not flags & _ALIGNED:
        raise UnknownTypeError
    layout = "C" if flags & _C else "F" if flags & _F else "A"
    readonly = not flags & _WRITEABLE
    name = f"{'readonly ' if readonly else ''}array({element}, {value.ndim}d, {layout})"
    return Written(f"Array({element}, {value.ndim}, '{layout}', {readonly}, aligned=True)", name)


def _tuple(kind: type, fields: list[Written]) -> Written:
    if not fields:
        raise UnknownTypeError
    first, n, names = fields[0], len(fields), ", ".join(field.name for field in fields)
    alike = all(field == first for field in fields)
    if hasattr(kind, "_fields"):
        name = f"{kind.__name__}({first.name} x {n})" if alike else f"{kind.__name__}({names})"
        return Written(name, name)
    if kind is not tuple:
        raise UnknownTypeError
    if alike:
        return Written(f"UniTuple({first.repr}, {n})", f"UniTuple({first.name} x {n})")
    return Written(f"Tuple(({', '.join(field.repr for field in fields)}))", f"Tuple({names})")
