"""The trellis of a sentence: tags down, tokens across, each cell as dark as its marginal, the best path over it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from trelliswork.cli.report.svg import element, heat_cell, picture, text, text_width

if TYPE_CHECKING:
    from trelliswork.cli.story import Explained

ROW, GAP, TOP, BOTTOM = 30.0, 6.0, 34.0, 28.0
LEAST_SHOWN = 0.005  # smaller probabilities get no number


def trellis_picture(explained: Explained) -> str:
    """The heat map as an SVG element."""
    words, tags = explained.sentence.words, explained.tags
    left = 22 + max(text_width(tag) for tag in tags)
    widths = [max(54.0, text_width(word) + 14) for word in words]
    edges = [left + edge for edge in accumulate((width + GAP for width in widths), initial=0.0)]
    height = TOP + len(tags) * (ROW + GAP) + BOTTOM
    path = [tags.index(tag) for tag in explained.confidences.tags]
    parts = [
        *(text(left - 10, _y(j) + ROW / 2 + 4.5, tag, text_anchor="end", class_="label") for j, tag in enumerate(tags)),
        *(
            text(edges[t] + widths[t] / 2, TOP - 12, word, text_anchor="middle", class_="word")
            for t, word in enumerate(words)
        ),
        *_cells(explained, edges, widths),
        *_path(path, edges, widths),
        text(
            left,
            height - 7,
            "numbers and colour: probability of each tag in %; outline: the best sequence",
            class_="note",
        ),
    ]
    sentence = " ".join(words)
    return picture(edges[-1] + 4, height, f"Probability of each tag at each word of: {sentence}", parts)


def _y(j: int) -> float:
    return TOP + j * (ROW + GAP)


def _cells(explained: Explained, edges: Sequence[float], widths: Sequence[float]) -> list[str]:
    cells = []
    for t, (word, row) in enumerate(zip(explained.sentence.words, explained.marginals, strict=True)):
        for j, (tag, p) in enumerate(zip(explained.tags, row, strict=True)):
            shown = f"{100 * p:.0f}" if p >= LEAST_SHOWN else ""
            told = f"P({word} = {tag}) = {p:.4f}"
            cells.append(heat_cell(edges[t], _y(j), widths[t], ROW, p, shown, told))
    return cells


def _path(path: Sequence[int], edges: Sequence[float], widths: Sequence[float]) -> list[str]:
    """Outlines of the chosen cells, joined from edge to edge so that no number is crossed."""
    parts = []
    for t, j in enumerate(path):
        if t:
            start, y_start = edges[t - 1] + widths[t - 1], _y(path[t - 1]) + ROW / 2
            y_end = _y(j) + ROW / 2
            parts.append(element("line", x1=start, y1=y_start, x2=edges[t], y2=y_end, class_="path"))
        parts.append(element("rect", x=edges[t], y=_y(j), width=widths[t], height=ROW, rx=3, class_="path"))
    return parts


def standalone_trellis(explained: Explained) -> str:
    """The trellis as an SVG file of its own, with its style inside."""
    style = Path(__file__).with_name("picture.css").read_text(encoding="utf-8")
    drawing = trellis_picture(explained)
    head, _, rest = drawing.partition(">")
    return f"{head}><style>{style}</style>{rest}\n"
