"""Places in a text, counted as the reader of an answer counts: in code points, UTF-16 units or bytes of UTF-8.

Python counts code points. JavaScript, Java and C# count UTF-16 units, of which most emoji have two; editors and C
libraries count bytes.

>>> Offsets("a😀b", "utf-16")[2]
3
>>> Offsets("a😀b", "bytes")[2]
5
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trelliswork.errors import TrellisworkError
from trelliswork.lazy import lazy_module

if TYPE_CHECKING:
    import numpy as np
else:
    np = lazy_module("numpy")  # which help and the first checks of a command do without

OFFSETS = ("code-points", "utf-16", "bytes")


class Offsets:
    """From code points to `unit`, for the places 0..len(text) of one text."""

    def __init__(self, text: str, unit: str = "code-points") -> None:
        if unit not in OFFSETS:
            raise TrellisworkError(f"offsets must be counted in one of {', '.join(OFFSETS)}; got {unit!r}")
        self._before: np.ndarray[Any, Any] | None = None
        if unit != "code-points" and not text.isascii():
            widths = _WIDTHS[unit](np.array([*map(ord, text)], np.int64))
            self._before = np.concatenate([[0], np.cumsum(widths)])

    def __getitem__(self, place: int) -> int:
        return place if self._before is None else int(self._before[place])


def _utf16_units(codes: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return 1 + (codes > 0xFFFF).astype(np.int64)


def _bytes(codes: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return 1 + (codes > 0x7F).astype(np.int64) + (codes > 0x7FF) + (codes > 0xFFFF)


_WIDTHS = {"utf-16": _utf16_units, "bytes": _bytes}
