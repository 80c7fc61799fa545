"""Reading CSV files: a header that names the columns, then one token per row.

    Sentence #,Word,POS,Tag
    Sentence: 1,Ann,NNP,B-PER
    ,sings,VBZ,O

A sentence begins where the sentence column has another id (on each row, or on the first of a sentence only), and after
a blank row. Columns are recognised by their names.
"""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from trelliswork.data.choices import Choices, Column, column_number, is_constant
from trelliswork.data.columns import ColumnFormat, sentence_of
from trelliswork.data.conll import SAMPLE_LINES
from trelliswork.data.sentence import Sentence
from trelliswork.errors import DataError
from trelliswork.reading import name_of, numbered_lines
from trelliswork.tags.schemes import canonical, infer_scheme

_SUFFIXES = (".csv", ".csv.gz")
_DELIMITERS = ",;\t|"
NumberedRow = tuple[int, list[str]]


@dataclass(frozen=True)
class CsvFormat(ColumnFormat):
    """The columns of a CSV file with their names; sentences by the ids in `sentence_column`, or by blank rows."""

    names: tuple[str, ...] = ()
    sentence_column: int | None = None

    def describe(self) -> str:
        """Describe the layout in one line."""

        def shown(i: int, *more: str | None) -> str:
            return f"{i} ({', '.join([self.names[i - 1], *filter(None, more)])})"

        named = [f"sentence = {shown(self.sentence_column)}" if self.sentence_column else "sentences by blank rows"]
        named.append(f"word = {shown(self.word_column)}")
        if self.tag_column is not None:
            named.append(f"tag = {shown(self.tag_column, self.scheme)}")
        if self.feature_columns:
            named.append("features = " + ", ".join(map(shown, self.feature_columns)))
        return f"CSV, {self.n_columns} columns: {', '.join(named)}"

    def choices(self) -> Choices:
        """Return the same columns, by name, for another file."""
        return Choices(
            scheme=self.scheme,
            word_column=self.names[self.word_column - 1],
            tag_column=self.names[self.tag_column - 1] if self.tag_column else None,
            feature_columns=tuple(self.names[i - 1] for i in self.feature_columns),
        )


def is_csv(path: str | Path) -> bool:
    """Return whether a name ends as those of CSV files do."""
    return str(path).lower().endswith(_SUFFIXES)


def read_csv(path: str | Path, *, with_tags: bool = True) -> Iterator[Sentence]:
    """Return the sentences of a CSV file, one by one; with `with_tags=False` the tags may be missing and are not
    read.
    """
    return open_csv(path, with_tags=with_tags)[1]


def open_csv(
    path: str | Path,
    choices: Choices | None = None,
    *,
    with_tags: bool = True,
    keep: Callable[[bytes], None] | None = None,
) -> tuple[CsvFormat, Iterator[Sentence]]:
    """Return the layout that the header tells and the sentences, in one pass over the file; `keep` is given all of
    it.

    Args:
        path: A file, or "-" for standard input.
        choices: What is known of the columns; the rest follows from the header.
        with_tags: Whether there must be a column of tags.
        keep: Called with all bytes that are read.

    Returns:
        The layout, and the sentences as they are read.
    """
    file, choices = name_of(path), (choices or Choices()).completed(conllu=False)
    lines = numbered_lines(path, keep)
    header = next(((number, line) for number, line in lines if not is_blank(line)), None)
    if header is None:
        raise DataError(file, "expected a header such as word,tag and at least one sentence, got an empty file")
    delimiter = choices.delimiter or max(_DELIMITERS, key=header[1].count)
    if len(delimiter) != 1:
        raise DataError(file, f"expected one character between the columns of a CSV file, got {delimiter!r}")
    rows = _rows(itertools.chain([header], lines), file, delimiter)
    names = tuple(name.strip() for name in next(rows)[1])
    columns = Header(names, file, choices)
    word, tag = columns.word, columns.tag(with_tags)
    format = CsvFormat(
        delimiter, len(names), word, tag, columns.features(tag), names=names, sentence_column=columns.sentence
    )
    sample = list(itertools.islice(rows, SAMPLE_LINES))
    if choices.feature_columns is None:
        format = replace(format, feature_columns=_telling(sample, format.feature_columns))
    if format.tag_column is not None:
        scheme = choices.scheme and canonical(choices.scheme)
        format = replace(format, scheme=scheme or infer_scheme(_tags(sample, format, format.tag_column)))
    return format, _sentences(itertools.chain(sample, rows), file, format, with_tags)


def is_blank(line: str) -> bool:
    """Return whether all cells of a line are empty."""
    return not line.strip(" ,;\t|\r\n\ufeff")


def _rows(lines: Iterator[tuple[int, str]], file: str, delimiter: str) -> Iterator[NumberedRow]:
    """Yield the cells of each row, with the line it begins at; a cell in quotes may go over several lines."""
    place = [0, 0]  # the first line of this row, the last line read

    def numbered() -> Iterator[str]:
        for number, line in lines:
            place[0], place[1] = place[0] or number, number
            yield line + "\n"

    reader = csv.reader(numbered(), delimiter=delimiter, strict=True)
    while True:
        place[0] = 0
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            fault = (
                "a quote that does not end" if "end of data" in str(error) else str(error).replace("'\"'", "a quote")
            )
            problem = f'expected cells in quotes as in "a ""b"" c", got {fault}; correct the quotes'
            raise DataError(file, problem, line=place[0]) from error
        yield place[0], cells


def _sentences(rows: Iterator[NumberedRow], file: str, format: CsvFormat, with_tags: bool) -> Iterator[Sentence]:
    """Yield rows grouped by sentence; at least one, or it is an error."""
    n_sentences = 0
    for block in _blocks(rows, format.sentence_column):
        n_sentences += 1
        yield sentence_of(block, file, format, with_tags)
    if n_sentences == 0:
        raise DataError(file, "expected at least one sentence below the header, got none")


def _blocks(rows: Iterator[NumberedRow], sentence_column: int | None) -> Iterator[list[NumberedRow]]:
    block: list[NumberedRow] = []
    current = ""
    for number, cells in rows:
        is_blank = not any(cell.strip() for cell in cells)
        name = cells[sentence_column - 1].strip() if sentence_column and len(cells) >= sentence_column else ""
        if block and (is_blank or (name and name != current)):
            yield block
            block = []
        current = name or current
        if not is_blank:
            block.append((number, cells))
    if block:
        yield block


def _telling(sample: Sequence[NumberedRow], columns: Sequence[int]) -> tuple[int, ...]:
    """Return the columns that do not have one value throughout."""
    rows = [cells for _, cells in sample if any(map(str.strip, cells))]
    return tuple(i for i in columns if not is_constant([cells[i - 1].strip() for cells in rows if len(cells) >= i]))


def _tags(sample: Sequence[NumberedRow], format: CsvFormat, tag_column: int) -> Iterator[list[str]]:
    """Yield the tags of each sampled sentence; a row without the column is reported by the reader, not here."""
    for block in _blocks(iter(sample), format.sentence_column):
        tags = [cells[tag_column - 1].strip() for _, cells in block if len(cells) >= tag_column]
        yield [tag for tag in tags if tag]


# The columns of a CSV file: given by the user, taken from another file, or recognised by their names.

_SENTENCE = {f"{noun}{end}" for noun in ("sentence", "sent") for end in ("", "id", "idx", "no", "num", "number")}
_WORD = {"word", "words", "token", "tokens", "form"}
_CERTAIN = {"tag", "tags", "label", "labels"}
_LIKELY = {"ner", "nertag", "entity", "chunk", "chunktag", "iob", "bio"}


@dataclass(frozen=True)
class Header:
    """The names of the columns, and what is wanted of them. Columns are numbered from 1."""

    names: tuple[str, ...]
    file: str
    choices: Choices

    @property
    def sentence(self) -> int | None:
        """The column of sentence ids."""
        return next(iter(self._columns_named(_SENTENCE)), None)

    @property
    def word(self) -> int:
        choices = self.choices
        if choices.word_column:
            column = self._number_of(choices.word_column, "word")
        else:
            named = self._columns_named(_WORD)
            if not named:
                wanted = "expected a header with a column called word or token"
                raise self._error(f"{wanted}, got {self}; name it in the first row or give --word-column")
            column = named[0]
        if column == self.sentence:
            raise self._error(f"expected words in column {column}, got the ids of sentences; give --word-column")
        return column

    def tag(self, required: bool) -> int | None:
        """Return the column asked for, the one called tag or label, the last that may hold tags, or just the last."""
        asked = self.choices.tag_column
        if asked and not required and not self._has(asked):
            return None
        if asked:
            return self._number_of(asked, "tag")
        free = [i for i in self._columns() if i not in (self.word, self.sentence)]
        for candidates in (self._columns_named(_CERTAIN), self._columns_named(_LIKELY), free if required else []):
            if candidates := [i for i in candidates if i in free]:
                return candidates[-1]
        if required:
            raise self._error(f"expected a column of tags in addition to the words, got {self}; give --tag-column")
        return None

    def features(self, tag: int | None) -> tuple[int, ...]:
        """Return the columns asked for, or all others."""
        asked = self.choices.feature_columns
        if self.choices.may_lack and not all(map(self._has, asked or ())):
            return ()
        if asked is not None:
            return tuple(self._number_of(each, "feature") for each in asked)
        return tuple(i for i in self._columns() if i not in (self.word, tag, self.sentence))

    def __str__(self) -> str:
        return ", ".join(self.names)

    def _columns(self) -> list[int]:
        """Return all but the row numbers that pandas writes, whose name is empty, index or Unnamed: 0."""
        return [i for i, name in enumerate(self.names, 1) if not re.fullmatch(r"|index|unnamed.*", name.lower())]

    def _columns_named(self, names: set[str]) -> list[int]:
        return [i for i, name in enumerate(self.names, 1) if re.sub(r"[^a-z]", "", name.lower()) in names]

    def _has(self, column: Column) -> bool:
        if isinstance(column, int):
            return column <= len(self.names)
        return column.lower() in map(str.lower, self.names)

    def _number_of(self, column: Column, role: str) -> int:
        number = column_number(column, self.names, role, self.file, 1)
        if not 1 <= number <= len(self.names):
            raise self._error(f"expected the {role} column in 1..{len(self.names)}, got {number}; there are {self}")
        return number

    def _error(self, problem: str) -> DataError:
        return DataError(self.file, problem, line=1)
