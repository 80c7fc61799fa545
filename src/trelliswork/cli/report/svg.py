"""Small pieces of SVG. Colours are classes and variables of `style.css`, so that light and dark both work."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from trelliswork.draw.svg import element, hint

LETTER = 7.6  # width of a letter at the text size of the pictures, on average
STRONG = 0.5  # from this heat on, text is light on dark (dark on light in dark mode)


def text(x: float, y: float, content: str, **attributes: object) -> str:
    """A line of text."""
    return element("text", escape(content), x=x, y=y, **attributes)


def picture(width: float, height: float, label: str, content: Iterable[str]) -> str:
    """A whole drawing, which keeps its size on wide screens and scrolls on narrow ones."""
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


def heat_cell(x: float, y: float, width: float, height: float, share: float, shown: str, told: str) -> str:
    """A cell of a heat map: colour by `share` in 0..1, a short text, and a longer one on pointing at it."""
    parts = [
        hint(told),
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
