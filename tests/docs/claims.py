"""Figures of documents and where they come from.

A figure is a number that claims accuracy or speed: a per cent, a number of times, milliseconds, tokens per second, or a
number with a decimal point beside a measure (F1, LAS, error rate, ...), in prose or in a table. Its source is a file of
`docs/results` that is linked in the same paragraph or table row, or else in the same section, and that has the number:
as it is, or more precisely. A paragraph may instead name a publication by a link, or the test that computes it. What is
in a fenced block is printed by the command or the program that the block shows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from tests.docs.documents import ROOT

RESULTS = ROOT / "docs" / "results"
NUMBER = r"(?<![\w.,])\d[\d,]*(?:\.\d+)?"
UNIT = r" ?(?:%|x\b|ms\b|per cent\b|(?:tokens|sentences|words)(?:/s| (?:a|per) second)|times (?:as|faster|the)\b)"
WITH_UNIT = re.compile(rf"({NUMBER})(?={UNIT})")
DECIMAL = re.compile(r"(?<![\w.,])\d[\d,]*\.\d+(?![\w.]*\d)")
MEASURE = re.compile(
    r"\b(?:F1|UAS|LAS|CLAS|WER|PER|BLEU|perplexity|accuracy|precision|recall|error rates?|calibration error|per cent|"
    r"times as (?:long|fast)|ours, ms)\b"
)
FENCED, INLINE = re.compile(r"^```.*?^```$", re.M | re.S), re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ ", re.M)


class Figure(NamedTuple):
    """A number as it is printed, the line, the results that are linked, and whether something else is cited."""

    text: str
    line: int
    results: tuple[Path, ...]
    cited: bool


def figures_of(page: Path) -> Iterator[Figure]:
    """All figures of a page."""
    source = page.read_text(encoding="utf-8")
    text = FENCED.sub(lambda block: "\n" * block[0].count("\n"), source)
    for begin, section in _pieces(text, HEADING):
        linked = _results(section, page)
        for line, block, context in _blocks(section, text.count("\n", 0, begin) + 1):
            own, cited = _results(block, page), "](http" in block or "tests/" in section
            for found in _numbers(block, context):
                yield Figure(found, line, own or linked, cited)


def _pieces(text: str, boundary: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    edges = [0, *(match.start() for match in boundary.finditer(text)), len(text)]
    yield from ((begin, text[begin:end]) for begin, end in pairwise(edges) if begin < end)


def _blocks(section: str, first: int) -> Iterator[tuple[int, str, str]]:
    """Paragraphs and rows of tables with their line, and what says which measure they are of: a row has its header."""
    for begin, paragraph in _pieces(section, re.compile(r"(?<=\n)\n+(?=\S)")):
        lines = paragraph.strip("\n").splitlines()
        line = first + section.count("\n", 0, begin) + len(paragraph) - len(paragraph.lstrip("\n"))
        if lines and lines[0].startswith("|"):
            yield from ((line + i, row, lines[0] + row) for i, row in enumerate(lines) if row.startswith("|"))
        else:
            yield line, paragraph, paragraph


def _numbers(block: str, context: str) -> list[str]:
    plain = LINK.sub("]", INLINE.sub("`", block))
    with_unit = WITH_UNIT.findall(plain)
    return [*with_unit, *(DECIMAL.findall(plain) if MEASURE.search(context) else [])]


def _results(text: str, page: Path) -> tuple[Path, ...]:
    found = [(page.parent / link.partition("#")[0]).resolve() for link in LINK.findall(text) if ":" not in link]
    return tuple(path for path in found if RESULTS in path.parents or path == RESULTS)


def is_stored(text: str, results: tuple[Path, ...]) -> bool:
    """Whether one of the files has the number, as it is or more precisely; a page speaks for its JSON as well."""
    printed, decimals = float(text.replace(",", "")), len(text.partition(".")[2])
    return any(_is(printed, decimals, value) for path in results for value in numbers_in(path))


def _is(printed: float, decimals: int, value: float) -> bool:
    return any(abs(printed - scale * value) <= 0.5000001 * 10**-decimals for scale in (1, 100))


@cache
def numbers_in(path: Path) -> frozenset[float]:
    """All numbers of a page of results and of the JSON beside it; of a folder, of all its files."""
    files = sorted(path.glob("*")) if path.is_dir() else [path.with_suffix(".md"), path.with_suffix(".json")]
    return frozenset(number for file in files if file.is_file() for number in _numbers_of_file(file))


def _numbers_of_file(file: Path) -> Iterator[float]:
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".json":
        yield from _values(json.loads(text))
    else:
        yield from (float(each.replace(",", "")) for each in re.findall(NUMBER, text))


def _values(stored: Any) -> Iterator[float]:
    if isinstance(stored, dict | list):
        for each in stored.values() if isinstance(stored, dict) else stored:
            yield from _values(each)
    elif isinstance(stored, int | float) and not isinstance(stored, bool):
        yield float(stored)
