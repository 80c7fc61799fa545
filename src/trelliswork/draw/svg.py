"""Pieces of SVG: elements, text of known width, whole drawings.

Light colours are presentation attributes, which every viewer understands; where the reader prefers dark, a style sheet
inside the picture replaces each colour by its dark partner. Its rules hold inside `.trelliswork` alone, so that a
picture leaves the rest of a notebook or page as it is. The paper is painted in both.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path

from trelliswork.writing import atomic_write

PAPER, INK, SOFT, LINE, EMPTY = "#ffffff", "#1c2733", "#56657a", "#c3ccd6", "#eef2f6"
HEAT, ACCENT = "#0b5aa8", "#c2410c"
# Dark enough for text on white, and told apart with every kind of colour blindness (after Okabe and Ito).
PALETTE = ("#0b5aa8", "#b34700", "#00734f", "#8f3f78", "#806000", "#2b7a9b")
HASH_BASE, HASH_MODULUS = 635, 4093  # they give PER, LOC, ORG, MISC, DATE and PROD six colours
DARK = {
    PAPER: "#121820", INK: "#e4eaf1", SOFT: "#a3b1c2", LINE: "#3a4757", EMPTY: "#222c38",
    HEAT: "#79bbff", ACCENT: "#ff9a5c",
} | dict(zip(PALETTE, ("#79bbff", "#ffa366", "#4fd1a5", "#e59bd0", "#e0c04c", "#7fd0ee"), strict=True))  # fmt: skip
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
SIZE = 14.0
MARGIN = 14.0
LONGEST = 40  # characters of a text that are shown; the rest is there on pointing at it
_NARROW, _WIDE = frozenset("iljtfrI.,:;'|!()[] "), frozenset("mwMW%@—")
_SHOWN = {"\n": "⏎", "\t": "⇥", "\r": "␍"}


@dataclass(frozen=True)
class Drawing:
    """A picture: `.svg` is its text, `.save(path)` writes it, a notebook shows it."""

    svg: str

    def save(self, path: str | Path) -> None:
        """Write the SVG file, whole or not at all."""
        with atomic_write(path) as file:
            file.write(self.svg)

    def __repr__(self) -> str:
        return f"Drawing(svg={self.svg[:30]!r}...)"

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return f'<div style="overflow-x:auto">{self.svg}</div>'


def drawing(width: float, height: float, title: str, description: str, parts: Iterable[str]) -> Drawing:
    """Return a whole picture on painted paper, with a title and description for those who do not see it.

    Args:
        width: Width in units of SVG.
        height: Height in units of SVG.
        title: Short name of the picture.
        description: Its content in words.
        parts: SVG of its elements, drawn in this order.

    Returns:
        The picture; it shows in notebooks, and `save(file)` writes it.
    """
    body = [
        element("title", escape(clean(title))),
        element("desc", escape(clean(description))),
        element("rect", width=round(width), height=round(height), rx=6, fill=PAPER),
        element("style", STYLE),
        *parts,
    ]
    whole = element(
        "svg",
        "\n" + "\n".join(body) + "\n",
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        width=round(width),
        height=round(height),
        role="img",
        class_="trelliswork",
        font_family=FONT,
        font_size=SIZE,
    )
    return Drawing(whole + "\n")


def _dark_rules() -> str:
    rules = (
        f'.trelliswork [{name}="{light}"]{{{name}:{dark}}}'
        for light, dark in DARK.items()
        for name in ("fill", "stroke")
    )
    return "@media (prefers-color-scheme:dark){" + "".join(rules) + "}"


STYLE = _dark_rules()


def element(name: str, content: Iterable[str] | str = "", /, **attributes: object) -> str:
    """Return one element; `_` in attribute names reads as `-`, a trailing one is dropped, None leaves an attribute out.

    >>> element("rect", x=1.5, stroke_width=2)
    '<rect x="1.5" stroke-width="2"/>'
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_written(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = content if isinstance(content, str) else "".join(content)
    return f"<{name}{written}>{inside}</{name}>" if inside else f"<{name}{written}/>"


def _written(value: object) -> str:
    return number(value) if isinstance(value, float) else str(value)


def number(value: float) -> str:
    """At most two decimals: the same text on every machine."""
    written = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if written == "-0" else written


def hint(content: str) -> str:
    """Return the text that a reader sees on pointing at the enclosing element."""
    return element("title", escape(clean(content)))


def text(x: float, y: float, content: str, *, size: float = SIZE, anchor: str = "middle", **attributes: object) -> str:
    """Return a line of text, its baseline at y; a very long one is cut, with the whole of it in a hint.

    Args:
        x: Where the line begins, ends or has its middle, as `anchor` says.
        y: Its baseline.
        content: The text, escaped here.
        size: Size of the font.
        anchor: Start, middle or end.
        attributes: Further attributes of the element.

    Returns:
        The element.
    """
    shown = shortened(content)
    inside = escape(shown) if shown == clean(content) else escape(shown) + hint(content)
    attributes.setdefault("fill", INK)
    return element("text", inside, x=x, y=y, text_anchor=anchor, font_size=size, **attributes)


def clean(content: str) -> str:
    """Return a text without the characters that XML cannot hold."""
    return "".join(_SHOWN.get(each, each if _is_xml(each) else "\ufffd") for each in content)


def _is_xml(character: str) -> bool:
    code = ord(character)
    return 0x20 <= code < 0xD800 or 0xE000 <= code < 0xFFFE or code > 0xFFFF


def shortened(content: str) -> str:
    """Return a text as it is shown."""
    whole = clean(content)
    return whole if len(whole) <= LONGEST else whole[: LONGEST - 1] + "…"


def text_width(content: str, size: float = SIZE, *, bold: bool = False) -> float:
    """About how wide a text is shown, rather too wide than too narrow.

    Args:
        content: The text.
        size: Size of the font.
        bold: Whether the font is bold, and so wider.

    Returns:
        The width in units of SVG.
    """
    ems = sum(_ems(each) for each in shortened(content))
    return size * ems * (1.08 if bold else 1.0)


def _ems(character: str) -> float:
    if unicodedata.combining(character):
        return 0.0
    if unicodedata.east_asian_width(character) in "WF":
        return 1.05
    if character in _NARROW:
        return 0.36
    if character in _WIDE:
        return 0.92
    return 0.7 if character.isupper() else 0.6


def percent(probability: float) -> str:
    """Return a probability in whole per cent; only what is all but certain reads as 100.

    >>> percent(0.873), percent(0.9999), percent(0.002)
    ('87%', '>99%', '<1%')
    """
    rounded = round(100 * probability)
    if rounded == 100 and probability < 0.99995:
        return ">99%"
    if rounded == 0 and probability > 0.00005:
        return "<1%"
    return f"{rounded}%"


def colour_of(label: str) -> str:
    """Return the colour of a label: the same in every picture. "O" (outside) is grey.

    >>> colour_of("LOC") == colour_of("LOC"), colour_of("O") == SOFT
    (True, True)
    """
    if label == "O":
        return SOFT
    key = 0
    for byte in label.encode("utf-8", "surrogatepass"):
        key = (key * HASH_BASE + byte) % HASH_MODULUS
    return PALETTE[key % len(PALETTE)]


def arrow_head(x: float, y: float, dx: float, dy: float, colour: str, **attributes: object) -> str:
    """Return a filled head whose tip is at (x, y), pointing along the unit vector (dx, dy).

    Args:
        x: Where the tip is.
        y: Where the tip is.
        dx: Direction that it points along, of length 1 together with dy.
        dy: The other part of the direction.
        colour: Fill of the head.
        attributes: Further attributes of the element.

    Returns:
        The element.
    """
    length, half = 8.0, 3.6
    back_x, back_y = x - length * dx, y - length * dy
    corners = ((x, y), (back_x - half * dy, back_y + half * dx), (back_x + half * dy, back_y - half * dx))
    points = " ".join(f"{number(a)},{number(b)}" for a, b in corners)
    return element("polygon", points=points, fill=colour, **attributes)


def path_data(*steps: str | float) -> str:
    """Return the `d` of a path from letters and numbers."""
    return " ".join(number(step) if isinstance(step, (int, float)) else step for step in steps)
