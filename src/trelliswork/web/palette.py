"""The colours of `trelliswork.draw` as custom properties of CSS, so that the page and its pictures have the same.

Pictures carry a style sheet that follows the preference of the reader. Where they are a part of the page without it,
the rules here give them the colours of the page, which its switch between light and dark changes too.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from trelliswork.draw.svg import ACCENT, DARK, EMPTY, HEAT, INK, LINE, PALETTE, PAPER, SOFT, colour_of
from trelliswork.tags.schemes import split_tag

NAMES = {
    "paper": PAPER, "ink": INK, "soft": SOFT, "line": LINE, "empty": EMPTY, "accent": ACCENT, "heat": HEAT,
    **{f"label-{i}": colour for i, colour in enumerate(PALETTE)},
}  # fmt: skip


@cache
def palette_css() -> str:
    """Return a style sheet: properties, their dark values by preference or by choice, and the colours of pictures."""
    light = "".join(f"--{name}:{colour};" for name, colour in NAMES.items())
    dark = "".join(f"--{name}:{DARK[colour]};" for name, colour in NAMES.items())
    by_colour = {colour: name for name, colour in NAMES.items()}
    rules = [
        f'.trelliswork [{kind}="{colour}"]{{{kind}:var(--{name})}}'
        for colour, name in by_colour.items()
        for kind in ("fill", "stroke")
    ]
    return "\n".join([
        f":root{{color-scheme:light;{light}}}",
        f'@media (prefers-color-scheme:dark){{:root:not([data-theme="light"]){{color-scheme:dark;{dark}}}}}',
        f':root[data-theme="dark"]{{color-scheme:dark;{dark}}}',
        *rules, "",
    ])  # fmt: skip


def colours_of(labels: Iterable[str], scheme: str) -> dict[str, int | None]:
    """Return the number of the colour of each label, and of the type of span that a tag belongs to; None is grey.

    >>> colours = colours_of(["O", "B-PER"], "IOB2")
    >>> colours["O"], colours["B-PER"] == colours["PER"]
    (None, True)
    """
    colours: dict[str, int | None] = {}
    for label in labels:
        kind = (split_tag(label)[1] or label) if scheme != "plain" else label
        colour = colour_of(kind)
        colours[label] = colours[kind] = PALETTE.index(colour) if colour in PALETTE else None
    return colours
