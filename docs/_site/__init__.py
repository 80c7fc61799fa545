"""What `docs/conf.py` adds to Sphinx: formulas, links, pictures, charts, the reference and source pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from _site import pages, pictures, reference, sources


def write_styles(app: Sphinx) -> None:
    """The colours of drawings, taken from one of them."""
    from trelliswork.draw import segments

    folder = Path(app.outdir) / "_static"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "drawings.css").write_text(pictures.style_sheet(segments(["a"], [(0, 1, "A")]).svg), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("names", reference.Names)
    app.connect("source-read", pages.read)
    app.connect("env-before-read-docs", sources.read_again)
    app.connect("doctree-resolved", pictures.replace)
    app.connect("build-finished", sources.write)
    app.connect("builder-inited", write_styles)
    return {"version": "1", "parallel_read_safe": False, "parallel_write_safe": True}
