"""Pairs of strings, source and target, for transducers: TSV files, and how texts are cut into symbols.

A line is `source<TAB>target`, such as `cat<TAB>K AE T`. A side is cut into characters, or at its blanks where the file
has them between symbols or words; what it is follows from the data unless it is given. Several lines with one source
are several right targets.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple

from trelliswork.data.choices import Choices, Column
from trelliswork.data.columns import ColumnFormat
from trelliswork.data.files import name_of, numbered_lines
from trelliswork.data.sentence import Sentence
from trelliswork.errors import DataError

Units = Literal["auto", "characters", "blanks"]
NormalForm = Literal["auto", "NFC", "NFD", "none"]
TAB = "\t"
SHOWN_UNITS = {"characters": "characters", "blanks": "symbols between blanks"}


@dataclass(frozen=True)
class PairFormat:
    """How the texts of both sides are cut into symbols, and the Unicode normal form that they are brought into first.

    >>> format = PairFormat("characters", "blanks")
    >>> format.cut_source("cat"), format.cut_target("K AE T"), format.join_target(("K", "AE", "T"))
    (('c', 'a', 't'), ('K', 'AE', 'T'), 'K AE T')
    """

    source: Units = "auto"
    target: Units = "auto"
    normal_form: NormalForm = "auto"

    def cut_source(self, text: str) -> tuple[str, ...]:
        """The symbols of a source."""
        return _cut(self.normalised(text), self.source)

    def cut_target(self, text: str) -> tuple[str, ...]:
        """The symbols of a target."""
        return _cut(self.normalised(text), self.target)

    def join_source(self, symbols: Sequence[str]) -> str:
        """The inverse of `cut_source`."""
        return (" " if self.source == "blanks" else "").join(symbols)

    def join_target(self, symbols: Sequence[str]) -> str:
        """The inverse of `cut_target`."""
        return (" " if self.target == "blanks" else "").join(symbols)

    def normalised(self, text: str) -> str:
        """A text in the normal form; "auto" that nobody has settled is NFC."""
        if self.normal_form == "none":
            return text
        return unicodedata.normalize("NFD" if self.normal_form == "NFD" else "NFC", text)

    def settled(self, rows: Sequence[Row]) -> PairFormat:
        """With what is still open chosen by the rows of a file."""
        source = _units(row.source for row in rows) if self.source == "auto" else self.source
        target = _units(row.target for row in rows) if self.target == "auto" else self.target
        return replace(self, source=source, target=target)

    def recut(self, pair: Sentence, before: PairFormat) -> Sentence:
        """A pair that was cut by another format, cut by this one."""
        target = None if pair.target is None else self.cut_target(before.join_target(pair.target))
        return replace(pair, words=self.cut_source(before.join_source(pair.words)), target=target)


def _cut(text: str, units: Units) -> tuple[str, ...]:
    return tuple(text.split()) if units == "blanks" else tuple(text)


def _units(texts: Iterable[str]) -> Units:
    """Blanks, if nine of ten texts have some: a blank in half of the words is a letter, as in Vietnamese."""
    blank = [" " in text.strip() for text in texts]
    return "blanks" if 10 * sum(blank) >= 9 * len(blank) > 0 else "characters"


@dataclass(frozen=True)
class PairColumns(ColumnFormat):
    """The columns of a file of pairs: sources as words, targets as tags; and how both are cut."""

    pairs: PairFormat = PairFormat()
    n_changed: int = 0  # lines that were not in the normal form

    def describe(self) -> str:
        """One line for people."""
        named = [f"source = {self.word_column} ({SHOWN_UNITS[self.pairs.source]})"]
        if self.tag_column is not None:
            named.append(f"target = {self.tag_column} ({SHOWN_UNITS[self.pairs.target]})")
        unread = self.n_columns - len(named)
        more = f", {unread} not read" if unread > 0 else ""
        form = "as they are" if self.pairs.normal_form == "none" else self.pairs.normal_form.replace("auto", "NFC")
        changed = f" ({self.n_changed:,} lines were not)" if self.n_changed else ""
        return f"pairs, {self.n_columns} columns: {', '.join(named)}{more}; characters {form}{changed}"

    def choices(self) -> Choices:
        """The same columns and cuts for another file."""
        return Choices(self.delimiter, self.word_column, self.tag_column, (), pairs=self.pairs)


class Row(NamedTuple):
    """A line of a file of pairs; the target is empty where only sources are read."""

    line: int
    source: str
    target: str
    n_columns: int


def read_pairs(path: str | Path, format: PairFormat | None = None) -> list[Sentence]:
    """The pairs of a TSV file.

    >>> read_pairs("cmudict.tsv")[0]                                     # doctest: +SKIP
    Sentence(words=('c', 'a', 't'), target=('K', 'AE', 'T'))
    """
    return list(open_pairs(path, Choices(pairs=format))[1])


def open_pairs(path: str | Path, choices: Choices, *, with_targets: bool = True) -> tuple[PairColumns, list[Sentence]]:
    """The columns of a file of pairs, and the pairs; a line with too few columns or an empty side is an error."""
    columns, rows = _columns(choices, with_targets, str(path)), []
    rows = list(_rows(path, columns))
    if not rows:
        what = "a source, a tab and a target" if with_targets else "a source"
        raise DataError(name_of(path), f"expected lines of {what}, got none; the file is empty")
    pairs = (choices.pairs or PairFormat()).settled(rows)
    changed = sum(any(pairs.normalised(text) != text for text in (row.source, row.target)) for row in rows)
    columns = replace(columns, n_columns=max(row.n_columns for row in rows), pairs=pairs, n_changed=changed)
    return columns, [_pair(row, columns, name_of(path)) for row in rows]


def open_sources(path: str | Path, choices: Choices) -> tuple[PairColumns, Iterator[Sentence]]:
    """The sources of a file, read as they are asked for; how they are cut must be known."""
    columns = replace(_columns(choices, False, str(path)), pairs=choices.pairs)
    return columns, (_pair(row, columns, name_of(path)) for row in _rows(path, columns))


def _columns(choices: Choices, with_targets: bool, file: str) -> PairColumns:
    fallback = choices.fallback or Choices()
    source = _number(choices.word_column or fallback.word_column or 1, "--word-column", file)
    target = _number(choices.tag_column or fallback.tag_column or 2, "--tag-column", file) if with_targets else None
    if source == target:
        raise DataError(file, f"expected source and target in different columns, got {source} for both")
    return PairColumns(choices.delimiter or TAB, max(source, target or 1), source, target)


def _number(column: Column, option: str, file: str) -> int:
    if not isinstance(column, int):
        raise DataError(file, f"{option}: expected the number of a column, got {column!r}; pairs have no header")
    return column


def _rows(path: str | Path, columns: PairColumns) -> Iterator[Row]:
    """The lines that are not empty."""
    name, at, to = name_of(path), columns.word_column, columns.tag_column
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        fields = line.split(columns.delimiter)
        if len(fields) < max(at, to or 1):
            problem = f"expected at least {max(at, to or 1)} columns with a tab between them, got {len(fields)}"
            fix = "write source, tab, target, or name the columns with --word-column and --tag-column"
            raise DataError(name, f"{problem}; {fix}", line=number)
        row = Row(number, fields[at - 1], fields[to - 1] if to else "", len(fields))
        for side, text in (("source", row.source), ("target", row.target if to else "-")):
            if not text.strip():
                raise DataError(name, f"expected a {side}, got nothing; fill it in, or remove the line", line=number)
        yield row


def _pair(row: Row, columns: PairColumns, file: str) -> Sentence:
    pairs = columns.pairs
    target = pairs.cut_target(row.target) if columns.tag_column else None
    return Sentence(pairs.cut_source(row.source), line=row.line, file=file, text=row.source, target=target)
