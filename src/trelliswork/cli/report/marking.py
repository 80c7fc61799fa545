"""Sentences with their spans marked, in HTML."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from trelliswork.data import Sentence
from trelliswork.draw.svg import percent
from trelliswork.tags.schemes import Span, spans_of

if TYPE_CHECKING:
    from trelliswork.models import Analysis, Confidences

SCHEME = "IOB2"


def marked_sentence(sentence: Sentence, answer: Confidences) -> str:
    """A paragraph with each predicted span, its label and probability; wrong and missed ones are told apart."""
    gold = set(spans_of(sentence.tags, SCHEME)) if sentence.tags is not None else None
    found: list[tuple[Span, str, bool]] = []
    for span in answer.spans:
        place = (span.start, span.end, span.label)
        found.append((place, f"{span.label} {percent(span.probability)}", gold is not None and place not in gold))
    missed = sorted((gold or set()) - {place for place, _, _ in found})
    told = "; ".join(f"{' '.join(sentence.words[start:end])} is {label}" for start, end, label in missed)
    ending = f' <span class="missed">gold: {escape(told)}</span>' if told else ""
    return f'<p class="sentence">{_with_marks(sentence.words, found)}{ending}</p>\n'


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


def _with_marks(words: Sequence[str], spans: Sequence[tuple[Span, str, bool]]) -> str:
    pieces: list[str] = []
    position = 0
    for (start, end, _), shown, is_wrong in spans:
        pieces += map(escape, words[position:start])
        kind = ' class="wrong"' if is_wrong else ""
        pieces.append(f"<mark{kind}>{escape(' '.join(words[start:end]))}<small>{escape(shown)}</small></mark>")
        position = end
    pieces += map(escape, words[position:])
    return " ".join(pieces)
