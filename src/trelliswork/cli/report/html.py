"""The pieces of which pages are made: a page that needs nothing but itself, sections and tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path


def whole_page(title: str, sections: Iterable[str]) -> str:
    """A page with its styles inside; light or dark as the reader has it."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}: Trelliswork report</title>\n"
        f"<style>\n{_style('page.css')}{_style('picture.css')}</style>\n"
        f"</head>\n<body>\n<main>\n{''.join(sections)}</main>\n</body>\n</html>\n"
    )


def _style(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def heading(title: str, lead: str) -> str:
    """The title, and what the page is about."""
    return f'<h1>{escape(title)}</h1>\n<p class="lead">{escape(lead)}</p>\n'


def section(title: str, intro: str, *content: str) -> str:
    """A part of a page; `intro` is HTML."""
    return f"<section>\n<h2>{escape(title)}</h2>\n<p>{intro}</p>\n{''.join(content)}\n</section>\n"


def scrolling(drawing: str) -> str:
    """What may be wider than the page."""
    return f'<div class="scroll">{drawing}</div>'


def table(header: Sequence[str], rows: Iterable[Sequence[str]], *, last_is_best: bool = False) -> str:
    """A table of texts."""
    listed = list(rows)
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    lines = []
    for i, row in enumerate(listed):
        kind = ' class="best"' if last_is_best and i == len(listed) - 1 else ""
        lines.append(f"<tr{kind}>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>")
    return scrolling(f"<table><tr>{head}</tr>{''.join(lines)}</table>")
