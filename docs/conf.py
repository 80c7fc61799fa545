"""The site: `make docs` builds it into docs/_build/html."""

from __future__ import annotations

import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS), str(DOCS.parent / "src"), str(DOCS.parent)]

from trelliswork import __version__  # noqa: E402, found by the line above

project, author = "Trelliswork", "the Trelliswork authors"
release = version = __version__
copyright = "the Trelliswork authors, Apache-2.0"

extensions = ["myst_parser", "sphinx_copybutton", "_site"]
myst_enable_extensions = ["attrs_inline", "attrs_block", "colon_fence", "deflist"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header"]  # pages may begin at any level
root_doc = "index"
exclude_patterns = ["_build", "_site", "_static"]
nitpicky = True
nitpick_ignore_regex = [(r"py:.*", r".*")]  # annotations name types of torch and the standard library
default_role = "code"
smartquotes = False  # two hyphens begin an option
pygments_style, pygments_dark_style = "friendly", "github-dark"
highlight_language = "text"
copybutton_prompt_text = r"\$ |>>> "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_title = "Trelliswork"
html_static_path = ["_static"]
html_css_files = ["site.css", "drawings.css"]
html_show_sphinx = False
html_copy_source = False
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#0b5aa8",
        "color-brand-content": "#0b5aa8",
        "font-stack": "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif",
    },
    "dark_css_variables": {"color-brand-primary": "#79bbff", "color-brand-content": "#79bbff"},
}
