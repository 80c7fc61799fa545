"""Raw text files as sentences with the place of every word in the file, read as a stream.

A blank line ends a paragraph, and a sentence; a single line break is white space. Paragraphs are tokenised one by one,
and very long ones in parts, so that memory stays bounded.

Python counts code points. JavaScript, Java and C# count UTF-16 units, of which most emoji have two; editors and C
libraries count bytes.

>>> Offsets("a😀b", "utf-16")[2]
3
>>> Offsets("a😀b", "bytes")[2]
5
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from trelliswork.data.raw_sentences import sentence_of_tokens
from trelliswork.data.sentence import Sentence
from trelliswork.errors import DataError, TrellisworkError
from trelliswork.lazy import lazy_module
from trelliswork.reading import name_of, numbered_lines
from trelliswork.text.rules import Token, Tokeniser

LONG = 100_000  # characters of a paragraph that are tokenised before its end is read
BOM = "\ufeff"
_LINE = re.compile(rb"[^\n]*\n|[^\n]+")


def sentences_in(text: str, tokeniser: Tokeniser, *, unit: str = "code-points") -> list[Sentence]:
    """Return the sentences of a text.

    >>> from trelliswork.text import RuleTokeniser
    >>> [(each.words, each.offsets) for each in sentences_in("Hi, Ann! 😀", RuleTokeniser())][0]
    (('Hi', ',', 'Ann', '!'), ((0, 2), (2, 3), (4, 7), (7, 8)))

    Args:
        text: The raw text.
        tokeniser: Finds sentences and words.
        unit: What offsets count: code-points, bytes or utf-16.

    Returns:
        The sentences with the offsets of their words.
    """
    place = Offsets(text, unit).__getitem__
    return [sentence_of_tokens(text, tokens, place) for tokens in tokeniser.tokenise(text) if tokens]


def read_text(
    path: str | Path, tokeniser: Tokeniser, *, unit: str = "code-points", by_line: bool = False
) -> Iterator[Sentence]:
    """Yield the sentences of a text file, one by one; offsets are counted in `unit` from the beginning of the file.

    Args:
        path: The file, or - for standard input.
        tokeniser: Finds sentences and words.
        unit: What offsets count, from the beginning of the file: code-points, bytes or utf-16. A byte order mark counts
            in bytes alone.
        by_line: Whether each line is a text of its own.

    Returns:
        An iterator over the sentences with the offsets of their words.
    """
    name, n_sentences = name_of(path), 0
    part = _Part(tokeniser, unit, name)
    for number, line in _raw_lines(path):
        if number == 1 and line.startswith(BOM):
            part.base += 3 if unit == "bytes" else 0
            line = line.removeprefix(BOM)
        part.add(line, number)
        sentences = part.finished() if by_line or not line.strip() else part.begun()
        n_sentences += len(sentences)
        yield from sentences
    rest = part.finished()
    yield from rest
    if n_sentences + len(rest) == 0:
        raise DataError(name, "expected at least one line of text, got none; the file is empty")


def _raw_lines(path: str | Path) -> Iterator[tuple[int, str]]:
    """Yield numbered lines with their line ends, byte for byte."""
    waiting: deque[bytes] = deque()
    for number, _ in numbered_lines(path, lambda text: waiting.extend(_LINE.findall(text))):
        yield number, waiting.popleft().decode("utf-8")


@dataclass
class _Part:
    """The part of a file that is not tokenised yet: it begins at `base` and on `line`."""

    tokeniser: Tokeniser
    unit: str
    file: str
    base: int = 0
    line: int = 1
    limit: int = LONG
    n_characters: int = 0
    lines: list[str] = field(default_factory=list)

    def add(self, line: str, number: int) -> None:
        self.line = self.line if self.lines else number
        self.lines.append(line)
        self.n_characters += len(line)

    def finished(self) -> list[Sentence]:
        """Return all sentences; nothing is left."""
        return self._take(keep_last=False)

    def begun(self) -> list[Sentence]:
        """Return all sentences but the last, which may go on; nothing yet of a part that is not long."""
        return self._take(keep_last=True) if self.n_characters > self.limit else []

    def _take(self, *, keep_last: bool) -> list[Sentence]:
        text = "".join(self.lines)
        sentences = [tokens for tokens in self.tokeniser.tokenise(text) if tokens]
        if keep_last and len(sentences) < 2:
            self.limit *= 2
            return []
        last = sentences.pop() if keep_last else None
        offsets, line = Offsets(text, self.unit), self.line
        read, at = [], 0
        for tokens in sentences:
            line += text.count("\n", at, tokens[0].start)
            at = tokens[0].start
            read.append(self._sentence(text, tokens, offsets, line))
        end = len(text) if last is None else last[0].start
        self.line, self.base = line + text.count("\n", at, end), self.base + offsets[end]
        self.lines, self.n_characters, self.limit = [text[end:]] if text[end:] else [], len(text) - end, LONG
        return read

    def _sentence(self, text: str, tokens: list[Token], offsets: Offsets, line: int) -> Sentence:
        base = self.base
        return sentence_of_tokens(text, tokens, lambda place: base + offsets[place], line=line, file=self.file)


# Places in a text, counted as the reader of an answer counts: in code points, UTF-16 units or bytes of UTF-8.

if TYPE_CHECKING:
    import numpy as np

    from trelliswork.runtime.arrays import Array
else:
    np = lazy_module("numpy")  # which help and the first checks of a command do without

OFFSETS = ("code-points", "utf-16", "bytes")


class Offsets:
    """From code points to `unit`, for the places 0..len(text) of one text."""

    def __init__(self, text: str, unit: str = "code-points") -> None:
        if unit not in OFFSETS:
            raise TrellisworkError(f"offsets must be counted in one of {', '.join(OFFSETS)}; got {unit!r}")
        self._before: Array | None = None
        if unit != "code-points" and not text.isascii():
            widths = _WIDTHS[unit](np.array([*map(ord, text)], np.int64))
            self._before = np.concatenate([[0], np.cumsum(widths)])

    def __getitem__(self, place: int) -> int:
        return place if self._before is None else int(self._before[place])


def _utf16_units(codes: Array) -> Array:
    return 1 + (codes > 0xFFFF).astype(np.int64)


def _bytes(codes: Array) -> Array:
    return 1 + (codes > 0x7F).astype(np.int64) + (codes > 0x7FF) + (codes > 0xFFFF)


_WIDTHS = {"utf-16": _utf16_units, "bytes": _bytes}
