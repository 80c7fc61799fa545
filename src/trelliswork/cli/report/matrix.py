"""The confusion matrix: gold tags down, predicted tags across."""

from __future__ import annotations

from trelliswork.cli.report.svg import heat_cell, picture, text, text_width
from trelliswork.draw.svg import element
from trelliswork.metrics import Confusion

MOST_LABELS = 20
ROW, GAP, COLUMN = 28.0, 3.0, 50.0


def confusion_picture(confusion: Confusion) -> str:
    """A heat map with the counts in its cells; colour is the share of the row."""
    kept = _most_frequent(confusion)
    names = [confusion.labels[i] for i in kept]
    longest = max(text_width(name) for name in names)
    left, top = 38 + longest, 22 + longest * 0.75
    width, height = left + len(kept) * (COLUMN + GAP) + longest * 0.75, top + len(kept) * (ROW + GAP) + 6
    parts = []
    for row, i in enumerate(kept):
        y = top + row * (ROW + GAP)
        parts.append(text(left - 10, y + ROW / 2 + 4.5, names[row], text_anchor="end", class_="label"))
        total = sum(confusion.counts[i]) or 1
        for column, j in enumerate(kept):
            n = confusion.counts[i][j]
            told = f"gold {names[row]}, predicted {names[column]}: {n} tokens, {n / total:.1%} of {names[row]}"
            x = left + column * (COLUMN + GAP)
            parts.append(heat_cell(x, y, COLUMN, ROW, n / total, str(n) if n else "", told))
    for column, name in enumerate(names):
        x, y = left + column * (COLUMN + GAP) + COLUMN / 2, top - 8
        parts.append(text(x, y, name, class_="label", transform=f"rotate(-40 {x:.1f} {y:.1f})"))
    parts += _axis_names(left, top, len(kept))
    return picture(width, height, "Gold tags against predicted tags", [element("g", parts)])


def _axis_names(left: float, top: float, n: int) -> list[str]:
    middle = top + n * (ROW + GAP) / 2
    return [
        text(left - 10, top - 10, "predicted", class_="note", text_anchor="end"),
        text(14, middle, "gold", class_="note", text_anchor="middle", transform=f"rotate(-90 14 {middle:.0f})"),
    ]


def _most_frequent(confusion: Confusion) -> list[int]:
    """The labels to show: all, or the most frequent in gold, in the order of the matrix."""
    totals = [sum(row) for row in confusion.counts]
    by_frequency = sorted(range(len(totals)), key=lambda i: -totals[i])[:MOST_LABELS]
    return sorted(by_frequency)
