"""Pages that show functions and tests with the numbers of their lines: what equations and errata lead to."""

from __future__ import annotations

import ast
import re
from functools import cache
from html import escape
from pathlib import Path

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
from sphinx.application import Sphinx
from tests.docs.documents import equations_of

__all__ = ["PAGES", "equations_of", "link", "read_again", "write"]

PAGES = ("equations", "errata")  # those that lead to sources

ROOT = Path(__file__).parents[2]
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{file}</title><link rel="stylesheet" href="{up}_static/pygments.css">
<link rel="stylesheet" href="{up}_static/styles/furo.css"><link rel="stylesheet" href="{up}_static/site.css"></head>
<body><script>document.body.dataset.theme = localStorage.getItem("theme") || "auto"</script>
<main class="source"><p><a href="{up}equations.html">Equations</a></p><h1>{file}</h1>{parts}</main></body></html>
"""
wanted: dict[str, dict[str, tuple[int, int]]] = {}


def link(name: str, up: str = "") -> str:
    """A link to `structures/chain/structure.py:forward` or `tests/x/test_y.py::test_z`, shown by its last part."""
    path, _, scope = name.partition(":")
    file = path if path.startswith("tests/") else f"src/trelliswork/{path}"
    names = [each for each in re.split(r"::|\.", scope.strip(":")) if each]
    place = extent(file, tuple(names))
    part = "-".join(names) or "whole"
    wanted.setdefault(file, {})[part] = place
    shown = names[-1] if names and names[-1].startswith("test_") else ".".join(names) or path
    return f'<a href="{up}source/{page_name(file)}.html#{part}" title="{name}"><code>{shown}</code></a>'


def page_name(file: str) -> str:
    return file.removeprefix("src/trelliswork/").removesuffix(".py")


@cache
def tree_of(file: str) -> ast.Module:
    return ast.parse((ROOT / file).read_text(encoding="utf-8"))


@cache
def extent(file: str, names: tuple[str, ...]) -> tuple[int, int]:
    """First and last line of a definition; of the class if a method is inherited, of the file if there is none."""
    body: list[ast.stmt] = tree_of(file).body
    place = (1, body[-1].end_lineno or 1)
    for name in names:
        node = next((each for each in body if name in names_of(each)), None)
        if node is None:
            return place
        body = getattr(node, "body", [])
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
        place = (first, node.end_lineno or first)
    return place


def names_of(node: ast.stmt) -> tuple[str, ...]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return (node.name,)
    if isinstance(node, ast.Assign):
        return tuple(each.id for each in node.targets if isinstance(each, ast.Name))
    return ()


def write(app: Sphinx, error: Exception | None) -> None:
    """After the build: a page for each file that something links to."""
    if error is not None or app.builder.format != "html":
        return
    for file, parts in sorted(wanted.items()):
        path = Path(app.outdir) / "source" / f"{page_name(file)}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
        shown = "".join(part_of(name, place, lines) for name, place in sorted(parts.items(), key=lambda item: item[1]))
        up = "../" * (page_name(file).count("/") + 1)
        path.write_text(PAGE.format(file=escape(file), up=up, parts=shown), encoding="utf-8")


def part_of(name: str, place: tuple[int, int], lines: list[str]) -> str:
    first, last = place
    look = HtmlFormatter(linenos="inline", linenostart=first, cssclass="highlight")
    code = highlight("\n".join(lines[first - 1 : last]), PythonLexer(), look)
    return f'<h2 id="{escape(name)}">{escape(name.replace("-", "."))}</h2>{code}'


def read_again(app: Sphinx, environment: object, names: list[str]) -> None:
    """Pages that lead to sources are read in every build: what they link to is not stored between builds."""
    names += [name for name in PAGES if name not in names and name in app.env.found_docs]
