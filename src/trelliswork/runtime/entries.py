"""Entry kernels: those that Python calls, each with the types of its arguments.

The list in `entries.json` is recorded while the tests run (`pytest --record-kernels`), never written by hand. Kernels
that only other kernels call are part of the machine code of their callers. Each row has the types, the seconds that
compiling takes after the kernels before it, and the calls that need it: a structure (`chain`), or a command and a model
(`train crf`).

A type is written as numba names it (`int64`), an array as its element type and number of axes (`float64/2`, `readonly
uint8/1`), a tuple as a list, a named tuple as `{"module:Class": [its fields]}`, and a member of an enumeration of
integers as `{"module:Class": "int64"}`.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from numba import types

from trelliswork.runtime.shipped import read_shipped

Json = str | list["Json"] | dict[str, "Json"]
LISTED = Path(__file__).with_name("entries.json")


class Entry(NamedTuple):
    """A kernel by its module and name, and the written types of its arguments, as JSON."""

    module: str
    name: str
    arguments: str

    @classmethod
    def of(cls, module: str, name: str, signature: Iterable[types.Type]) -> Entry:
        """Return the entry of a kernel for arguments of these types.

        Args:
            module: full name of its module.
            name: name of the function.
            signature: numba's type of each argument.

        Returns:
            The entry, its types written as JSON.
        """
        return cls(module, name, json.dumps([write_type(kind) for kind in signature]))

    @property
    def signature(self) -> tuple[types.Type, ...]:
        """The types as numba has them."""
        return tuple(map(read_type, json.loads(self.arguments)))

    @property
    def dispatcher(self) -> Any:
        """The function, compiled or not; its module is imported."""
        return getattr(importlib.import_module(self.module), self.name)

    @property
    def state(self) -> str:
        """Say where its machine code for this processor is: `cached` on this machine, `shipped`, or `missing`."""
        dispatcher, signature = self.dispatcher, self.signature
        if dispatcher._cache.file(signature, dispatcher.targetctx.codegen()) is not None:
            return "cached"
        return "missing" if read_shipped(dispatcher._cache.shipped_name(signature)) is None else "shipped"


class Use(NamedTuple):
    """The seconds that an entry takes to compile on some machine, and the calls that need it."""

    seconds: float = 0.0
    calls: frozenset[str] = frozenset()


def read_uses(file: Path = LISTED) -> dict[Entry, Use]:
    """Read the list."""
    uses = dict[Entry, Use]()
    for kernel, rows in json.loads(file.read_text(encoding="utf-8")).items():
        module, _, name = kernel.partition(":")
        for arguments, seconds, calls in rows:
            uses[Entry(module, name, json.dumps(arguments))] = Use(seconds, frozenset(calls.split(", ")) - {""})
    return uses


def read_entries(*calls: str) -> list[Entry]:
    """Return the entries that some calls need, or all: those first that take long to compile."""
    uses = read_uses()
    needed = [entry for entry, use in uses.items() if not calls or use.calls.intersection(calls)]
    return sorted(needed, key=lambda entry: -uses[entry].seconds)


def write_uses(uses: Mapping[Entry, Use], file: Path = LISTED) -> None:
    """Write the list, in an order that does not depend on how it was recorded."""
    listed: dict[str, list[object]] = {}
    for entry, use in sorted(uses.items(), key=lambda item: item[0]):
        row = json.loads(entry.arguments), use.seconds, ", ".join(sorted(use.calls))
        listed.setdefault(f"{entry.module}:{entry.name}", []).append(row)
    rows = (
        f"{json.dumps(kernel)}: [\n  " + ",\n  ".join(map(json.dumps, signatures)) + "\n ]"
        for kernel, signatures in listed.items()
    )
    file.write_text("{\n " + ",\n ".join(rows) + "\n}\n", encoding="utf-8")


def write_type(kind: types.Type) -> Json:
    """Return a type of numba as JSON can hold it."""
    if isinstance(kind, types.Array):
        layout = "" if kind.layout == "C" else f"/{kind.layout}"
        return f"{'' if kind.mutable else 'readonly '}{kind.dtype}/{kind.ndim}{layout}"
    if isinstance(kind, types.BaseTuple):
        fields = [write_type(field) for field in kind]  # type: ignore[attr-defined]
        if not isinstance(kind, types.BaseNamedTuple):
            return fields
        named = kind.instance_class  # type: ignore[attr-defined]
        return {f"{named.__module__}:{named.__qualname__}": fields}
    if isinstance(kind, types.IntEnumMember):
        return {f"{kind.instance_class.__module__}:{kind.instance_class.__qualname__}": str(kind.dtype)}
    if getattr(types, str(kind), None) is not kind:
        raise TypeError(
            f"expected an array, a number, a bool or a tuple of them as an argument of a kernel, got {kind}"
        )
    return str(kind)


def read_type(written: Json) -> types.Type:
    """Return the type of numba that `write_type` wrote."""
    if isinstance(written, list):
        return types.BaseTuple.from_types([read_type(field) for field in written])
    if isinstance(written, dict):
        ((place, fields),) = written.items()
        module, _, name = place.partition(":")
        kind = getattr(importlib.import_module(module), name)
        if isinstance(fields, str):
            return types.IntEnumMember(kind, getattr(types, fields))
        return types.BaseTuple.from_types([read_type(field) for field in fields], kind)
    element, *shape = written.removeprefix("readonly ").split("/")
    if not shape:
        return getattr(types, element)
    layout: Any = shape[1] if len(shape) > 1 else "C"
    return types.Array(getattr(types, element), int(shape[0]), layout, readonly=written.startswith("readonly "))
