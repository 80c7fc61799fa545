"""Reading CoNLL-column files whose layout is inferred from their first lines.

>>> infer_format("train.conll").describe()  # doctest: +SKIP
'space-separated, 3 columns: word = 1, tag = 3 (IOB2), features = 2'

In a file of columns the lines of a sentence have the same number of them, or nearly so, and most last columns are tags.
In text the numbers of words differ from line to line, or lines end as sentences do. What may be either is columns.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from operator import methodcaller
from pathlib import Path

from trelliswork.data.choices import CONLLU_NAMES, WORDS_ALONE, Choices, column_number, is_constant
from trelliswork.data.columns import ColumnFormat, NumberedLine, blocks, conll_text, read_lines
from trelliswork.data.sentence import Sentence
from trelliswork.errors import DataError
from trelliswork.reading import name_of, numbered_lines
from trelliswork.tags.schemes import canonical, infer_scheme

__all__ = [
    "Choices",
    "ColumnFormat",
    "conll_text",
    "format_of",
    "infer_format",
    "open_conll",
    "read_conll",
    "read_lines",
]

SAMPLE_LINES = 50_000  # enough to tell the scheme; the rest of the file streams by
UNTAGGED_SAMPLE_LINES = 2_000  # enough to tell the columns
SHOWN = 40  # characters of a line

_CONLLU_ID = re.compile(r"\d+([-.]\d+)?")


def infer_format(path: str | Path, choices: Choices | None = None, *, with_tags: bool = True) -> ColumnFormat:
    """Return the layout of the file at `path`; what `choices` settle is taken as it is.

    Args:
        path: A file.
        choices: What is known of its layout.
        with_tags: Whether there must be a column of tags.

    Returns:
        The layout.
    """
    if str(path) == "-":
        raise DataError("<stdin>", "standard input can be read only once; use open_conll to infer and read")
    sample = list(itertools.islice(numbered_lines(path), _sample_size(with_tags)))
    return format_of(sample, name_of(path), choices or Choices(), with_tags=with_tags)


def open_conll(
    path: str | Path,
    choices: Choices | None = None,
    *,
    with_tags: bool = True,
    keep: Callable[[bytes], None] | None = None,
) -> tuple[ColumnFormat, Iterator[Sentence]]:
    """Return the inferred layout and the sentences, in one pass over the file (so standard input works too).

    `keep` is given all that is read; see `numbered_lines`.

    Args:
        path: A file, or "-" for standard input.
        choices: What is known of its layout.
        with_tags: Whether there must be a column of tags.
        keep: Called with all bytes that are read.

    Returns:
        The layout, and the sentences as they are read.
    """
    lines = numbered_lines(path, keep)
    sample = list(itertools.islice(lines, _sample_size(with_tags)))
    _refuse_text(sample, name_of(path), choices or Choices())
    format = format_of(sample, name_of(path), choices or Choices(), with_tags=with_tags)
    numbered = choices is not None and choices.numbered
    every = itertools.chain(sample, lines)
    return format, read_lines(every, name_of(path), format, with_tags=with_tags, numbered=numbered)


def read_conll(path: str | Path, format: ColumnFormat | None = None, *, with_tags: bool = True) -> Iterator[Sentence]:
    """Return the sentences of a CoNLL-column file, one by one; `.gz` and "-" (standard input) are accepted.

    Without `format` the layout is inferred from the first lines. With `with_tags=False` the tag column may be
    missing and `Sentence.tags` is None.

    Args:
        path: A file, or "-" for standard input.
        format: Its layout; None infers it.
        with_tags: Whether there must be a column of tags.

    Returns:
        The sentences.

    >>> [sentence.words for sentence in read_conll("train.conll")]  # doctest: +SKIP
    [('Ann', 'sings', '.'), ...]
    """
    if format is not None:
        return read_lines(numbered_lines(path), name_of(path), format, with_tags=with_tags)
    return open_conll(path, with_tags=with_tags)[1]


def format_of(sample: Sequence[NumberedLine], file: str, choices: Choices, *, with_tags: bool = True) -> ColumnFormat:
    """Return the layout that fits the sampled lines.

    Args:
        sample: (number, line) of the first lines.
        file: Name of the file, for the sentence of an error.
        choices: Columns and scheme that the user has named; what is not named is inferred.
        with_tags: Whether a column of tags is expected.

    Returns:
        Which column is what.
    """
    tokens = [line for _, line in sample if line and not line.isspace() and not line.startswith("-DOCSTART-")]
    sure = [line for line in tokens if not line.startswith("#")] or tokens
    if not sure:
        raise DataError(file, "expected at least one sentence, got none; the file is empty")
    delimiter = choices.delimiter or _delimiter(sure)
    n_columns = _n_columns(sure, delimiter)
    format = ColumnFormat(delimiter, n_columns)
    format = replace(format, conllu=_is_conllu(sure, format))
    may_be = replace(format, comments=True)
    format = replace(format, comments=format.conllu or any(map(may_be.is_comment, tokens)))
    format = _name_columns(format, choices.completed(format.conllu), file, with_tags, sure)
    return replace(format, scheme=_scheme(sample, format, choices)) if with_tags else format


def _refuse_text(sample: Sequence[NumberedLine], file: str, choices: Choices) -> None:
    """Refuse what looks like plain text, unless the user says that it has columns, and which."""
    if choices.are_columns or (choices.delimiter, choices.word_column, choices.tag_column) != (None, None, None):
        return
    first = sample[:UNTAGGED_SAMPLE_LINES]
    if looks_like_text([line for _, line in first], choices.most_columns):
        number, line = next((number, line) for number, line in first if line.strip())
        problem = f"expected one word per line with its columns, got what looks like plain text ({line[:SHOWN]!r})"
        fix = "add --text to predict or explain text; if these are columns, add --word-column 1; training needs tags"
        raise DataError(file, f"{problem}; {fix}", line=number)


def _sample_size(with_tags: bool) -> int:
    return SAMPLE_LINES if with_tags else UNTAGGED_SAMPLE_LINES


def _delimiter(lines: Sequence[str]) -> str | None:
    """Return a tab if nearly all lines have one (the others are then reported), else blanks."""
    n_tabs = sum("\t" in line for line in lines)
    if n_tabs >= 0.9 * len(lines):
        return "\t"
    stripped = "\n".join(map(str.strip, lines))
    return None if "\t" in stripped or "  " in stripped else " "


def _n_columns(lines: Sequence[str], delimiter: str | None) -> int:
    if delimiter is not None:
        stripped = map(methodcaller("rstrip", " "), lines)
        return Counter(map(methodcaller("count", delimiter), stripped)).most_common(1)[0][0] + 1
    split = ColumnFormat(None, 0).split
    return Counter(len(split(line)) for line in lines).most_common(1)[0][0]


def _is_conllu(lines: Sequence[str], format: ColumnFormat) -> bool:
    if format.n_columns != 10 or format.delimiter != "\t":
        return False
    return all(_CONLLU_ID.fullmatch(line.partition("\t")[0]) for line in lines[:1000])


def _name_columns(
    format: ColumnFormat, choices: Choices, file: str, with_tags: bool, lines: Sequence[str]
) -> ColumnFormat:
    n, names = format.n_columns, CONLLU_NAMES if format.conllu else ()
    word = column_number(choices.word_column or (2 if format.conllu else 1), names, "word", file)
    tag = column_number(choices.tag_column or (4 if format.conllu else n), names, "tag", file)
    if tag == word and choices.tag_column is None:
        if with_tags:
            problem = f"expected a word and a tag column, got {n} column(s); add tags or name the delimiter"
            raise DataError(file, problem)
        tag = 0
    if choices.feature_columns is not None:
        features = tuple(column_number(each, names, "feature", file) for each in choices.feature_columns)
    else:
        features = () if format.conllu else _telling(format, lines, (word, tag))
    if choices.may_lack and not all(1 <= i <= n and i != choices.tag_column for i in features):
        features = ()
    wanted = {"word": (word,), "tag": (tag,) if tag else (), "feature": features}
    for role, columns in wanted.items():
        for i in columns:
            if not 1 <= i <= n and (with_tags or role != "tag"):
                fix = f"; add it, {WORDS_ALONE}" if role == "feature" and not with_tags else ""
                raise DataError(file, f"expected the {role} column in 1..{n}, got {i}; the file has {n} columns{fix}")
    return replace(format, word_column=word, tag_column=tag or None, feature_columns=features)


def _telling(format: ColumnFormat, lines: Sequence[str], taken: tuple[int, ...]) -> tuple[int, ...]:
    """Return the columns other than `taken` that do not have one value throughout."""
    free = [i for i in range(1, format.n_columns + 1) if i not in taken]
    rows = [format.split(line) for line in lines] if free else []
    return tuple(i for i in free if not is_constant([row[i - 1] for row in rows if len(row) >= i]))


def _scheme(sample: Sequence[NumberedLine], format: ColumnFormat, choices: Choices) -> str | None:
    if choices.scheme is not None:
        return canonical(choices.scheme)
    if format.tag_column is None:
        return None
    return infer_scheme(_tag_rows(sample, format, format.tag_column))


def _tag_rows(sample: Sequence[NumberedLine], format: ColumnFormat, tag_column: int) -> Iterator[list[str]]:
    """Yield the tags of each sampled sentence; a line without the column is reported by the reader, not here."""
    for block in blocks(sample, format):
        rows = (format.split(line) for _, line in block)
        yield [row[tag_column - 1] for row in rows if len(row) >= tag_column and row[tag_column - 1].strip()]


# Telling plain text from columns: without --text, the first word of each line would be read.

_STOP = ".!?…。！？｡؟۔।॥።။៕։\u037e"
_CLOSING = "\"'”’»›)\\]」』"
_ENDS = re.compile(rf".*[^{_STOP}{_CLOSING}][{_CLOSING}]*[{_STOP}]+[{_CLOSING}]*")  # at a word: Paris."
_BARE = re.compile(rf"[{_STOP}]+[{_CLOSING}]*")
_UNSPACED = re.compile(r".{5,}[。！？｡][」』”’）]*")  # a sentence of a language without blanks
_NO_WORD = re.compile(r"[\d=:|/\\_<>{}]")
_TAG = re.compile(r"O|_|[BIESLUM]-\S+|[A-Z]{2,5}\$?")
FEWEST_FIELDS = 3  # of the longest line that is a sentence
WIDE = 3  # how far the numbers of words in lines of text are apart, at least
LONG = 6  # words of the longest of these lines, at least; few files have this many columns
FEW_LINES = 2  # that may have the same number of words by chance
SHORT = 5  # lines of which most may have the same number of words by chance
MANY_BLOCKS = 5

Rows = list[list[str]]


def looks_like_text(lines: Sequence[str], most_columns: int | None = None) -> bool:
    """Return whether lines are plain text rather than words with columns; a model was trained on `most_columns`.

    >>> looks_like_text(["Ann lives in Paris.", "She sings."]), looks_like_text(["Ann B-PER", "sings O", ". O"])
    (True, False)
    """
    kept = [line for line in lines if not line.startswith(("#", "-DOCSTART-"))]
    groups = groupby(kept, key=lambda line: bool(line.strip()))
    blocks = [[line.split() for line in group] for is_filled, group in groups if is_filled]
    rows = [row for block in blocks for row in block]
    if not rows or 2 * sum("\t" in line.strip() for line in kept) > len(rows):
        return False
    if 2 * sum(len(row) == 1 and _UNSPACED.fullmatch(row[0]) is not None for row in rows) > len(rows):
        return True
    return _ends_as_text(blocks, rows) or (_is_wordy(rows) and (_is_wide(blocks) or _is_wider(blocks, most_columns)))


def _ends_as_text(blocks: Sequence[Rows], rows: Rows) -> bool:
    """Return whether most lines end as sentences do. A column may also: it has the same place in all lines."""
    several = [row for row in rows if len(row) > 1]
    attached, bare = ([row for row in several if mark.fullmatch(row[-1])] for mark in (_ENDS, _BARE))
    if 2 * len(attached + bare) <= len(rows) or max(map(len, attached + bare)) < FEWEST_FIELDS:
        return False
    if len(rows) == 1 or _varies(blocks):
        return True
    return len(rows) <= FEW_LINES and (len(attached) == len(rows) or min(map(len, rows)) >= LONG)


def _varies(blocks: Sequence[Rows]) -> bool:
    """Return whether lines that belong together have different numbers of words; each may be a paragraph."""
    together = [block for block in blocks if len(block) > 1] or [[row for block in blocks for row in block]]
    return 2 * sum(_range(each) > 0 and (_is_mixed(each) or len(each) <= SHORT) for each in together) >= len(together)


def _is_mixed(block: Rows) -> bool:
    """Return whether no number of words is that of most lines."""
    return 2 * Counter(map(len, block)).most_common(1)[0][1] <= len(block)


def _range(block: Rows) -> int:
    return max(map(len, block)) - min(map(len, block))


def _is_wide(blocks: Sequence[Rows]) -> bool:
    """Return whether numbers of words differ far more than optional columns do."""
    together = [block for block in blocks if len(block) > 1]
    if len(together) < len(blocks) / MANY_BLOCKS and len(blocks) >= MANY_BLOCKS:  # a paragraph on each line
        together = [[row for block in blocks for row in block]]
    wide = [each for each in together if _range(each) >= WIDE and max(map(len, each)) >= LONG and _is_mixed(each)]
    return bool(together) and 2 * len(wide) >= len(together)


def _is_wider(blocks: Sequence[Rows], most_columns: int | None) -> bool:
    """Return whether there is one line, or lines of several lengths, of more words than the model's columns."""
    rows = [row for block in blocks for row in block]
    if most_columns is None or 2 * sum(len(row) > most_columns for row in rows) <= len(rows):
        return False
    return _TAG.fullmatch(rows[0][-1]) is None if len(rows) == 1 else _varies(blocks)


def _is_wordy(rows: Rows) -> bool:
    """Return whether at least half of the fields are words rather than attributes or numbers."""
    fields = [field for row in rows for field in row]
    return 2 * sum(any(map(str.isalpha, each)) and not _NO_WORD.search(each) for each in fields) >= len(fields)
