"""The trellis of a chain: a column of tags for each token, as dark as they are probable, the best path over it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from trelliswork.draw.inputs import Table, as_path, as_table, as_texts
from trelliswork.draw.svg import (
    ACCENT,
    EMPTY,
    HEAT,
    INK,
    LINE,
    MARGIN,
    PAPER,
    SOFT,
    Drawing,
    drawing,
    element,
    hint,
    percent,
    text,
    text_width,
)

ROW, RADIUS, TOP, NAME_GAP = 50.0, 20.0, 44.0, 32.0
LEAST_COLUMN = 82.0
MOST_LINES = 800  # beyond that the lines between tags would be a grey surface
STRONG = 0.55  # from this probability on the number is light on dark


def trellis(probabilities: object, tokens: Sequence[str], tags: Sequence[str], best: object = None) -> Drawing:
    """Draw the probabilities of the tags of one sentence, and its best path.

    >>> trellis([[0.9, 0.1], [0.2, 0.8]], ["New", "York"], ["B", "I"], best=[0, 1])  # doctest: +SKIP

    Args:
        probabilities: Probabilities [n, c] as a tensor, an array or lists.
        tokens: The n words.
        tags: Names of the c tags.
        best: Tag of each token, by index or name; None to draw no path.

    Returns:
        The picture; it shows in notebooks, and `save(file)` writes it.
    """
    words, names = as_texts(tokens, "tokens"), as_texts(tags, "tags")
    table = as_table(probabilities, len(words), len(names), "token", "tag")
    path = None if best is None else as_path(best, names, len(words), "best", "token")
    xs, width = _columns(words, names)
    ys = [TOP + ROW * (j + 0.5) for j in range(len(names))]
    parts = [
        *(text(xs[0] - NAME_GAP, y + 5, name, anchor="end", fill=SOFT) for y, name in zip(ys, names, strict=True)),
        *(text(x, TOP - 14, word, font_weight=600) for x, word in zip(xs, words, strict=True)),
        *_lines(xs, ys),
        *([] if path is None else _path_lines(path, xs, ys)),
        *_nodes(table, words, names, path, xs, ys),
    ]
    chosen = "" if path is None else " The best tags are " + " ".join(names[j] for j in path) + "."
    description = f"Each circle is as dark as its tag is probable at its token.{chosen}"
    return drawing(width, ys[-1] + ROW / 2 + MARGIN, f"Trellis of: {' '.join(words)}", description, parts)


def _columns(words: Sequence[str], names: Sequence[str]) -> tuple[list[float], float]:
    """Return the x coordinate of each token's column, and the width of the picture."""
    widths = [max(LEAST_COLUMN, text_width(word, bold=True) + 16) for word in words]
    name_room = MARGIN + max(text_width(name) for name in names) + NAME_GAP
    left = max(name_room - widths[0] / 2, MARGIN)
    edges = list(accumulate(widths, initial=left))
    return [(a + b) / 2 for a, b in pairwise(edges)], edges[-1] + MARGIN


def _lines(xs: Sequence[float], ys: Sequence[float]) -> list[str]:
    if len(xs) * len(ys) ** 2 > MOST_LINES:
        return []
    return [
        element("line", x1=a + RADIUS, y1=y, x2=b - RADIUS, y2=z, stroke=LINE, stroke_opacity=0.55)
        for a, b in pairwise(xs)
        for y in ys
        for z in ys
    ]


def _path_lines(path: Sequence[int], xs: Sequence[float], ys: Sequence[float]) -> list[str]:
    """From rim to rim: between the columns, so that no number is crossed."""
    ends = pairwise(zip(xs, path, strict=True))
    return [
        element(
            "line", x1=a + RADIUS, y1=ys[i], x2=b - RADIUS, y2=ys[j],
            stroke=ACCENT, stroke_width=3.5, stroke_linecap="round",
        )
        for (a, i), (b, j) in ends
    ]  # fmt: skip


def _nodes(
    table: Table,
    words: Sequence[str],
    names: Sequence[str],
    path: Sequence[int] | None,
    xs: Sequence[float],
    ys: Sequence[float],
) -> list[str]:
    return [
        _node(xs[t], ys[j], p, path is not None and path[t] == j, f"P({words[t]} = {names[j]}) = {p:.4f}")
        for t, row in enumerate(table)
        for j, p in enumerate(row)
    ]


def _node(x: float, y: float, p: float, is_best: bool, text_on_pointing: str) -> str:
    ring = {"stroke": ACCENT, "stroke_width": 3.5} if is_best else {"stroke": LINE, "stroke_width": 1}
    bold = 700 if is_best else None
    return element(
        "g",
        [
            hint(text_on_pointing),
            element("circle", cx=x, cy=y, r=RADIUS, fill=EMPTY),
            element("circle", cx=x, cy=y, r=RADIUS, fill=HEAT, fill_opacity=round(p, 2), **ring),
            text(x, y + 4, percent(p), size=11, fill=PAPER if p >= STRONG else INK, font_weight=bold),
        ],
    )
