"""Links of a built site: those inside lead to a page and a place that exist, those outside are well-formed."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

LINK = re.compile(r"""<[^>]*?\s(?:href|src)=["']([^"']*)["']""")
PLACE = re.compile(r"""\s(?:id|name)=["']([^"']+)["']""")
LOADS = re.compile(r"""<(?:script|img|link|iframe)[^>]*?\s(?:src|href)=["'](?:https?:)?//""")


def broken_links(site: Path) -> list[str]:
    """A line for each link that leads nowhere, and for each file that a page would load from another host."""
    found = []
    site = site.resolve()
    for page in sorted(site.rglob("*.html")):
        text, name = page.read_text(encoding="utf-8"), page.relative_to(site).as_posix()
        found += [
            f"{name}: {problem}" for link in sorted(set(LINK.findall(text))) if (problem := wrong(link, page, site))
        ]
        found += [f"{name}: loads from another host: {match}" for match in LOADS.findall(text)]
    return found


def wrong(link: str, page: Path, site: Path) -> str | None:
    link = link.replace("&amp;", "&")
    parts = urlsplit(link)
    if parts.scheme in ("http", "https"):
        return None if re.fullmatch(r"[\w.-]+(:\d+)?", parts.netloc) else f"not an address: {link}"
    if parts.scheme:
        return None if parts.scheme in ("data", "mailto") else f"unknown scheme: {link}"
    target = target_of(page.parent, parts.path, site) if parts.path else page
    if target is None:
        return f"no such file: {link}"
    if parts.fragment and target.suffix == ".html" and unquote(parts.fragment) not in places(target):
        return f"no such place: {link}"
    return None


@cache
def target_of(folder: Path, path: str, site: Path) -> Path | None:
    """The file of the site that a link from a page in a folder leads to."""
    target = (folder / unquote(path)).resolve()
    return target if target.is_relative_to(site) and target.is_file() else None


@cache
def places(page: Path) -> frozenset[str]:
    return frozenset(PLACE.findall(page.read_text(encoding="utf-8")))
