"""The page of `explain --html`: what speaks for the answers of a model, or what else they may be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trelliswork.cli.report.html import heading, scrolling, section, whole_page
from trelliswork.models.votes import isolated


def explanation_page(found: Sequence[Any], model: str, file: str) -> str:
    """A whole HTML page that needs nothing but itself, with a section for each sentence (see `Model.explain`)."""
    kind = found[0]
    title = f"{kind.title} of {model} on {file}"
    sections = [
        section(f"Sentence {i}", isolated(" ".join(each.words)), scrolling(each._repr_html_()))
        for i, each in enumerate(found, 1)
    ]
    return whole_page(title, [heading(title, kind.lead), kind.legend, *sections])
