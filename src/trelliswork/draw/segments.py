"""A segmentation: tokens with a coloured bracket under each segment, its label and probability below."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from trelliswork.draw.inputs import as_index, as_list, as_probabilities, as_texts
from trelliswork.draw.svg import (
    MARGIN,
    Drawing,
    colour_of,
    drawing,
    element,
    hint,
    path_data,
    percent,
    text,
    text_width,
)
from trelliswork.errors import ScoreError

BASELINE, LEVEL, SMALL, GAP = 34.0, 46.0, 12.0, 18.0


class Segment(NamedTuple):
    start: int
    end: int
    label: str
    shown: str
    level: int


def segments(
    tokens: Sequence[str], segments: Sequence[tuple[int, int, object]], probabilities: object = None
) -> Drawing:
    """Draw segments over their tokens; those that overlap are stacked.

    >>> segments(["New", "York", "sleeps"], [(0, 2, "LOC"), (2, 3, "O")], [0.93, 0.98])  # doctest: +SKIP

    Args:
        tokens: The words.
        segments: (start, end, label) of each segment, end exclusive.
        probabilities: One for each segment; None to write none.

    Returns:
        The picture; it shows in notebooks, and `save(file)` writes it.
    """
    words = as_texts(tokens, "tokens")
    drawn = _check(segments, probabilities, len(words))
    edges = _edges(words, drawn)
    parts = [
        *(text((a + b) / 2, BASELINE, w, font_weight=600) for a, b, w in zip(edges, edges[1:], words, strict=False)),
        *(_bracket(segment, edges, words) for segment in drawn),
    ]
    n_levels = 1 + max((segment.level for segment in drawn), default=0)
    described = "; ".join(f"{each.shown}: {' '.join(words[each.start : each.end])}" for each in drawn) or "none"
    height = BASELINE + 8 + LEVEL * n_levels + MARGIN / 2
    return drawing(edges[-1] + MARGIN, height, f"Segments of: {' '.join(words)}", described, parts)


def _check(segments: object, probabilities: object, n: int) -> list[Segment]:
    given = as_list(segments, "segments")
    sure = None if probabilities is None else as_probabilities(probabilities, len(given), "segment")
    checked: list[Segment] = []
    for i, each in enumerate(given):
        if not isinstance(each, Sequence) or isinstance(each, str) or len(each) != 3:
            raise ScoreError(f"a segment is (start, end, label); got {each!r} at segment {i}")
        start, end = as_index(each[0], f"the start of segment {i}"), as_index(each[1], f"the end of segment {i}")
        if not 0 <= start < end <= n:
            raise ScoreError(
                f"segments must have 0 <= start < end <= {n}, end exclusive; got ({start}, {end}) at segment {i}"
            )
        shown = str(each[2]) if sure is None else f"{each[2]} {percent(sure[i])}"
        taken = {other.level for other in checked if other.start < end and start < other.end}
        level = next(level for level in range(len(taken) + 1) if level not in taken)
        checked.append(Segment(start, end, str(each[2]), shown, level))
    return checked


def _edges(words: Sequence[str], segments: Sequence[Segment]) -> list[float]:
    """Return where each token begins: wide enough for the token, and for the label of each segment under its tokens."""
    widths = [text_width(word, bold=True) + GAP for word in words]
    for segment in segments:
        inside = slice(segment.start, segment.end)
        missing = text_width(segment.shown, SMALL, bold=True) + GAP - sum(widths[inside])
        if missing > 0:
            share = missing / (segment.end - segment.start)
            widths[inside] = [width + share for width in widths[inside]]
    return list(accumulate(widths, initial=MARGIN))


def _bracket(segment: Segment, edges: Sequence[float], words: Sequence[str]) -> str:
    colour = colour_of(segment.label)
    left, right = edges[segment.start] + 4, edges[segment.end] - 4
    top = BASELINE + 8 + LEVEL * segment.level
    line = path_data("M", left, top, "v", 5.0, "q", 0, 5, 5, 5, "H", right - 5, "q", 5, 0, 5, -5, "v", -5.0)
    return element(
        "g",
        [
            hint(f"{segment.shown}: {' '.join(words[segment.start : segment.end])}"),
            element("path", d=line, fill="none", stroke=colour, stroke_width=2.5, stroke_linecap="round"),
            text((left + right) / 2, top + 26, segment.shown, size=SMALL, fill=colour, font_weight=700),
        ],
    )
