"""How pages are read: texts from outside this folder, links between them, formulas, citations.

A line `<!-- text: ../../ARCHITECTURE.md -->` is replaced by that file. Links of a text are relative to its file, so
that they work where the file is; here they lead to the page that shows their target.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

from sphinx.application import Sphinx

from _site import charts, formulas, pictures, sources

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent
TEXT = re.compile(r"^<!-- text: (\S+) -->$", re.M)
RATIO = re.compile(r"<!-- ratio: (.+?) -->")
LINK = re.compile(r"(?<=\]\()([^)\s#:]+)(#[^)\s]*)?(?=\))")
CODE_NAME = re.compile(
    r"`((?:tests|structures|semirings|nn|models|training|distributions|data|metrics|text|terms|cli)/[\w/.]+\.py(?:::?[\w.:]+)?)`"
)
ROW = re.compile(r"^\| \[(S\d[^\]]*)\] \|", re.M)
CITATION = re.compile(r"\[(S\d[^\[\]]*)\](?!\()")
WITH_FORMULAS = ("math/", "tutorials/", "errata", "equations", "guides/")


def read(app: Sphinx, docname: str, content: list[str]) -> None:
    """Called with each page before it is parsed."""
    page = DOCS / f"{docname}.md"
    text = TEXT.sub(lambda match: included(app, page, match[1]), links(content[0], page))
    text = RATIO.sub(lambda match: charts.ratio(*match[1].split(", ")), text)
    if docname == "gallery":
        text = pictures.drawn(text)
    if docname == "settings":
        text = text.replace("<unk>", "`<unk>`")
    if docname == "equations":
        text = with_targets(text)
    if docname in sources.PAGES:
        text = CODE_NAME.sub(lambda match: sources.link(match[1]), text)
    if docname.startswith("results/"):
        text = charts.added(text, docname.removeprefix("results/"))
    up = "../" * docname.count("/")
    if docname.startswith(WITH_FORMULAS):
        text = formulas.with_formulas(text, f"{up}equations.html")
    if docname.startswith("math/") or docname == "errata":
        text = outside_code(
            text, lambda part: CITATION.sub(lambda m: formulas.citation(m[1], f"{up}equations.html"), part)
        )
    content[0] = text


def included(app: Sphinx, page: Path, name: str) -> str:
    path = (page.parent / name).resolve()
    app.env.note_dependency(str(path))
    return links(path.read_text(encoding="utf-8"), path)


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """A text with its prose changed and its code and tags as they are."""
    parts = re.split(r"(^```.*?^```$|`[^`\n]*`|<div class=\"formulas\">.*?$)", text, flags=re.M | re.S)
    parts[::2] = [change(part) for part in parts[::2]]
    return "".join(parts)


# --- links ---------------------------------------------------------------------------------------------------


def links(text: str, file: Path) -> str:
    """A text with its relative links to files of the repository leading to pages of the site."""

    def lead(match: re.Match[str]) -> str:
        target = (file.parent / match[1]).resolve()
        found = page_of(target)
        return (found or match[1]) + (match[2] or "")

    def shown(match: re.Match[str]) -> str:
        target = (file.parent / match[2]).resolve()
        outside = target.exists() and (target.is_dir() or target.suffix == ".md") and page_of(target) is None
        return match[1] if outside else match[0]

    text = re.sub(r"(?<!!)\[([^\[\]]+)\]\(([^)\s#:]+)\)", shown, text)  # folders and texts without a page
    return outside_code(text, lambda part: LINK.sub(lead, part))


def page_of(target: Path) -> str | None:
    """The page that shows a file of the repository, from the root of the site; None for pictures and the like."""
    if target.is_dir():
        target = next(
            (target / name for name in ("README.md", "index.md", "__init__.py") if (target / name).exists()), target
        )
    if shown := shown_elsewhere().get(target):
        return f"/{shown}"
    if target.suffix == ".md" and target.is_relative_to(DOCS):
        return f"/{target.relative_to(DOCS).as_posix()}"
    if target.is_relative_to(DOCS) and target.exists():
        return f"/{target.relative_to(DOCS).as_posix()}"
    return None


@cache
def shown_elsewhere() -> dict[Path, str]:
    """Files outside this folder, and the pages that show them."""
    found = {}
    for folder in ("math", "project"):
        for page in (DOCS / folder).glob("*.md"):
            for name in TEXT.findall(page.read_text(encoding="utf-8")):
                found[(page.parent / name).resolve()] = page.relative_to(DOCS).as_posix()
    found[ROOT / "README.md"] = "index.md"
    return found


# --- the index of equations ----------------------------------------------------------------------------------


def with_targets(text: str) -> str:
    """Each row with a target for every equation in it."""

    def row(match: re.Match[str]) -> str:
        names = sorted({formulas.anchor(each) for each in sources.equations_of(match[1])} | {formulas.anchor(match[1])})
        return f"| {''.join(f'<a id={chr(34)}{name}{chr(34)}></a>' for name in names)}[{match[1]}] |"

    text = ROW.sub(row, text)
    heads = {each[:2]: None for each in re.findall(r"S\d", text)}
    for source in heads:
        text = text.replace(f"- **[{source}]**", f'- <a id="{source.lower()}"></a>**[{source}]**', 1)
    return text
