"""The list of all pages next to each page, made from titles alone.

Sphinx makes it anew for each page: it copies the headings of all pages and takes out those below their titles. Without
them from the start, the list is the same and the site takes less time.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from docutils import nodes
from sphinx.addnodes import toctree
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment


@cache
def titles(pages: BuildEnvironment) -> dict[str, Any]:
    """What each page says of itself: its title and the pages below it."""
    return {name: without_headings(each) for name, each in pages.tocs.items()}


def without_headings(contents: nodes.Element) -> Any:
    short: Any = contents.deepcopy()
    for top in short:
        if len(top) > 1:
            if below := list(top.findall(toctree)):
                top[1][:] = below
            else:
                top.pop(1)
    return short


def shorten(app: Sphinx, name: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Called with each page before the theme asks for the list."""
    whole, pages = context.get("toctree"), app.env

    def made(**options: Any) -> Any:
        headings = pages.tocs
        pages.tocs = titles(pages) if options.get("titles_only") else headings
        try:
            return whole(**options)
        finally:
            pages.tocs = headings

    if whole:
        context["toctree"] = made
