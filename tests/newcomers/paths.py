"""The paths of newcomers: which page each follows, with which files."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.docs.documents import ROOT
from tests.newcomers.corpora import write_dutch, write_words
from trelliswork.data.corpus import builtin_corpus, write_corpus
from trelliswork.data.corpus.trees import write_treebank

STORY = "Dr Jordan visited Lincoln on Monday. May Lincoln left Chase.\n"
Sizes = tuple[int, int, int]


def write_english(folder: Path, sizes: Sizes) -> None:
    """Write the built-in corpus as columns, and a short text."""
    write_corpus(builtin_corpus(sizes=sizes), folder)
    for name in ("story.txt", "new.txt"):
        (folder / name).write_text(STORY, encoding="utf-8")


def write_linguistic(folder: Path, sizes: Sizes) -> None:
    """Write the built-in corpus as treebanks, and spelt words."""
    write_treebank(builtin_corpus(sizes=sizes), folder)
    write_words(folder)
    (folder / "story.txt").write_text(STORY, encoding="utf-8")


class Newcomer(NamedTuple):
    """What somebody reads, a page of the documents or only what `--help` prints, and the files at hand."""

    page: str | None
    write_files: Callable[[Path, Sizes], None] = write_english


PATHS = {
    "practitioner": Newcomer("docs/start/practitioner.md"),
    "practitioner with Dutch": Newcomer("docs/start/practitioner.md", write_dutch),
    "switching": Newcomer("docs/start/switching.md"),
    "researcher": Newcomer("docs/start/researcher.md"),
    "linguist": Newcomer("docs/start/linguist.md", write_linguistic),
    "service": Newcomer("docs/start/service.md"),
    "help only": Newcomer(None),
    "contributor": Newcomer("docs/start/contributor.md"),
}


def page_of(path: str, root: Path = ROOT) -> str:
    """Return the text that this newcomer reads; nothing for one who reads only `--help`."""
    page = PATHS[path].page
    return "" if page is None else (root / page).read_text(encoding="utf-8")


def targets(text: str) -> set[str]:
    """Return the targets of `make` that a page names."""
    return set(re.findall(r"^\s*(?:\$ )?make (\w+)", text, re.M))
