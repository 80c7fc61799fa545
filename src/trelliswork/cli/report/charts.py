"""Learning curves and the reliability diagram."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape

from trelliswork.draw.svg import element, hint, percent
from trelliswork.metrics import Calibration, Confusion

WIDTH, HEIGHT = 430.0, 280.0
LEFT, RIGHT, TOP, BOTTOM = 62.0, 18.0, 18.0, 50.0


@dataclass(frozen=True)
class Frame:
    """A pair of axes: from data to places in the drawing."""

    x_range: tuple[float, float]
    y_range: tuple[float, float]

    def x(self, value: float) -> float:
        low, high = self.x_range
        return LEFT + (value - low) / ((high - low) or 1) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        low, high = self.y_range
        return HEIGHT - BOTTOM - (value - low) / ((high - low) or 1) * (HEIGHT - TOP - BOTTOM)

    def axes(
        self,
        x_ticks: Sequence[float],
        y_ticks: Sequence[float],
        x_label: str,
        y_label: str,
        y_shown: Callable[[float], str],
        x_shown: Callable[[float], str] = "{:g}".format,
    ) -> list[str]:
        """Draw grid lines, numbers and the names of the axes.

        Args:
            x_ticks: Values with a number on the horizontal axis.
            y_ticks: Values with a number on the vertical axis.
            x_label: Name of the horizontal axis.
            y_label: Name of the vertical axis.
            y_shown: A function from a value to its text.
            x_shown: The same for the horizontal axis.

        Returns:
            The elements.
        """
        bottom, middle = HEIGHT - BOTTOM, (TOP + HEIGHT - BOTTOM) / 2
        parts = []
        for tick in y_ticks:
            y = self.y(tick)
            parts.append(element("line", x1=LEFT, y1=y, x2=WIDTH - RIGHT, y2=y, class_="grid"))
            parts.append(text(LEFT - 8, y + 4, y_shown(tick), text_anchor="end", class_="tick"))
        for tick in x_ticks:
            parts.append(text(self.x(tick), bottom + 18, x_shown(tick), text_anchor="middle", class_="tick"))
        parts.append(element("line", x1=LEFT, y1=bottom, x2=WIDTH - RIGHT, y2=bottom, class_="axis"))
        parts.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, x_label, text_anchor="middle", class_="label"))
        turn = f"rotate(-90 16 {middle:.0f})"
        return [*parts, text(16, middle, y_label, text_anchor="middle", class_="label", transform=turn)]


def line_chart(
    values: Sequence[float], y_label: str, shown: Callable[[float], str], hint_of: Callable[[float], str]
) -> str:
    """Return one value per epoch as a line with dots; the value of a dot on pointing at it.

    Args:
        values: One value per epoch.
        y_label: Name of the vertical axis.
        shown: A function from a value to its text.
        hint_of: A function from a value to the text on pointing at its dot.

    Returns:
        The drawing.
    """
    ticks = nice_ticks(min(values), max(values))
    frame = Frame((1, max(len(values), 2)), (ticks[0], ticks[-1]))
    step = max(1, math.ceil(len(values) / 12))
    epochs = range(1, len(values) + 1, step)
    points = [(frame.x(i), frame.y(value)) for i, value in enumerate(values, 1)]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dots = [
        element("circle", hint(f"epoch {i}: {hint_of(value)}"), cx=x, cy=y, r=4.5, class_="dot")
        for i, ((x, y), value) in enumerate(zip(points, values, strict=True), 1)
    ]
    axes = frame.axes(list(map(float, epochs)), ticks, "epoch", y_label, shown)
    return picture(
        WIDTH, HEIGHT, f"{y_label} by epoch", [*axes, element("polyline", points=line, class_="line"), *dots]
    )


def reliability_chart(calibration: Calibration) -> str:
    """Share of right answers against stated confidence; dots grow with the number of answers in their bin."""
    frame = Frame((0.0, 1.0), (0.0, 1.0))
    fifths = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    axes = frame.axes(fifths, fifths, "stated confidence", "share that was right", percent, percent)
    diagonal = element("line", x1=frame.x(0), y1=frame.y(0), x2=frame.x(1), y2=frame.y(1), class_="ideal")
    most = max((bin_.count for bin_ in calibration.bins), default=1) or 1
    parts = [*axes, diagonal]
    for bin_ in calibration.bins:
        if not bin_.count:
            continue
        x, y = frame.x(bin_.mean_confidence), frame.y(bin_.accuracy)
        described = (
            f"{bin_.count} answers with confidence {bin_.mean_confidence:.2f} on average: {bin_.accuracy:.0%} right"
        )
        parts.append(element("line", x1=x, y1=frame.y(bin_.mean_confidence), x2=x, y2=y, class_="miss"))
        radius = 4 + 9 * math.sqrt(bin_.count / most)
        parts.append(element("circle", hint(described), cx=x, cy=y, r=radius, class_="bubble"))
    parts.append(text(frame.x(0.03), frame.y(0.93), f"ECE {100 * calibration.expected_error:.1f}%", class_="figure"))
    return picture(WIDTH, HEIGHT, "Share of right answers by stated confidence", parts)


def nice_ticks(low: float, high: float, n: int = 5) -> list[float]:
    """Return round numbers that cover low..high.

    >>> nice_ticks(0.1, 0.9)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]

    Args:
        low: Lowest value.
        high: Highest value.
        n: About how many numbers to return.

    Returns:
        Numbers in rising order.
    """
    span = (high - low) or abs(high) or 1.0
    rough = span / n
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(i * step, 10) for i in range(first, max(last, first + 1) + 1)]


# Small pieces of SVG. Colours are classes and variables of `style.css`, so that light and dark both work.

LETTER = 7.6  # width of a letter at the text size of the pictures, on average
STRONG = 0.5  # from this heat on, text is light on dark (dark on light in dark mode)


def text(x: float, y: float, content: str, **attributes: object) -> str:
    """Return a line of text.

    Args:
        x: Where the line is anchored.
        y: Its baseline.
        content: The text, escaped here.
        attributes: Further attributes of the element.

    Returns:
        The element.
    """
    return element("text", escape(content), x=x, y=y, **attributes)


def picture(width: float, height: float, label: str, content: Iterable[str]) -> str:
    """Return a whole drawing, which keeps its size on wide screens and scrolls on narrow ones.

    Args:
        width: Width in units of SVG.
        height: Height in units of SVG.
        label: What it shows, for those who do not see it.
        content: Its elements.

    Returns:
        The drawing.
    """
    return element(
        "svg",
        content,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        width=round(width),
        height=round(height),
        role="img",
        aria_label=label,
        class_="picture",
    )


def heat_cell(x: float, y: float, width: float, height: float, share: float, shown: str, text_on_pointing: str) -> str:
    """Return a cell of a heat map: colour by `share` in 0..1, a short text, and a longer one on pointing at it.

    Args:
        x: Left side.
        y: Upper side.
        width: Width of the cell.
        height: Height of the cell.
        share: Its colour, in 0..1.
        shown: Text in the cell.
        text_on_pointing: Text on pointing at it.

    Returns:
        The element.
    """
    parts = [
        hint(text_on_pointing),
        element("rect", x=x, y=y, width=width, height=height, rx=3, class_="empty"),
        element("rect", x=x, y=y, width=width, height=height, rx=3, class_="heat", fill_opacity=round(share, 3)),
    ]
    if shown:
        style = "value strong" if share >= STRONG else "value"
        parts.append(text(x + width / 2, y + height / 2 + 4.5, shown, class_=style, text_anchor="middle"))
    return element("g", parts)


def text_width(content: str) -> float:
    """About how wide a text is."""
    return LETTER * len(content)


# The confusion matrix: gold tags down, predicted tags across.

MOST_LABELS = 20
ROW, GAP, COLUMN = 28.0, 3.0, 50.0


def confusion_picture(confusion: Confusion) -> str:
    """Return a heat map with the counts in its cells; colour is the share of the row."""
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
            described = f"gold {names[row]}, predicted {names[column]}: {n} tokens, {n / total:.1%} of {names[row]}"
            x = left + column * (COLUMN + GAP)
            parts.append(heat_cell(x, y, COLUMN, ROW, n / total, str(n) if n else "", described))
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
    """Return the labels to show: all, or the most frequent in gold, in the order of the matrix."""
    totals = [sum(row) for row in confusion.counts]
    by_frequency = sorted(range(len(totals)), key=lambda i: -totals[i])[:MOST_LABELS]
    return sorted(by_frequency)
