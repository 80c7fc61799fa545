"""The page of `explain --html`: which features voted for which tag."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from trelliswork.cli.report.html import heading, scrolling, section, whole_page
from trelliswork.models.taggers.features.votes import SHOWN, Explanation

LEGEND = (
    '<p class="note">Legend: <span class="for"></span> speaks for the tag, <span class="against"></span> against it; '
    f"the number is what it adds to the score of the tag. The {SHOWN} strongest of each token are shown.</p>\n"
)


def votes_page(found: Iterable[Explanation], model: str, file: str) -> str:
    """A whole HTML page that needs nothing but itself, with a section for each sentence."""
    title = f"Votes of {model} on {file}"
    lead = "For each token its tag, the probability of that, and the features that decided it, strongest first."
    sections = [
        section(f"Sentence {i}", escape(" ".join(token.token for token in each.tokens)), scrolling(each._repr_html_()))
        for i, each in enumerate(found, 1)
    ]
    return whole_page(title, [heading(title, lead), LEGEND, *sections])
