"""Pairs of strings, source and target, for transducers: TSV files, and how texts are cut into symbols.

A line is `source<TAB>target`, such as `cat<TAB>K AE T`. A side is cut into characters, or at its blanks where the file
has them between symbols or words; what it is follows from the data unless it is given. Raw sentences can be cut into
words and punctuation. Several lines with one source are several right targets.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

import regex

from trelliswork.data.choices import Choices, Column
from trelliswork.data.columns import ColumnFormat
from trelliswork.data.json_values import JsonObject
from trelliswork.data.sentence import Sentence
from trelliswork.data.unicode_forms import Spelling, form_of, lowered, without_marks
from trelliswork.errors import DataError
from trelliswork.reading import name_of, numbered_lines

Units = Literal["auto", "characters", "blanks", "words"]
NormalForm = Literal["auto", "NFC", "NFD", "none"]
TAB = "\t"
MANY, SHORT = 3, 2  # symbols of a text, characters of a symbol, on average
SHOWN_UNITS = {"characters": "characters", "blanks": "symbols between blanks", "words": "words and punctuation"}
WORD_UNITS = ("blanks", "words")
JOINER = "\uffed"  # on the side of a token where it touches its neighbour, as in OpenNMT's tokeniser
_LETTERS = r"(?:(?![\p{Han}\p{Hiragana}])[\p{L}\p{M}\p{N}_])+"
_TOKEN = regex.compile(rf"\s*(\p{{Nd}}+(?:[.,:]\p{{Nd}}+)+|{_LETTERS}(?:['’\-]{_LETTERS})*|\X)", regex.V1)


@dataclass(frozen=True)
class PairFormat:
    """Settings for cutting the texts of both sides into symbols, and for what is done to them before.

    Both sides are brought into a Unicode normal form, sources also into lower case or without accents, if wanted.
    What is written is spelt as the training targets are (`spelling`), whatever the form inside of the model.

    >>> format = PairFormat("characters", "blanks")
    >>> format.cut_source("cat"), format.cut_target("K AE T"), format.join_target(("K", "AE", "T"))
    (('c', 'a', 't'), ('K', 'AE', 'T'), 'K AE T')
    """

    source: Units = "auto"
    target: Units = "auto"
    normal_form: NormalForm = "auto"
    lower: bool = False
    strip_marks: bool = False
    spelling: Spelling | None = None  # of targets; None leaves them in the normal form

    def __post_init__(self) -> None:
        if isinstance(self.spelling, Mapping):  # as it is stored
            object.__setattr__(self, "spelling", Spelling(**self.spelling))

    def cut_source(self, text: str) -> tuple[str, ...]:
        """Return the symbols of a source."""
        text = lowered(text) if self.lower else text
        return _cut(self.normalised(without_marks(text) if self.strip_marks else text), self.source)

    def cut_target(self, text: str) -> tuple[str, ...]:
        """Return the symbols of a target."""
        return _cut(self.normalised(text), self.target)

    def join_source(self, symbols: Sequence[str]) -> str:
        """Join the symbols of `cut_source`."""
        return _joined(symbols, self.source)

    def join_target(self, symbols: Sequence[str]) -> str:
        """Join the symbols of `cut_target`, spelt as the training targets are."""
        return self.spelled(_joined(symbols, self.target))

    def spelled(self, text: str) -> str:
        """Return a text, or a symbol, in the Unicode form of the training targets."""
        return text if self.spelling is None or self.normal_form == "none" else self.spelling.of(text)

    def words_of_target(self, symbols: Sequence[str]) -> tuple[str, ...]:
        """Return the words of a target as BLEU counts them: those of the text, whatever touches what."""
        if self.target != "words":
            return tuple(symbols)
        return tuple(symbol.strip(JOINER) or JOINER for symbol in self.cut_target(self.join_target(symbols)))

    def normalised(self, text: str) -> str:
        """Return a text in the normal form; "auto" that has not been resolved is NFC."""
        if self.normal_form == "none":
            return text
        return unicodedata.normalize("NFD" if self.normal_form == "NFD" else "NFC", text)

    def resolve(self, rows: Sequence[Row]) -> PairFormat:
        """Return the format with what is still open chosen by the rows of a file."""
        source = _units(row.source for row in rows) if self.source == "auto" else self.source
        target = _units(row.target for row in rows) if self.target == "auto" else self.target
        spelling = self.spelling or Spelling.learn(row.target for row in rows)
        return replace(self, source=source, target=target, spelling=spelling)

    def settings(self) -> JsonObject:
        """Return the chosen settings by the names of the options."""
        units = {"source_units": self.source, "target_units": self.target, "normalise": self.normal_form}
        return units | {"lower": self.lower, "strip_marks": self.strip_marks}

    def recut(self, pair: Sentence, before: PairFormat) -> Sentence:
        """Return a pair that was cut by another format, cut by this one."""
        target = None if pair.target is None else self.cut_target(before.join_target(pair.target))
        return replace(pair, words=self.cut_source(before.join_source(pair.words)), target=target)


def _cut(text: str, units: Units) -> tuple[str, ...]:
    if units == "words":
        return tuple(_tokens(text))
    return tuple(text.split()) if units == "blanks" else tuple(text)


def _joined(symbols: Sequence[str], units: Units) -> str:
    if units == "words":
        return _detokenised(symbols)
    return (" " if units == "blanks" else "").join(symbols)


def _tokens(text: str) -> list[str]:
    """Return words and punctuation, with a joiner where a token touches its neighbour; Han and hiragana are cut one
    by one.

    >>> _tokens("It's 3.5 (or so).") == ["It's", "3.5", "(" + JOINER, "or", "so", JOINER + ")", JOINER + "."]
    True
    """
    tokens, ends = list[str](), 0
    for match in _TOKEN.finditer(text.strip()):
        token = match[1]
        if tokens and match.start(1) == ends:
            before = tokens[-1].strip(JOINER)
            if before and not before[-1].isalnum() and token[0].isalnum():
                tokens[-1] += JOINER
            else:
                token = JOINER + token
        tokens.append(token)
        ends = match.end()
    return tokens


def _detokenised(tokens: Sequence[str]) -> str:
    """Join the tokens of `_tokens`, up to the width of white space.

    >>> _detokenised(_tokens("«Ja»,  sagte sie: 10-12 %, \uffeda\uffed!"))
    '«Ja», sagte sie: 10-12 %, ￭a￭!'
    """
    text, closed = "", True
    for token in tokens:
        before, after = token[:1] == JOINER and len(token) > 1, token[-1:] == JOINER and len(token.strip(JOINER)) > 0
        text += ("" if closed or before else " ") + token[before : len(token) - after]
        closed = after
    return text


def _units(texts: Iterable[str]) -> Units:
    """Return "blanks" if they are in at least half of the texts and what is between them is many or short.

    So phones and the words of sentences are symbols, and the parts of a name or the syllables of a word are not.

    >>> _units(["K AE T", "D AO G"]), _units(["a man sleeps", "two dogs run"]), _units(["an ninh", "van xuoi"])
    ('blanks', 'blanks', 'characters')
    """
    cut = [text.split() for text in texts]
    if 2 * sum(len(parts) > 1 for parts in cut) < len(cut):
        return "characters"
    n_parts = sum(map(len, cut))
    many, short = n_parts >= MANY * len(cut), sum(len(part) for parts in cut for part in parts) <= SHORT * n_parts
    return "blanks" if many or short else "characters"


@dataclass(frozen=True)
class PairColumns(ColumnFormat):
    """The columns of a file of pairs: sources as words, targets as tags; and how both are cut."""

    SIDES: ClassVar[tuple[str, str]] = ("source", "target")

    pairs: PairFormat = PairFormat()
    form: str = ""  # the Unicode form of the file: NFC, NFD or mixed, or nothing if both are alike

    def describe(self) -> str:
        """Describe the layout in one line."""
        named = [f"source = {self.word_column} ({SHOWN_UNITS[self.pairs.source]})"]
        if self.tag_column is not None:
            named.append(f"target = {self.tag_column} ({SHOWN_UNITS[self.pairs.target]})")
        unread = self.n_columns - len(named)
        more = f", {unread} not read" if unread > 0 else ""
        form = f"; Unicode form {self.form}" if self.form else ""
        return f"pairs, {self.n_columns} columns: {', '.join(named)}{more}{form}"

    def choices(self) -> Choices:
        """Return the same columns and cuts for another file."""
        return Choices(self.delimiter, self.word_column, self.tag_column, (), pairs=self.pairs)


class Row(NamedTuple):
    """A line of a file of pairs; the target is empty where only sources are read."""

    line: int
    source: str
    target: str
    n_columns: int


def read_pairs(path: str | Path, format: PairFormat | None = None) -> list[Sentence]:
    """Return the pairs of a TSV file.

    >>> read_pairs("cmudict.tsv")[0]                                     # doctest: +SKIP
    Sentence(words=('c', 'a', 't'), target=('K', 'AE', 'T'))
    """
    return list(open_pairs(path, Choices(pairs=format))[1])


def open_pairs(path: str | Path, choices: Choices, *, with_targets: bool = True) -> tuple[PairColumns, list[Sentence]]:
    """Return the columns of a file of pairs, and the pairs; a line with too few columns or an empty side is an
    error.

    Args:
        path: A TSV file.
        choices: What is known of its columns and of how sides are cut.
        with_targets: Whether each line must have a target.

    Returns:
        The columns, and the pairs.
    """
    columns = PairColumns(*columns_for(choices, with_targets, str(path)))
    rows = list(rows_of(path, columns))
    if not rows:
        what = "a source, a tab and a target" if with_targets else "a source"
        raise DataError(name_of(path), f"expected lines of {what}, got none; the file is empty")
    pairs = (choices.pairs or PairFormat()).resolve(rows)
    form = form_of(text for row in rows for text in (row.source, row.target))
    columns = replace(columns, n_columns=max(row.n_columns for row in rows), pairs=pairs, form=form)
    return columns, [_pair(row, columns, name_of(path)) for row in rows]


def open_sources(path: str | Path, choices: Choices) -> tuple[PairColumns, Iterator[Sentence]]:
    """Return the sources of a file, read as they are asked for; how they are cut must be known."""
    columns = replace(PairColumns(*columns_for(choices, False, str(path))), pairs=choices.pairs)
    return columns, (_pair(row, columns, name_of(path)) for row in rows_of(path, columns))


def columns_for(choices: Choices, with_targets: bool, file: str) -> tuple[str, int, int, int | None]:
    """Return the delimiter, the least number of columns, and the columns of both sides.

    Args:
        choices: What is known of the layout; columns default to those of its fallback, then to 1 and 2.
        with_targets: Whether there is a column of targets.
        file: Name of the file, for errors.

    Returns:
        The delimiter, the least number of columns, and the columns, counted from 1; None for targets that are not read.
    """
    fallback = choices.fallback or Choices()
    source = _number(choices.word_column or fallback.word_column or 1, "--word-column", file)
    target = _number(choices.tag_column or fallback.tag_column or 2, "--tag-column", file) if with_targets else None
    if source == target:
        raise DataError(file, f"expected source and target in different columns, got {source} for both")
    return choices.delimiter or TAB, max(source, target or 1), source, target


def _number(column: Column, option: str, file: str) -> int:
    if not isinstance(column, int):
        raise DataError(file, f"{option}: expected the number of a column, got {column!r}; pairs have no header")
    return column


def rows_of(path: str | Path, columns: PairColumns, *, optional: bool = False) -> Iterator[Row]:
    """Yield the lines that are not empty; with `optional` targets, lines may end before theirs.

    Args:
        path: The file.
        columns: The delimiter and the columns of both sides.
        optional: Whether a target may be empty or missing.
    """
    name, at, to = name_of(path), columns.word_column, columns.tag_column
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        fields = line.split(columns.delimiter)
        if to and optional and len(fields) < to:
            fields += [""] * (to - len(fields))
        sides = list(zip(columns.SIDES, (at, to), strict=True))
        if len(fields) < max(at, to or 1):
            problem = f"expected at least {max(at, to or 1)} columns with a tab between them, got {len(fields)}"
            fix = f"write {', tab, '.join(columns.SIDES)}, or name the columns with --word-column and --tag-column"
            raise DataError(name, f"{problem}; {fix}", line=number)
        for side, column in sides[: 1 if optional else 2]:
            if column and not fields[column - 1].strip():
                raise DataError(name, f"expected a {side}, got nothing; fill it in, or remove the line", line=number)
        yield Row(number, fields[at - 1], fields[to - 1] if to else "", len(fields))


def _pair(row: Row, columns: PairColumns, file: str) -> Sentence:
    pairs = columns.pairs
    target = pairs.cut_target(row.target) if columns.tag_column else None
    source = pairs.cut_source(row.source)
    return Sentence(source, line=row.line, file=file, text=row.source, target=target, target_text=row.target)
