"""Raw texts whose tokens are known: what a tokeniser is trained and tested on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from trelliswork.errors import DataError
from trelliswork.reading import name_of, numbered_lines
from trelliswork.text.rules import Token

BLANK_LINE = "\n\n"
MOST_DIGITS = 18  # of an id
# What treebanks write in place of some characters of the text.
WRITTEN_FOR = {
    "-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}", "``": '"', "''": '"',
}  # fmt: skip


@dataclass(frozen=True)
class Document:
    """A text and its sentences of tokens."""

    text: str
    sentences: tuple[tuple[Token, ...], ...]

    def __len__(self) -> int:
        """Return the number of its tokens."""
        return sum(map(len, self.sentences))

    @classmethod
    def aligned(cls, text: str, sentences: Iterable[Sequence[str]], name: str = "text") -> Document:
        """Return a text with its tokens; white space may differ. A token that is not in the text is a `DataError`.

        >>> Document.aligned("Hi, Ann!", [["Hi", ",", "Ann", "!"]]).sentences[0][2]
        Token(text='Ann', start=4, end=7, words=('Ann',))

        Args:
            text: The raw text.
            sentences: Tokens of each sentence, in order.
            name: Name of the text, for the sentence of an error.

        Returns:
            The document.
        """
        place, aligned = 0, []
        for sentence in sentences:
            tokens = []
            for word in sentence:
                start, place = _find(text, word, place, name)
                tokens.append(Token(text[start:place], start, place))
            aligned.append(tuple(tokens))
        return cls(text, tuple(aligned))


def _find(text: str, word: str, place: int, name: str) -> tuple[int, int]:
    """Return where a token begins and ends; it is the next thing in the text."""
    for form in (word, WRITTEN_FOR.get(word, word)):
        start = _after_space(text, place)
        end = start
        for character in form:
            if character.isspace():
                continue
            end = _after_space(text, end)
            if not text.startswith(character, end):
                break
            end += 1
        else:
            return start, end
    line = text.count("\n", 0, start) + 1
    raise DataError(name, f"expected the token {word!r}, got {text[start : start + 20]!r}; align the two", line=line)


def _after_space(text: str, place: int) -> int:
    while place < len(text) and text[place].isspace():
        place += 1
    return place


def read_documents(path: str | Path) -> list[Document]:
    """Return the documents of a CoNLL-U file: `# newdoc` begins one, `# newpar` a paragraph after a blank line.

    The text is that of the tokens, with white space as `SpaceAfter=No` and `SpacesAfter` have it.
    """
    documents, building = [], _Building()
    for paragraph_begins, document_begins, lines in _sentences(path):
        if document_begins and building.sentences:
            documents.append(building.done())
            building = _Building()
        elif paragraph_begins:
            building.new_paragraph()
        building.add(lines, name_of(path))
    return [*documents, *([building.done()] if building.sentences else [])]


Fields = tuple[int, list[str]]  # the number of a line, and its ten columns


def _sentences(path: str | Path) -> Iterator[tuple[bool, bool, list[Fields]]]:
    """Of each sentence: whether a paragraph or a document begins with it, and its lines."""
    lines: list[Fields] = []
    paragraph = document = False
    for number, line in numbered_lines(path):
        if not line.strip():
            if lines:
                yield paragraph, document, lines
            lines, paragraph, document = [], False, False
        elif line.startswith("#"):
            first = line[1:].split("=")[0].split()[:1]
            paragraph |= first == ["newpar"]
            document |= first == ["newdoc"]
        else:
            fields = line.rstrip("\r\n").split("\t")
            if len(fields) != 10:
                problem = f"expected the 10 columns of CoNLL-U, separated by tabs, got {len(fields)}"
                raise DataError(name_of(path), problem, line=number)
            lines.append((number, fields))
    if lines:
        yield paragraph, document, lines


@dataclass
class _Building:
    """A document of which some sentences are known."""

    parts: list[str] = field(default_factory=list)
    length: int = 0
    sentences: list[tuple[Token, ...]] = field(default_factory=list)

    def write(self, text: str) -> None:
        self.parts.append(text)
        self.length += len(text)

    def new_paragraph(self) -> None:
        if self.parts:
            while self.parts[-1].isspace():
                self.length -= len(self.parts.pop())
            self.write(BLANK_LINE)

    def add(self, lines: Sequence[Fields], name: str) -> None:
        tokens: list[Token] = []
        covered = 0  # the last word of a multi-word token
        for number, (ident, form, *_, misc) in lines:
            if "-" in ident:
                first, last = _range(ident, name, number)
                plain = [(_number(fields[0], name, at), fields[1]) for at, fields in lines if fields[0].isdecimal()]
                words = tuple(word for i, word in plain if first <= i <= last)
                covered = last
            elif "." in ident or _number(ident, name, number) <= covered:
                continue
            else:
                words = (form,)
            if tokens and "NewPar=Yes" in misc.split("|"):
                self.new_paragraph()
            tokens.append(Token(form, self.length, self.length + len(form), words))
            self.write(form)
            self.write(_space_after(misc))
        self.sentences.append(tuple(tokens))

    def done(self) -> Document:
        return Document("".join(self.parts), tuple(self.sentences))


def _range(ident: str, name: str, line: int) -> tuple[int, int]:
    first, _, last = ident.partition("-")
    return _number(first, name, line), _number(last, name, line)


def _number(ident: str, name: str, line: int) -> int:
    if not ident.isdecimal() or len(ident) > MOST_DIGITS:
        raise DataError(name, f"expected an id such as 3, 3-4 or 3.1, got {ident!r}", line=line)
    return int(ident)


_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)")
_SPACES = {"s": " ", "n": "\n", "r": "\r", "t": "\t", "p": "|"}


def _space_after(misc: str) -> str:
    for part in misc.split("|"):
        if part == "SpaceAfter=No":
            return ""
        if part.startswith("SpacesAfter="):
            return _ESCAPE.sub(_unescape, part.removeprefix("SpacesAfter="))
    return " "


def _unescape(match: re.Match[str]) -> str:
    written = match[1]
    return chr(int(written[1:], 16)) if len(written) == 5 else _SPACES.get(written, written)
