"""Machine code that a wheel brings along: for each level of processors a folder of compressed kernels.

A level is a set of instructions that many processors have in common, such as x86-64-v3. A file is used if its name
(which covers the sources and the versions of everything that makes machine code) is the one that is asked for, and the
processor has all instructions of its level. `trelliswork.runtime.build` makes the folders.
"""

from __future__ import annotations

import lzma
import os
import platform
from functools import cache
from pathlib import Path
from typing import NamedTuple

import llvmlite.binding as llvm

FOLDER = Path(__file__).parent / "shipped"
SUFFIX = ".xz"
_V3 = (
    "sse", "sse2", "sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "cx16", "avx", "avx2", "fma", "f16c", "bmi", "bmi2",
    "lzcnt", "movbe", "xsave",
)  # fmt: skip
_V4 = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")


class Level(NamedTuple):
    """A level of processors as LLVM knows it: the name of a processor, its instructions, and how LLVM uses them."""

    name: str
    processor: str
    features: tuple[str, ...]
    tuning: tuple[str, ...] = ()

    @property
    def settings(self) -> dict[str, str]:
        """The environment in which numba compiles for this level."""
        features = [*(f"+{each}" for each in self.features), *self.tuning]
        return {"NUMBA_CPU_NAME": self.processor, "NUMBA_CPU_FEATURES": ",".join(features)}


X86 = (Level("x86-64-v4", "x86-64-v4", _V4, ("-prefer-256-bit",)), Level("x86-64-v3", "x86-64-v3", _V3))
ARM = (Level("arm64", "generic", ("neon",)),)


def levels() -> tuple[Level, ...]:
    """Return the levels of this kind of machine, the best first."""
    return {"x86_64": X86, "amd64": X86, "aarch64": ARM, "arm64": ARM}.get(platform.machine().lower(), ())


def supported_levels() -> list[Level]:
    """Return the levels whose instructions this processor has, the best first."""
    if levels() is ARM:  # every 64-bit ARM processor has NEON; not every system says so
        return list(ARM)
    present = {name for name, has in llvm.get_host_cpu_features().items() if has}
    return [level for level in levels() if present.issuperset(level.features)]


@cache
def usable_folders() -> list[Path]:
    """Return the folders that this processor can use; none if the user asks for another processor."""
    if "NUMBA_CPU_NAME" in os.environ or not FOLDER.is_dir():
        return []
    return [folder for level in supported_levels() if (folder := FOLDER / level.name).is_dir()]


def read_shipped(name: str) -> bytes | None:
    """Return the content of a kernel's file; None if none is shipped, or it is damaged."""
    for folder in usable_folders():
        try:
            return lzma.decompress((folder / f"{name}{SUFFIX}").read_bytes())
        except (OSError, lzma.LZMAError, EOFError):
            continue
    return None
