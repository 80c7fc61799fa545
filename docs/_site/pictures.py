"""Pictures in both colour schemes: drawings of the library are put into the page, where its theme reaches them."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

DRAWN = 'class="trelliswork"'
STYLE = re.compile(r"<style>@media \(prefers-color-scheme:dark\)\{(.*?\})\}</style>", re.S)
RULE = re.compile(r"(\.trelliswork [^{]*)\{([^}]*)\}")


def in_page(svg: str, caption: str = "") -> str:
    """A drawing as part of a page, without its own rule for dark screens."""
    note = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    one_line = " ".join(STYLE.sub("", svg).split("\n"))  # an empty line would end HTML in Markdown
    return f'<figure class="drawing">{one_line.strip()}{note}</figure>'


def style_sheet(svg: str) -> str:
    """The dark colours of drawings for the dark theme, whether it was chosen or follows the system."""
    rules = RULE.findall(STYLE.search(svg)[1])  # type: ignore[index]
    chosen = "\n".join(f'body[data-theme="dark"] {name}{{{colour}}}' for name, colour in rules)
    system = "\n".join(f'body:not([data-theme="light"]) {name}{{{colour}}}' for name, colour in rules)
    return f"{chosen}\n@media (prefers-color-scheme: dark) {{\n{system}\n}}\n"


def replace(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Every picture that the library drew becomes part of the page."""
    if app.builder.format != "html":
        return
    for image in list(doctree.findall(nodes.image)):
        path = Path(app.srcdir) / image["uri"]
        if path.suffix == ".svg" and DRAWN in (svg := path.read_text(encoding="utf-8")):
            raw: Any = nodes.raw("", in_page(svg), format="html")
            parent = image.parent
            if isinstance(parent, nodes.paragraph) and len(parent) == 1:  # a figure is no part of a paragraph
                parent.replace_self(raw)
            else:
                image.replace_self(raw)


# --- the gallery ---------------------------------------------------------------------------------------------

CODE = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)


def drawn(text: str) -> str:
    """A page whose Python blocks are run, each followed by the picture that it leaves in `picture`."""
    namespace: dict[str, Any] = {}

    def shown(match: re.Match[str]) -> str:
        namespace.pop("picture", None)
        exec(compile(match[1], "gallery.md", "exec"), namespace)
        drawing = namespace.get("picture")
        return match[0] if drawing is None else f"{in_page(drawing.svg)}\n\n{match[0]}"

    return CODE.sub(shown, text)
