"""The positions of a source that alignments pass, and the chunk pairs that fit between them.

Without pins a position is a place of the source. Where a pin says that places [start, end) become some symbols, there
is a position for each place inside and each number of symbols written since `start`: chunk pairs lead from one to the
next as far as they write what the pin has, and none crosses its borders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from trelliswork.models.transducers.pins import SpanPin, Symbols

Array = np.ndarray[Any, Any]
Range = tuple[int, int]
Node = tuple[int, int]  # a place, and how many symbols of the pin around it are written
Fitting = Callable[[int, int], Range]  # the chunk pairs for the source symbols [start, end)


class Positions(NamedTuple):
    """`spans[i, slot]` has a range of chunk pairs that fit at position i, and the position behind them."""

    spans: Array  # int32 [position, slot, 3]; the last position of all is not listed
    places: list[int]  # of each position, the last one included


def plain_positions(n: int, longest: int, fitting: Fitting) -> Positions:
    """Those of a source of `n` symbols about which nothing is known; chunks have at most `longest` of them."""
    rows = plain_rows(n, longest, fitting)
    return Positions(np.array(rows, np.int32).reshape(n, longest, 3), list(range(n + 1)))


def plain_rows(n: int, longest: int, fitting: Fitting) -> list[list[tuple[int, int, int]]]:
    """The `spans` of such a source."""
    return [[(*fitting(i, i + a), i + a) if i + a <= n else (0, 0, 0) for a in range(1, longest + 1)] for i in range(n)]


def pinned_positions(
    n: int, longest: int, fitting: Fitting, pins: Sequence[SpanPin], written: Callable[[int], Symbols]
) -> Positions:
    """Those that agree with pins, which lie apart and are sorted; `written` has the target of a chunk pair."""
    nodes = list(_nodes(n, pins))
    number = {node: i for i, node in enumerate(nodes)}
    rows = [
        [(low, high, number[to]) for low, high, to in _steps(node, n, longest, fitting, pins, written)]
        for node in nodes[:-1]
    ]
    spans = np.zeros((len(rows), max(1, *map(len, rows)), 3), np.int32)
    for i, row in enumerate(rows):
        for slot, step in enumerate(row):
            spans[i, slot] = step
    return Positions(spans, [place for place, _ in nodes])


def _nodes(n: int, pins: Sequence[SpanPin]) -> Iterator[Node]:
    for place in range(n + 1):
        around = next((pin for pin in pins if pin.start < place < pin.end), None)
        for k in range(1 if around is None else len(around.symbols) + 1):
            yield place, k


def _steps(
    node: Node, n: int, longest: int, fitting: Fitting, pins: Sequence[SpanPin], written: Callable[[int], Symbols]
) -> Iterator[tuple[int, int, Node]]:
    """Ranges of chunk pairs that may follow, with the node behind them."""
    place, k = node
    pin = next((each for each in pins if each.start <= place < each.end), None)
    end = pin.end if pin is not None else min((each.start for each in pins if each.start > place), default=n)
    for to in range(place + 1, min(place + longest, end) + 1):
        low, high = fitting(place, to)
        if pin is None:
            yield low, high, (to, 0)
            continue
        for pair in range(low, high):
            after = k + len(written(pair))
            if written(pair) != pin.symbols[k:after]:
                continue
            if to < end or after == len(pin.symbols):
                yield pair, pair + 1, (to, after if to < end else 0)
