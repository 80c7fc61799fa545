"""Sentences with their spans marked, in HTML."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from trelliswork.data import Sentence
from trelliswork.draw.svg import percent
from trelliswork.models.examined import Example, Part
from trelliswork.tags.schemes import spans_of

if TYPE_CHECKING:
    from trelliswork.models import Analysis

SCHEME = "IOB2"


def marked_example(example: Example, *, right: bool = True) -> str:
    """A paragraph with each part that was found, its label and probability; wrong and missed ones are told apart."""
    sure = dict(zip(example.found, example.confidences, strict=False))
    found = []
    for part in example.found:
        is_right = part in example.right
        if right or not is_right:
            label = example.label(part)
            shown = f"{label} {percent(sure[part])}" if part in sure else label
            found.append((part, shown, not is_right))
    missed = sorted(set(example.gold) - example.right)
    told = "; ".join(
        f"{example.text(part)} is {example.label(part)}" if part[2] else example.text(part) for part in missed
    )
    ending = f' <span class="missed">gold: {escape(told)}</span>' if told else ""
    return f'<p class="sentence" dir="auto">{_with_marks(example.words, found, example.joint)}{ending}</p>\n'


def analysis_items(sentence: Sentence, analyses: Sequence[Analysis]) -> str:
    """A list of whole analyses with a bar for each probability."""
    items = []
    for analysis in analyses:
        found = [(span, span[2], False) for span in spans_of(analysis.tags, SCHEME)]
        width = f"{100 * analysis.probability:.1f}%"
        items.append(
            f'<li><span class="percent">{100 * analysis.probability:.1f}%</span>'
            f'<span class="sentence">{_with_marks(sentence.words, found)}</span>'
            f'<span class="bar"><i style="width:{width}"></i></span></li>\n'
        )
    return f'<ol class="analyses">\n{"".join(items)}</ol>'


def _with_marks(words: Sequence[str], parts: Sequence[tuple[Part, str, bool]], joint: str = " ") -> str:
    pieces: list[str] = []
    position = 0
    for (start, end, *_), shown, is_wrong in parts:
        pieces += map(escape, words[position:start])
        kind = ' class="wrong"' if is_wrong else ""
        label = f"<small>{escape(shown)}</small>" if shown else ""
        pieces.append(f"<mark{kind}>{escape(joint.join(words[start:end]))}{label}</mark>")
        position = end
    pieces += map(escape, words[position:])
    return joint.join(pieces)
