"""What is known of a target: the symbols that some places of the source become."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from trelliswork.errors import TrellisworkError

Symbols = tuple[str, ...]
Place = int | tuple[int, int]  # a symbol of the source, counted from 0, or those from start to end, end exclusive
Pins = Mapping[Place, str | Symbols]
NOTHING = "(nothing)"  # how it is typed that a place writes none


class SpanPin(NamedTuple):
    """Source symbols [start, end) become these target symbols, and no others."""

    start: int
    end: int
    symbols: Symbols


def span_pins(pins: Pins, n: int, cut: Callable[[str], Symbols]) -> list[SpanPin]:
    """The pins of a source of `n` symbols from left to right; they must lie within it, and apart from each other.

    >>> span_pins({(1, 3): "F", 0: "K"}, 3, tuple)
    [SpanPin(start=0, end=1, symbols=('K',)), SpanPin(start=1, end=3, symbols=('F',))]
    """
    found = []
    for place, value in pins.items():
        start, end = (place, place + 1) if isinstance(place, int) else place
        if not 0 <= start < end <= n:
            raise TrellisworkError(f"a pin must be on places of the source, which has {n}; got {place}")
        found.append(SpanPin(start, end, cut(value) if isinstance(value, str) else tuple(value)))
    found.sort()
    for one, other in pairwise(found):
        if one.end > other.start:
            both = f"{one.start}..{one.end - 1} and {other.start}..{other.end - 1}"
            raise TrellisworkError(f"pins must lie apart from each other; got {both}; drop one of them")
    return found


def within(pins: Sequence[SpanPin], places: Sequence[int]) -> list[SpanPin] | None:
    """The same pins on those places of a source that are left over, or None if a pin wants symbols from none of them.

    >>> within([SpanPin(1, 3, ("F",))], [0, 2])
    [SpanPin(start=1, end=2, symbols=('F',))]
    """
    found = []
    for pin in pins:
        start = sum(place < pin.start for place in places)
        end = sum(place < pin.end for place in places)
        if start < end:
            found.append(SpanPin(start, end, pin.symbols))
        elif pin.symbols:
            return None
    return found
