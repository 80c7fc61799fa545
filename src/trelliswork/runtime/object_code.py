"""The symbols of an object file, without LLVM: it ends the process when one that it needs is missing.

ELF with 64 bits and little-endian numbers, which is what Linux has on x86 and arm64.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

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
