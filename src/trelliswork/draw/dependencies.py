"""A dependency tree: arcs over the tokens, short ones below long ones, arrowheads at the dependents."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from trelliswork.draw.inputs import as_index, as_list, as_probabilities, as_table, as_texts
from trelliswork.draw.svg import (
    ACCENT,
    HEAT,
    MARGIN,
    PAPER,
    SIZE,
    Drawing,
    arrow_head,
    drawing,
    element,
    hint,
    path_data,
    percent,
    text,
    text_width,
)
from trelliswork.errors import ScoreError

LEVEL, SLOT, SMALL, CORNER, GAP = 32.0, 10.0, 12.0, 9.0, 22.0
PALEST = 0.3  # how strongly an arc of probability 0 is drawn


class Arc(NamedTuple):
    """An arc between the tokens `left` < `right` (0-based); from the root both are the token it leads to."""

    left: int
    right: int
    dependent: int
    shown: str
    probability: float
    level: int

    @property
    def is_root(self) -> bool:
        return self.left == self.right


class Drawn(NamedTuple):
    """An arc with its places: x of both ends, y of the run."""

    arc: Arc
    x_left: float
    x_right: float
    y: float


def dependencies(
    tokens: Sequence[str], heads: object, labels: Sequence[str] | None = None, probabilities: object = None
) -> Drawing:
    """Draw a dependency tree over its tokens.

    >>> dependencies(["She", "sleeps"], [2, 0], ["nsubj", "root"], [0.9, 0.8])  # doctest: +SKIP

    Args:
        tokens: The n words.
        heads: Head of each token, words counted from 1 and 0 being the root.
        labels: Label of each token's arc; None for arcs without labels.
        probabilities: Probability of each token's arc [n], or marginals [n+1, n+1] of all arcs; None to write none.

    Returns:
        The picture; it shows in notebooks, and `save(file)` writes it.
    """
    words = as_texts(tokens, "tokens")
    governors = _heads(heads, len(words))
    names = None if labels is None else as_list(labels, "labels")
    if names is not None and len(names) != len(words):
        raise ScoreError(f"labels must be {len(words)}, one for each token; got {len(names)}")
    arcs = _arcs(governors, names, _of_arcs(probabilities, governors))
    edges = _edges(words, arcs)
    base = MARGIN + LEVEL * max((arc.level for arc in arcs), default=0) + 14
    drawn = _place(arcs, edges, base)
    parts = [
        *(_line(each, base) for each in drawn),
        *(_label(each, drawn) for each in drawn if each.arc.shown),
        *(text((a + b) / 2, base + SIZE + 6, word, font_weight=600) for (a, b), word in _columns(edges, words)),
    ]
    described = "; ".join(f"{words[m]} from {words[h - 1] if h else 'the root'}" for m, h in enumerate(governors))
    title = f"Dependencies of: {' '.join(words)}"
    return drawing(edges[-1] + MARGIN, base + SIZE + 6 + MARGIN, title, described, parts)


def _columns(edges: Sequence[float], words: Sequence[str]) -> zip[tuple[tuple[float, float], str]]:
    return zip(pairwise(edges), words, strict=True)


# --- reading -------------------------------------------------------------------------------------------------


def _heads(heads: object, n: int) -> list[int]:
    given = as_list(heads, "heads")
    if len(given) != n:
        raise ScoreError(f"heads must be {n}, one for each token; got {len(given)}")
    governors = [as_index(head, f"the head of token {m}") for m, head in enumerate(given, 1)]
    for m, head in enumerate(governors, 1):
        if not 0 <= head <= n:
            raise ScoreError(f"heads must lie in 0..{n}; got {head} at token {m}; count tokens from 1, 0 is the root")
        if head == m:
            raise ScoreError(f"a token cannot be its own head; got {head} at token {m}; count tokens from 1")
    return governors


def _of_arcs(probabilities: object, heads: Sequence[int]) -> list[float] | None:
    if probabilities is None:
        return None
    n, rows = len(heads), as_list(probabilities, "probabilities")
    if rows and isinstance(rows[0], (list, tuple)):
        table = as_table(rows, n + 1, n + 1, "head", "dependent")
        return [table[head][m] for m, head in enumerate(heads, 1)]
    return as_probabilities(rows, n, "token")


def _arcs(heads: Sequence[int], labels: list[str] | None, sure: list[float] | None) -> list[Arc]:
    """Sort arcs from short to long, each a level above all shorter ones that it overlaps; the root's on top."""
    arcs: list[Arc] = []
    order = sorted(range(len(heads)), key=lambda m: (heads[m] == 0, abs(heads[m] - 1 - m), m))
    for m in order:
        h = heads[m] - 1 if heads[m] else m
        left, right = min(h, m), max(h, m)
        name = str(labels[m]) if labels is not None else ("" if heads[m] else "root")
        shown = name if sure is None else f"{name} {percent(sure[m])}".strip()
        if heads[m]:
            level = 1 + max((a.level for a in arcs if a.left < right and left < a.right), default=0)
        else:
            level = 1 + max((a.level for a in arcs if not a.is_root), default=0)
        arcs.append(Arc(left, right, m, shown, 1.0 if sure is None else sure[m], level))
    return arcs


# --- layout --------------------------------------------------------------------------------------------------


def _edges(words: Sequence[str], arcs: Sequence[Arc]) -> list[float]:
    """Return where each token's column begins: room for the word, the ends of its arcs, and the labels above."""
    n_ends = [sum(m in (arc.left, arc.right) for arc in arcs) for m in range(len(words))]
    widths = [
        max(text_width(word, bold=True) + GAP, SLOT * (ends + 1)) for word, ends in zip(words, n_ends, strict=True)
    ]
    for arc in arcs:
        wanted = text_width(arc.shown, SMALL) + 14
        if arc.is_root:
            widths[arc.left] = max(widths[arc.left], wanted)
            continue
        ends = SLOT * (n_ends[arc.left] + n_ends[arc.right]) / 2 + 2 * CORNER
        run = (widths[arc.left] + widths[arc.right]) / 2 + sum(widths[arc.left + 1 : arc.right]) - ends
        share = max(0.0, wanted - run) / (arc.right - arc.left)
        for m in range(arc.left, arc.right + 1):
            widths[m] += share
    return list(accumulate(widths, initial=MARGIN))


def _place(arcs: Sequence[Arc], edges: Sequence[float], base: float) -> list[Drawn]:
    ends: dict[tuple[int, int], float] = {}
    for m in range(len(edges) - 1):
        mine = [arc for arc in arcs if m in (arc.left, arc.right)]
        # From the outside in: short arcs to the left, long ones, the root's, long ones to the right, short ones.
        mine.sort(key=lambda arc: _side(arc, m))
        middle = (edges[m] + edges[m + 1]) / 2
        for slot, arc in enumerate(mine):
            ends[m, arc.dependent] = middle + SLOT * (slot - (len(mine) - 1) / 2)
    return [
        Drawn(arc, ends[arc.left, arc.dependent], ends[arc.right, arc.dependent], base - LEVEL * arc.level)
        for arc in arcs
    ]


def _side(arc: Arc, m: int) -> tuple[int, int]:
    if arc.is_root:
        return 0, 0
    return (-1, arc.level) if m == arc.right else (1, -arc.level)


def _line(drawn: Drawn, base: float) -> str:
    arc, left, right, y = drawn
    if arc.is_root:
        line, x = path_data("M", left, y, "V", base - 6), left
    else:
        bend = min(CORNER, (right - left) / 2)
        line = path_data(
            "M", left, base, "V", y + bend, "Q", left, y, left + bend, y,
            "H", right - bend, "Q", right, y, right, y + bend, "V", base,
        )  # fmt: skip
        x = left if arc.dependent == arc.left else right
    colour = ACCENT if arc.is_root else HEAT
    strength = PALEST + (1 - PALEST) * arc.probability
    parts = [
        hint(arc.shown or "arc"),
        element("path", d=line, fill="none", stroke=colour, stroke_width=1.8),
        arrow_head(x, base + 2, 0.0, 1.0, colour),
    ]
    return element("g", parts, opacity=round(strength, 2))


def _label(drawn: Drawn, others: Sequence[Drawn]) -> str:
    """Return the label on the run of its arc, moved aside where an upright of another arc would cross it."""
    width = text_width(drawn.arc.shown, SMALL) + 6
    middle, room = (drawn.x_left + drawn.x_right) / 2, max(0.0, (drawn.x_right - drawn.x_left - width) / 2 - 4)
    uprights = [x for other in others if other.y < drawn.y for x in (other.x_left, other.x_right)]
    shifts = sorted(
        (4.0 * i for i in range(-int(room // 4), int(room // 4) + 1)), key=lambda shift: (abs(shift), shift)
    )
    free = (s for s in shifts if all(abs(x - middle - s) > width / 2 + 2 for x in uprights))
    x = middle + next(free, 0.0)
    colour = ACCENT if drawn.arc.is_root else HEAT
    back = element("rect", x=x - width / 2, y=drawn.y - 8, width=width, height=16, fill=PAPER)
    return back + text(x, drawn.y + 4, drawn.arc.shown, size=SMALL, fill=colour)


# A dependency tree in characters: a line for each word, arcs as lines on the left.

UP, DOWN, LEFT, RIGHT = 1, 2, 4, 8
# What goes out of a cell in which directions -> the character that shows it.
_BOXES = " ╵╷│╴╯╮┤╶╰╭├─┴┬┼"
WIDTH = 2  # characters between two columns of arcs


def arc_lines(heads: Sequence[int]) -> list[str]:
    """Return what comes before each word, all of the same length; words count from 1, and 0 is the root.

    The line of a head goes through its word's row to those of its dependents; arcs that cross are lines that do.

    >>> print("\\n".join(a + b for a, b in zip(arc_lines((2, 0, 4, 2)), ["She", "sees", "a", "dog"])))
      ╭───╴ She
    ╶─┼───╴ sees
      │ ╭─╴ a
      ╰─┴─╴ dog
    """
    columns = _text_columns(heads)
    width = WIDTH * (max(columns.values(), default=0) + 1)
    cells = [[0] * (width + 1) for _ in heads]
    for word, head in enumerate(heads, 1):
        _across(cells[word - 1], WIDTH * columns[head] if head else 0, width)
        if head:
            _down(cells, WIDTH * columns[head], min(word, head) - 1, max(word, head) - 1)
    return ["".join(_BOXES[cell] for cell in row) + " " for row in cells]


def _text_columns(heads: Sequence[int]) -> dict[int, int]:
    """Return the column of the arcs of each head, right of that of its own head and free over all its rows."""
    dependents: dict[int, list[int]] = {}
    for word, head in enumerate(heads, 1):
        dependents.setdefault(head, []).append(word)
    columns: dict[int, int] = {}
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
        columns[head] = column
        taken.append((column, low, high))
        waiting += [(word, column) for word in dependents[head]]
    return columns


def _across(row: list[int], start: int, end: int) -> None:
    for place in range(start, end + 1):
        row[place] |= (LEFT if place > start else 0) | (RIGHT if place < end else 0)


def _down(cells: list[list[int]], place: int, first: int, last: int) -> None:
    for row in range(first, last + 1):
        cells[row][place] |= (UP if row > first else 0) | (DOWN if row < last else 0)
