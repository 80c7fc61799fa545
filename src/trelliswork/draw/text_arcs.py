"""A dependency tree in characters: a line for each word, arcs as lines on the left."""

from __future__ import annotations

from collections.abc import Sequence

UP, DOWN, LEFT, RIGHT = 1, 2, 4, 8
# What goes out of a cell in which directions -> the character that shows it.
_BOXES = " ╵╷│╴╯╮┤╶╰╭├─┴┬┼"
WIDTH = 2  # characters between two columns of arcs


def arc_lines(heads: Sequence[int]) -> list[str]:
    """What comes before each word, all of the same length; words count from 1, and 0 is the root.

    The line of a head goes through its word's row to those of its dependents; arcs that cross are lines that do.

    >>> print("\\n".join(a + b for a, b in zip(arc_lines((2, 0, 4, 2)), ["She", "sees", "a", "dog"])))
      ╭───╴ She
    ╶─┼───╴ sees
      │ ╭─╴ a
      ╰─┴─╴ dog
    """
    columns = _columns(heads)
    width = WIDTH * (max(columns.values(), default=0) + 1)
    cells = [[0] * (width + 1) for _ in heads]
    for word, head in enumerate(heads, 1):
        _across(cells[word - 1], WIDTH * columns[head] if head else 0, width)
        if head:
            _down(cells, WIDTH * columns[head], min(word, head) - 1, max(word, head) - 1)
    return ["".join(_BOXES[cell] for cell in row) + " " for row in cells]


def _columns(heads: Sequence[int]) -> dict[int, int]:
    """The column of the arcs of each head, right of that of its own head and free over all its rows."""
    dependents: dict[int, list[int]] = {}
    for word, head in enumerate(heads, 1):
        dependents.setdefault(head, []).append(word)
    found: dict[int, int] = {}
    taken: list[tuple[int, int, int]] = []  # column, first and last row
    waiting = [(word, 0) for word in dependents.get(0, ())]
    while waiting:
        head, above = waiting.pop(0)
        if head not in dependents:
            continue
        low, high = min(head, dependents[head][0]), max(head, dependents[head][-1])
        column = above + 1
        while any(c == column and first <= high and low <= last for c, first, last in taken):
            column += 1
        found[head] = column
        taken.append((column, low, high))
        waiting += [(word, column) for word in dependents[head]]
    return found


def _across(row: list[int], start: int, end: int) -> None:
    for place in range(start, end + 1):
        row[place] |= (LEFT if place > start else 0) | (RIGHT if place < end else 0)


def _down(cells: list[list[int]], place: int, first: int, last: int) -> None:
    for row in range(first, last + 1):
        cells[row][place] |= (UP if row > first else 0) | (DOWN if row < last else 0)
