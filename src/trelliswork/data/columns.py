"""CoNLL columns: one token a line, columns side by side, a blank line between sentences.

`conll` infers the layout from the file; it can be printed:

    >>> ColumnFormat("\\t", 3, word_column=1, tag_column=3, feature_columns=(2,), scheme="IOB2").describe()
    'tab-separated, 3 columns: word = 1, tag = 3 (IOB2), features = 2'

CoNLL-U is the same with ten fixed columns, comments, and lines for multiword tokens (`1-2`) and empty nodes
(`1.1`) that are skipped.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from trelliswork.data.raw_sentences import place_words
from trelliswork.data.sentence import Sentence
from trelliswork.errors import DataError

NumberedLine = tuple[int, str]

_BLANKS = re.compile(r"[ \t]+")
_NOT_A_WORD = re.compile(r"\d+[-.]\d+")  # CoNLL-U: a multiword token 1-2 or an empty node 1.1
_NOT_TOKENS = ("-DOCSTART-", "#")
LEMMA = 3  # its column in CoNLL-U
_TEXT, _IDENT = "# text = ", "# sent_id = "
_IDS = tuple(map(str, range(1, 1001)))
_DELIMITER_NAMES = {"\t": "tab-separated", " ": "space-separated", None: "separated by white space"}


@dataclass(frozen=True)
class ColumnFormat:
    """Layout of a file whose lines divide into columns. Columns are numbered from 1.

    `delimiter` is one string, or None for any run of spaces and tabs. `comments` tells whether lines that
    start with "#" and do not have the columns of a token are skipped.
    """

    delimiter: str | None
    n_columns: int
    word_column: int = 1
    tag_column: int | None = None
    feature_columns: tuple[int, ...] = ()
    scheme: str | None = None
    comments: bool = False
    conllu: bool = False
    head_column: int | None = None  # of a treebank, whose tags are the labels of arcs

    def describe(self) -> str:
        """Describe the layout in one line."""
        kind = "CoNLL-U, " if self.conllu else ""
        layout = _DELIMITER_NAMES.get(self.delimiter, f"separated by {self.delimiter!r}")
        named = [f"word = {self.word_column}"]
        if self.head_column is not None:
            named.append(self.describe_arcs())
        elif self.tag_column is not None:
            named.append(f"tag = {self.tag_column}" + (f" ({self.scheme})" if self.scheme else ""))
        if self.feature_columns:
            named.append("features = " + ", ".join(map(str, self.feature_columns)))
        columns = "1 column" if self.n_columns == 1 else f"{self.n_columns} columns"
        return f"{kind}{layout}, {columns}: {', '.join(named)}"

    def describe_arcs(self) -> str:
        """Describe the columns with the arcs of a treebank."""
        return f"head = {self.head_column}, label = {self.tag_column}"

    def split(self, line: str) -> list[str]:
        """Return the columns of one line."""
        if self.delimiter is None:
            return _BLANKS.split(line.strip(" \t"))
        columns = line.rstrip(" ").split(self.delimiter)
        if len(columns) == self.n_columns + 1 and not columns[-1]:
            columns.pop()  # a delimiter at the end of the line
        return columns

    def is_comment(self, line: str) -> bool:
        """Return whether `line` is a comment rather than a token."""
        if not (self.comments and line.startswith("#")):
            return False
        columns = self.split(line)
        return self.conllu or len(columns) != self.n_columns or not all(columns)


def read_lines(
    lines: Iterable[NumberedLine],
    file: str,
    format: ColumnFormat,
    *,
    with_tags: bool = True,
    numbered: bool = False,
) -> Iterator[Sentence]:
    """Yield the sentences in numbered lines of a known layout; at least one, or it is an error.

    Args:
        lines: (number, line) of each line.
        file: Name of the file, for the sentence of an error.
        format: Which column is what.
        with_tags: Whether there are tags to read.
        numbered: Whether the ids of CoNLL-U must count the words of each sentence from 1.

    Returns:
        An iterator over the sentences.
    """
    n_sentences = 0
    texts: list[str] = []  # the comment of a CoNLL-U sentence that has its text
    idents: list[str] = []  # the one that has its id
    noted = (texts, idents) if format.conllu and not with_tags else None
    for block in blocks(lines, format, noted):
        sentence = _regular(block, file, format, with_tags)
        if sentence is not None and texts:
            sentence = place_words(sentence, texts.pop(), {})
        if sentence is None:
            rows = every = [(number, format.split(line)) for number, line in block]
            if format.conllu:
                rows = [(number, columns) for number, columns in rows if not _NOT_A_WORD.fullmatch(columns[0])]
            if not rows:
                continue
            if format.conllu and numbered:
                _check_ids(rows, file, format, idents)
            sentence = sentence_of(rows, file, format, with_tags)
            if texts:
                sentence = place_words(sentence, texts[-1], dict(_multiword_forms(every, format.word_column)))
                texts.clear()
        n_sentences += 1
        yield sentence
    if n_sentences == 0:
        raise DataError(file, "expected at least one sentence, got none; the file is empty")


def _check_ids(rows: Sequence[tuple[int, list[str]]], file: str, format: ColumnFormat, idents: Sequence[str]) -> None:
    where = f"sentence {idents[-1]}: " if idents else ""
    for i, (number, columns) in enumerate(rows, 1):
        if columns[0] != str(i):
            problem = f"expected word {i}, got the id {columns[0]!r}"
            fix = "number the words of a sentence from 1, without gaps"
            raise DataError(file, f"{where}{problem}; {fix}", line=number)
        if len(columns) != format.n_columns:
            problem = f"expected the {format.n_columns} columns of CoNLL-U, separated by tabs, got {len(columns)}"
            raise DataError(file, f"{where}{problem}; correct the line, or end the sentence before it", line=number)


def _multiword_forms(rows: Sequence[tuple[int, list[str]]], column: int) -> Iterator[tuple[int, tuple[int, str]]]:
    """Yield the number of the first word of each multi-word token, from 0, one behind that of the last, and its
    form.
    """
    for _, columns in rows:
        if _NOT_A_WORD.fullmatch(columns[0]) and "-" in columns[0] and len(columns) >= column:
            first, _, last = columns[0].partition("-")
            yield int(first) - 1, (int(last), columns[column - 1])


def blocks(
    lines: Iterable[NumberedLine], format: ColumnFormat, noted: tuple[list[str], list[str]] | None = None
) -> Iterator[list[NumberedLine]]:
    """Yield token lines, grouped by the blank lines between them; comments and document marks are dropped.

    Args:
        lines: (number, line) of each line.
        format: Which column is what.
        noted: Two lists that have the text and the id of a CoNLL-U sentence, if comments say them, when its block is
            there; None if nobody asks.

    Returns:
        An iterator over the token lines of each sentence.
    """
    block: list[NumberedLine] = []
    for numbered in lines:
        line = numbered[1]
        if not line or line.isspace():
            if block:
                yield block
                block = []
        elif not (line.startswith(_NOT_TOKENS) and (line[0] == "-" or format.is_comment(line))):
            block.append(numbered)
        elif noted is not None:
            for before, values in zip((_TEXT, _IDENT), noted, strict=True):
                if line.startswith(before):
                    values[:] = [line.removeprefix(before)]
    if block:
        yield block


def _regular(block: list[NumberedLine], file: str, format: ColumnFormat, with_tags: bool) -> Sentence | None:
    """Return the sentence of a block if each of its lines has all columns, none of them empty; None if in doubt.

    In CoNLL-U its lines must be words 1, 2, 3 and so on, nothing in between.
    """
    if format.delimiter is None:
        return None
    try:
        columns = list(zip(*[line.rstrip(" ").split(format.delimiter) for _, line in block], strict=True))
    except ValueError:  # lines of different lengths
        return None
    if len(columns) != format.n_columns or (format.conllu and columns[0] != _IDS[: len(block)]):
        return None
    values = {LEMMA: tuple(map(sys.intern, columns[LEMMA - 1]))} if format.conllu else dict[int, tuple[str, ...]]()
    for i in _needed(format, with_tags) if format.conllu else range(1, format.n_columns + 1):
        column = columns[i - 1]
        if not all(column) or any(map(str.isspace, column)):
            return None
        values[i] = tuple(map(sys.intern, column))  # a word that comes again takes no room again
    return _of_columns(values.__getitem__, [number for number, _ in block], file, format, with_tags)


def _needed(format: ColumnFormat, with_tags: bool) -> list[int]:
    """Return the columns that a sentence is made of."""
    tags = [format.tag_column] if with_tags and format.tag_column is not None else []
    return [format.word_column, *format.feature_columns, *tags]


def sentence_of(rows: list[tuple[int, list[str]]], file: str, format: ColumnFormat, with_tags: bool) -> Sentence:
    """Return a sentence from its numbered rows, each split into columns.

    Args:
        rows: (number of the line, its columns) of each token.
        file: Name of the file, for the sentence of an error.
        format: Which column is what.
        with_tags: Whether there is a column of tags to read.

    Returns:
        The sentence.
    """
    needed = _needed(format, with_tags)
    for number, columns in rows:
        _check_row(columns, file, number, format, needed, with_tags)

    def column(i: int) -> tuple[str, ...]:
        return tuple(columns[i - 1] for _, columns in rows)

    return _of_columns(column, [number for number, _ in rows], file, format, with_tags)


def _of_columns(
    column: Callable[[int], tuple[str, ...]], numbers: list[int], file: str, format: ColumnFormat, with_tags: bool
) -> Sentence:
    """Return a sentence whose tokens are on the lines `numbers`."""
    tags = column(format.tag_column) if with_tags and format.tag_column is not None else None
    features = tuple(column(i) for i in format.feature_columns)
    lines = () if numbers[-1] == numbers[0] + len(numbers) - 1 else tuple(numbers)  # lines in between were skipped
    lemmas = {"LEMMA": column(LEMMA)} if format.conllu and tags is not None else {}
    return Sentence(column(format.word_column), tags, features, line=numbers[0], file=file, lines=lines, columns=lemmas)


def _check_row(
    columns: list[str], file: str, number: int, format: ColumnFormat, needed: list[int], with_tags: bool
) -> None:
    got = len(columns)
    if got != format.n_columns and (with_tags or got < max(needed)):
        problem = f"expected {format.n_columns} columns, got {got}"
        raise DataError(file, problem, line=number, column=min(got, format.n_columns + 1))
    for i in needed:
        if not columns[i - 1].strip(" "):
            role = "a word" if i == format.word_column else "a value"
            raise DataError(file, f"expected {role}, got an empty column", line=number, column=i)


def conll_text(sentence: Sentence, *, delimiter: str = "\t") -> str:
    """Return a sentence as CoNLL columns: word, features, tag; with the blank line that ends it.

    >>> conll_text(Sentence(("Ann", "sings"), ("B-PER", "O")), delimiter=" ")
    'Ann B-PER\\nsings O\\n\\n'
    """
    columns = [sentence.words, *sentence.features]
    if sentence.tags is not None:
        columns.append(sentence.tags)
    return columns_text(columns, sentence, delimiter)


def columns_text(columns: Sequence[Sequence[str]], sentence: Sentence, delimiter: str) -> str:
    """Return columns as lines; they are those of `sentence`, which is named if one of the values cannot be written.

    Args:
        columns: The columns, each with a value for every token.
        sentence: The sentence that they belong to, which is named in errors.
        delimiter: What stands between two columns.

    Returns:
        A line for each token.
    """
    rows = list(zip(*columns, strict=True))
    text = "\n".join(map(delimiter.join, rows))
    n_ends, n_between = text.count("\n"), text.count(delimiter)
    if n_ends == max(len(rows) - 1, 0) and n_between == len(rows) * (len(columns) - 1) and "\r" not in text:
        return text + "\n\n" if rows else "\n"
    for value in itertools.chain(*columns):
        if delimiter in value or "\n" in value or "\r" in value:
            problem = f"columns cannot hold {value!r}: it has a line end or the {delimiter!r} between columns in it"
            raise DataError(sentence.file or "sentence", f"{problem}; write JSON lines", line=sentence.line)
    return text + "\n\n"
