"""What every page must be: well-formed, readable in light and dark, with a title, and in need of nothing else."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

VOID = {"meta", "br", "link", "img", "hr"}


class Balance(HTMLParser):
    """Fails on a tag that is closed out of order; remembers what the page refers to."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.references: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.references += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "action")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-1:]}"
        self.open.pop()


def check_page(page: str) -> None:
    """Fail unless a page is as pages are here."""
    balance = Balance()
    balance.feed(page)
    assert balance.open == [] and balance.references == []
    assert "<script" not in page and "@import" not in page and "url(" not in page
    for drawing in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        ElementTree.fromstring(drawing)
    assert re.search(r"<title>[^<]+</title>", page) and '<meta name="viewport"' in page
    assert "prefers-color-scheme: dark" in page


def sections(page: str) -> list[str]:
    """The titles of the sections."""
    return re.findall(r"<h2>([^<]+)</h2>", page)
