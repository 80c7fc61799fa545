"""What `docs/conf.py` adds to Sphinx: formulas, links, pictures, charts, navigation, the reference and source pages."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from _site import navigation, pages, pictures, reference, sources
from trelliswork.draw import segments


def write_styles(app: Sphinx) -> None:
    """The colours of drawings, taken from one of them."""
    folder = Path(app.outdir) / "_static"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "drawings.css").write_text(pictures.style_sheet(segments(["a"], [(0, 1, "A")]).svg), encoding="utf-8")


def code_and_results() -> str:
    """Changes when this package or a stored result does: every page is then read again."""
    here = Path(__file__).parent
    files = sorted([*here.glob("*.py"), *(here.parent / "results").glob("*.json")])
    return sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_config_value("site_code", code_and_results(), "env")
    app.add_directive("names", reference.Names)
    app.connect("source-read", pages.read)
    app.connect("env-before-read-docs", sources.read_again)
    app.connect("doctree-resolved", pictures.replace)
    app.connect("html-page-context", navigation.shorten, priority=400)  # that of the theme is 500
    app.connect("build-finished", sources.write)
    app.connect("builder-inited", write_styles)
    return {"version": "1", "parallel_read_safe": False, "parallel_write_safe": True}
