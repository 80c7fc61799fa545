"""Which pages each newcomer reads: of the pages of a path the first that is there, with its heading if it is a part."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.documents import ROOT

PATHS: dict[str, tuple[tuple[str, str], ...]] = {
    "practitioner": (("docs/start/practitioner.md", ""), ("README.md", "Five minutes")),
    "switching": (("docs/start/switching.md", ""), ("docs/tutorials/features.md", "")),
    "researcher": (("docs/start/researcher.md", ""), ("docs/tutorials/chain.md", "")),
    "contributor": (("docs/start/contributor.md", ""), ("CONTRIBUTING.md", "")),
}


def page_of(path: str, root: Path = ROOT) -> str:
    """The text that a newcomer of this path reads."""
    name, heading = next((name, heading) for name, heading in PATHS[path] if (root / name).is_file())
    text = (root / name).read_text(encoding="utf-8")
    return text if not heading else _section(text, heading)


def _section(text: str, heading: str) -> str:
    begin = text.index(f"\n## {heading}\n")
    return text[begin : text.find("\n## ", begin + 1)]


def targets(text: str) -> set[str]:
    """The targets of `make` that a page names."""
    return set(re.findall(r"^\s*(?:\$ )?make (\w+)", text, re.M))
