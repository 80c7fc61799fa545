"""BRAT standoff: a text in NAME.txt and its annotations in NAME.ann.

    T1<tab>PER 0 7<tab>Ann Lee

Text-bound annotations (T) of one piece become the tags of the words. Annotations of several pieces, relations, events,
attributes and notes are not used, and a warning counts them. Places count code points; where a file has got or lost
its carriage returns or its byte order mark since it was annotated, the places of the text that fits are taken.
"""

from __future__ import annotations

import glob
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from trelliswork.data.json_shapes import LabelledPiece, Place, Reading, Record, Texts
from trelliswork.data.jsonl import notes_on
from trelliswork.data.raw_sentences import Tokeniser
from trelliswork.data.sentence import Sentence
from trelliswork.errors import DataError, TrellisworkWarning
from trelliswork.reading import numbered_lines, read_bytes

ANNOTATIONS, TEXT = ".ann", ".txt"
DISCONTINUOUS = "annotation of several pieces"
UNUSED = {
    "R": "relation", "*": "equivalence", "E": "event", "A": "attribute", "M": "attribute", "N": "normalisation",
    "#": "note",
}  # fmt: skip
_ID = re.compile(r"(?:[TREAMN#]\d+|\*)\t")
_BOUND = re.compile(r"(\S+) (\d+ \d+(?:;\d+ \d+)*)")
BOM = "\ufeff"


def is_brat(path: str | Path) -> bool:
    """Return whether a path is an .ann file, a text that has one, a folder of such, or a pattern for .ann files."""
    path = Path(path)
    if path.is_dir():
        return next(path.glob(f"*{ANNOTATIONS}"), None) is not None
    return path.suffix == ANNOTATIONS or (path.suffix == TEXT and path.with_suffix(ANNOTATIONS).is_file())


def is_annotation_of(path: str, files: Sequence[str]) -> bool:
    """Return whether a path is the .ann file of a text that is among the files."""
    return path.endswith(ANNOTATIONS) and f"{path.removesuffix(ANNOTATIONS)}{TEXT}" in files


def read_brat(path: str | Path, *, with_tags: bool = True, tokeniser: Tokeniser | None = None) -> Iterator[Sentence]:
    """Yield the sentences of BRAT documents: of one, of all in a folder, or of all that match a pattern such as
    "dir/*.ann".

    `tokeniser` (see `trelliswork.text`) finds the words. With `with_tags=False` annotations are not read.

    Args:
        path: An .ann or .txt file, a folder of such, or a pattern.
        with_tags: Whether annotations are read.
        tokeniser: Finds the words; None is the rule-based one.

    Yields:
        The sentences of all documents.
    """
    reading, unused, n_sentences = Reading(tokeniser=tokeniser), Counter[str](), 0
    for document in _documents(path, with_tags, unused):
        for sentence in document.sentences(reading, with_tags, unused):
            n_sentences += 1
            yield sentence
    if n_sentences == 0:
        raise DataError(path, "expected at least one sentence, got none; the texts are empty")
    if unused:
        counts = ", ".join(_counted(n, what) for what, n in unused.items())
        warnings.warn(f"{path}: not used: {counts}", TrellisworkWarning, stacklevel=2)
    for note in notes_on(reading, str(path)):
        warnings.warn(note, TrellisworkWarning, stacklevel=2)


def _counted(n: int, what: str) -> str:
    """Return a number of something; the first word is the one that has a plural.

    >>> _counted(1, "note"), _counted(2, "annotation of several pieces")
    ('1 note', '2 annotations of several pieces')
    """
    noun, blank, rest = what.partition(" ")
    return f"{n:,} {noun}{'' if n == 1 else 's'}{blank}{rest}"


def _documents(path: str | Path, with_tags: bool, unused: Counter[str]) -> Iterator[_Document]:
    """Yield the documents, in order of their names."""
    folder = Path(path)
    if folder.is_dir():
        texts = {file.with_suffix(TEXT) for file in folder.glob(f"*{ANNOTATIONS}")}
        bare = set(folder.glob(f"*{TEXT}")) - texts
        files = sorted(texts if with_tags else texts | bare)
        unused["text without an .ann file"] += len(bare) if with_tags else 0
    else:
        matches = [Path(each) for each in glob.glob(str(path))] if glob.has_magic(str(path)) else [folder]
        files = sorted({file.with_suffix(TEXT) for file in matches})
    unused += Counter()  # without counts of 0
    if not files:
        raise DataError(path, f"expected {ANNOTATIONS} files, got none that match; check the pattern")
    yield from map(_Document, files)


@dataclass(frozen=True)
class _Bound:
    """A text-bound annotation, the line that it is on, and the text that it says to have."""

    piece: LabelledPiece
    said: str

    def fits(self, text: str) -> bool:
        """Return whether its place in a text has the annotated words; line breaks are blanks there."""
        return self.piece.end <= len(text) and (
            not self.said or text[self.piece.start : self.piece.end].split() == self.said.split()
        )


@dataclass(frozen=True)
class _Document:
    """A text file and its annotations."""

    file: Path

    def sentences(self, reading: Reading, with_tags: bool, unused: Counter[str]) -> Iterator[Sentence]:
        bound = list(self._annotations(unused)) if with_tags else []
        text, spans = self._fitting(self._text(), bound), [each.piece for each in bound]
        shape = _BoundTexts(reading, Place(str(self.file.with_suffix(ANNOTATIONS)), 1))
        record = {"text": text, "document": self.file.stem, "pieces": spans}
        breaks = [match.start() for match in re.finditer("\n", text)]
        yield from _on_their_lines(shape.sentences(record, with_tags), str(self.file), breaks)

    def _text(self) -> str:
        """Return the text as it is, carriage returns included."""
        try:
            return read_bytes(self.file).decode("utf-8")
        except UnicodeDecodeError as error:
            line = error.object.count(b"\n", 0, error.start) + 1
            problem = f"expected UTF-8 text, got the byte 0x{error.object[error.start]:02x}"
            raise DataError(self.file, f"{problem}; convert the file to UTF-8", line=line) from error

    def _annotations(self, unused: Counter[str]) -> Iterator[_Bound]:
        """Yield the annotations that are used; others are counted."""
        file = self.file.with_suffix(ANNOTATIONS)
        for number, line in numbered_lines(file):
            if not line.strip():
                continue
            kind = line[0] if _ID.match(line) else ""
            if kind in UNUSED:
                unused[UNUSED[kind]] += 1
                continue
            fields = line.split("\t", 2)
            bound = _BOUND.fullmatch(fields[1].strip()) if kind == "T" and len(fields) > 1 else None
            if bound is None:
                wanted = "T1, a tab, a label, start and end, a tab and the text"
                raise DataError(file, f"expected an annotation such as {wanted}; got {line!r}", line=number)
            if ";" in bound[2]:
                unused[DISCONTINUOUS] += 1
                continue
            start, end = map(int, bound[2].split())
            if start >= end:
                raise DataError(file, f"expected a start before the end, got {start} and {end}", line=number)
            yield _Bound(LabelledPiece(start, end, bound[1], {"line": number}), fields[2] if len(fields) > 2 else "")

    def _fitting(self, text: str, bound: Sequence[_Bound]) -> str:
        """Return the text that all annotations fit: as it is, or without byte order mark or carriage returns."""
        plain = text.removeprefix(BOM)
        for candidate in (plain, text, plain.replace("\r\n", "\n"), plain.replace("\r\n", "\n").replace("\n", "\r\n")):
            if all(each.fits(candidate) for each in bound):
                return candidate
        wrong = next(each for each in bound if not each.fits(plain))
        start, end, label, more = wrong.piece
        got = f"{plain[start:end]!r}" if end <= len(plain) else f"a text of {len(plain)} characters"
        problem = f"expected {wrong.said!r} ({label}) at {start} to {end} of {self.file.name}, got {got}"
        hint = f"{_unit(plain, wrong)}; offsets must count code points from 0"
        raise DataError(self.file.with_suffix(ANNOTATIONS), problem + hint, line=more["line"])


def _unit(text: str, bound: _Bound) -> str:
    """Say which other unit an annotation counts, if it fits then."""
    start, end = bound.piece[:2]
    in_bytes = text.encode()[start:end].decode(errors="replace")
    in_utf16 = text.encode("utf-16-le")[2 * start : 2 * end].decode("utf-16-le", "replace")
    units = {"bytes": in_bytes, "UTF-16 units": in_utf16}
    return next((f" (it counts {unit})" for unit, covered in units.items() if covered == bound.said), "")


def _on_their_lines(sentences: Sequence[Sentence], file: str, breaks: Sequence[int]) -> Iterator[Sentence]:
    """Yield sentences with the file and the lines of their words; `breaks` are the places of line ends."""
    line = 0
    for sentence in sentences:
        lines = []
        for start, _ in sentence.offsets:
            while line < len(breaks) and breaks[line] < start:
                line += 1
            lines.append(line + 1)
        yield replace(sentence, file=file, line=lines[0], lines=tuple(lines))


class _BoundTexts(Texts):
    """A text whose labelled pieces are read already."""

    def members(self, record: Record) -> tuple[str, ...]:
        return ("text", "tokens", "pieces")

    def pieces(self, record: Record) -> list[LabelledPiece]:
        return list(record["pieces"])
