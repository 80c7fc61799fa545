"""Reading and running a page of the documentation: tutorials, guides, first steps, reference and gallery.

The Python blocks of a page run in order in one namespace and in an empty folder. A text block right after a Python
block is what it prints; a picture that the page shows is one that it saves under that name.
"""

from __future__ import annotations

import contextlib
import io
import math
import re
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from tests.docs.documents import ROOT

DOCS = ROOT / "docs"
FOLDER = DOCS / "tutorials"
INDEX = FOLDER / "README.md"
OTHERS = ("guides/*", "reference/*", "gallery")  # those of start/ are followed by tests/newcomers
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
PICTURE = re.compile(r"!\[[^\]]+\]\(([^)]+)\)")
TRAINS = re.compile(r"trelliswork\(f?\"train |\.fit\(|\btrain\(|torch\.optim|\.backward\(\)")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")


class Step(NamedTuple):
    """A Python block, the line its code begins at, and where the text stands that it should print, if any."""

    line: int
    code: str
    output: tuple[int, int] | None


def pages() -> list[Path]:
    return sorted(page for page in FOLDER.glob("*.md") if page != INDEX)


def other_pages() -> list[Path]:
    """Pages outside the tutorials that have Python blocks."""
    found = [page for pattern in OTHERS for page in sorted(DOCS.glob(f"{pattern}.md"))]
    return [page for page in found if steps_of(page.read_text(encoding="utf-8"))]


def page_named(name: str) -> Path:
    """`chain` is a tutorial, `reference/data` any page of the documentation."""
    return DOCS / f"{name}.md" if "/" in name else FOLDER / f"{name}.md"


def steps_of(text: str) -> list[Step]:
    blocks = list(BLOCK.finditer(text))
    steps = []
    for block, after in zip_longest(blocks, blocks[1:]):
        if block[1] == "python":
            is_output = after is not None and after[1] == "text" and not text[block.end() : after.start()].strip()
            line = text.count("\n", 0, block.start(2))
            steps.append(Step(line, block[2], after.span(2) if after is not None and is_output else None))
    return steps


def pictures_of(text: str) -> list[str]:
    return PICTURE.findall(text)


def n_exact(text: str) -> int:
    """How many steps come before the first that trains: what they show is the same on every machine."""
    steps = steps_of(text)
    return next((i for i, step in enumerate(steps) if TRAINS.search(step.code)), len(steps))


def is_exact(picture: str, text: str) -> bool:
    """Whether a picture is drawn before anything is trained."""
    return any(picture in step.code for step in steps_of(text)[: n_exact(text)])


def same_up_to_rounding(said: str, found: str) -> bool:
    """Whether two texts differ in their numbers alone, and in those by 5 % or 0.02: a sum that is added up in another
    order, as on another processor, leads training elsewhere by a little."""
    if NUMBER.sub("#", said) != NUMBER.sub("#", found):
        return False
    pairs = zip(map(float, NUMBER.findall(said)), map(float, NUMBER.findall(found)), strict=True)
    return all(math.isclose(a, b, rel_tol=0.05, abs_tol=0.02) for a, b in pairs)


def run(page: Path, folder: Path) -> list[str]:
    """What each step of a page prints; what it saves is in the folder."""
    namespace: dict[str, Any] = {"__name__": page.stem}
    printed = []
    with contextlib.chdir(folder):
        for step in steps_of(page.read_text(encoding="utf-8")):
            # Empty lines in front: an error then names the line of the page.
            code = compile("\n" * step.line + step.code, str(page), "exec")
            with contextlib.redirect_stdout(io.StringIO()) as output:
                exec(code, namespace)
            printed.append(output.getvalue())
    return printed


def shown(text: str) -> list[str | None]:
    """What a page says its steps print."""
    return [None if step.output is None else text[slice(*step.output)] for step in steps_of(text)]


def with_outputs(text: str, printed: list[str]) -> str:
    """The page with what its steps print in place of what it says they do."""
    for step, output in reversed(list(zip(steps_of(text), printed, strict=True))):
        if step.output is not None:
            text = text[: step.output[0]] + output + text[step.output[1] :]
    return text
