"""An alignment: a heat map of columns (frames, letters) by symbols, the symbol chosen in each column outlined."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from trelliswork.draw.inputs import Table, as_list, as_path, as_table, as_texts
from trelliswork.draw.svg import (
    ACCENT,
    EMPTY,
    HEAT,
    LINE,
    MARGIN,
    SOFT,
    Drawing,
    drawing,
    element,
    hint,
    text,
    text_width,
)
from trelliswork.errors import ScoreError

ROW, TOP, LEAST_CELL = 26.0, 36.0, 24.0
LEAST_SHOWN = 0.005  # paler cells are left out


def alignment(
    probabilities: object, symbols: Sequence[str], path: object = None, *, columns: Sequence[str] | None = None
) -> Drawing:
    """Draw the probabilities of symbols in each column, and the symbol that is chosen there.

    >>> alignment([[0.9, 0.1], [0.2, 0.8]], ["-", "a"], path=[0, 1])  # doctest: +SKIP
    >>> alignment([[0.9, 0.1], [0.2, 0.8]], ["c", "a"], columns=["k", "a"])  # doctest: +SKIP

    Args:
        probabilities: Probabilities [t, c] as a tensor, an array or lists.
        symbols: The text of each of the c symbols.
        path: The chosen symbol of each column, by index or name; None to outline none.
        columns: A text for each of the t columns, such as the letters of a word; None for numbered frames.

    Returns:
        The picture; it shows in notebooks, and `save(file)` writes it.
    """
    names = as_texts(symbols, "symbols")
    n, unit = len(as_list(probabilities, "probabilities")), "frame" if columns is None else "column"
    if not n:
        raise ScoreError(f"probabilities must have at least one {unit}; got none")
    heads = None if columns is None else as_texts(columns, "columns")
    if heads is not None and len(heads) != n:
        raise ScoreError(f"columns must have a text for each of the {n} rows of probabilities; got {len(heads)}")
    table = as_table(probabilities, n, len(names), unit, "symbol")
    chosen = None if path is None else as_path(path, names, n, "path", unit)
    left = MARGIN + max(text_width(each) for each in [*names, "frame", "path"]) + 10
    shown = [*(heads or []), *([] if chosen is None else [names[j] for j in chosen])]
    cell = max([LEAST_CELL, *(text_width(each, bold=True) + 8 for each in shown)])
    bottom = TOP + ROW * len(names)
    parts = [
        element("rect", x=left, y=TOP, width=cell * n, height=bottom - TOP, fill=EMPTY),
        *_cells(table, names, heads, left, cell),
        *_grid(left, cell, n, len(names)),
        *_headings(names, heads, left, cell, n),
        *([] if chosen is None else _path(chosen, names, left, cell, bottom)),
    ]
    height = bottom + MARGIN + (0 if chosen is None else 24)
    width = left + cell * n + MARGIN
    path_text = "" if chosen is None else " The path is " + " ".join(names[j] for j in chosen) + "."
    description = f"{n} {unit}s by {len(names)} symbols; darker is more probable.{path_text}"
    sides = "frames and symbols" if heads is None else f"{' '.join(heads)} and {' '.join(names)}"
    return drawing(width, height, f"Alignment of {sides}", description, parts)


def _cells(table: Table, names: Sequence[str], heads: Sequence[str] | None, left: float, cell: float) -> list[str]:
    return [
        element(
            "rect",
            hint(f"{f'frame {t}' if heads is None else heads[t]}, {names[j]}: {p:.4f}"),
            x=left + cell * t,
            y=TOP + ROW * j,
            width=cell,
            height=ROW,
            fill=HEAT,
            fill_opacity=round(p, 2),
        )
        for t, row in enumerate(table)
        for j, p in enumerate(row)
        if p >= LEAST_SHOWN
    ]


def _grid(left: float, cell: float, n: int, c: int) -> list[str]:
    right, bottom = left + cell * n, TOP + ROW * c
    across = [
        element("line", x1=left, y1=y, x2=right, y2=y, stroke=LINE) for y in (TOP + ROW * j for j in range(c + 1))
    ]
    down = [
        element("line", x1=x, y1=TOP, x2=x, y2=bottom, stroke=LINE) for x in (left + cell * t for t in range(n + 1))
    ]
    return across + down


def _headings(names: Sequence[str], heads: Sequence[str] | None, left: float, cell: float, n: int) -> list[str]:
    labels = [text(left - 10, TOP + ROW * (j + 0.5) + 5, name, anchor="end") for j, name in enumerate(names)]
    if heads is not None:
        return [*labels, *(text(left + cell * (t + 0.5), TOP - 8, head) for t, head in enumerate(heads))]
    step = next(each for each in (1, 2, 5, 10, 20, 50, 100, 200, 500, n) if n / each <= 30)
    ticks = [text(left + cell * (t + 0.5), TOP - 8, str(t), size=11, fill=SOFT) for t in range(0, n, step)]
    return [text(left - 10, TOP - 8, "frame", size=11, anchor="end", fill=SOFT), *ticks, *labels]


def _path(chosen: Sequence[int], names: Sequence[str], left: float, cell: float, bottom: float) -> list[str]:
    centres = [(left + cell * (t + 0.5), TOP + ROW * (j + 0.5)) for t, j in enumerate(chosen)]
    lines = [
        element("line", x1=a, y1=b, x2=x, y2=y, stroke=ACCENT, stroke_width=2.5, stroke_linecap="round")
        for (a, b), (x, y) in pairwise(centres)
    ]
    outlines = [
        element(
            "rect", x=x - cell / 2 + 1, y=y - ROW / 2 + 1, width=cell - 2, height=ROW - 2,
            rx=3, fill="none", stroke=ACCENT, stroke_width=2.5,
        )
        for x, y in centres
    ]  # fmt: skip
    below = [
        text(x, bottom + 20, names[j], fill=ACCENT, font_weight=700) for (x, _), j in zip(centres, chosen, strict=True)
    ]
    return [*lines, *outlines, text(left - 10, bottom + 20, "path", size=11, anchor="end", fill=SOFT), *below]
