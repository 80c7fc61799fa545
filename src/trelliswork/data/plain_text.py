"""Telling plain text from columns: whoever forgets --text is told so, instead of reading the first word of each line.

In a file of columns the lines of a sentence have the same number of them, or nearly so, and most last columns are tags.
In text the numbers of words differ from line to line, or lines end as sentences do. What may be either is columns.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import groupby

_STOP = ".!?…。！？｡؟۔।॥።။៕։\u037e"
_CLOSING = "\"'”’»›)\\]」』"
_ENDS = re.compile(rf".*[^{_STOP}{_CLOSING}][{_CLOSING}]*[{_STOP}]+[{_CLOSING}]*")  # at a word: Paris."
_BARE = re.compile(rf"[{_STOP}]+[{_CLOSING}]*")
_UNSPACED = re.compile(r".{5,}[。！？｡][」』”’）]*")  # a sentence of a language without blanks
_NO_WORD = re.compile(r"[\d=:|/\\_<>{}]")
_TAG = re.compile(r"O|_|[BIESLUM]-\S+|[A-Z]{2,5}\$?")
FEWEST_FIELDS = 3  # of the longest line that is a sentence
WIDE = 3  # how far the numbers of words in lines of text are apart, at least
LONG = 6  # words of the longest of these lines, at least; few files have so many columns
FEW_LINES = 2  # that may have the same number of words by chance
SHORT = 5  # lines of which most may have the same number of words by chance
MANY_BLOCKS = 5

Rows = list[list[str]]


def looks_like_text(lines: Sequence[str], most_columns: int | None = None) -> bool:
    """Whether lines are ordinary text rather than words with columns; `most_columns` is what a model was trained on.

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
    """Whether most lines end as sentences do. A column may also: it has the same place in all lines."""
    several = [row for row in rows if len(row) > 1]
    attached, bare = ([row for row in several if mark.fullmatch(row[-1])] for mark in (_ENDS, _BARE))
    if 2 * len(attached + bare) <= len(rows) or max(map(len, attached + bare)) < FEWEST_FIELDS:
        return False
    if len(rows) == 1 or _varies(blocks):
        return True
    return len(rows) <= FEW_LINES and (len(attached) == len(rows) or min(map(len, rows)) >= LONG)


def _varies(blocks: Sequence[Rows]) -> bool:
    """Whether lines that belong together have different numbers of words; each may be a paragraph."""
    together = [block for block in blocks if len(block) > 1] or [[row for block in blocks for row in block]]
    return 2 * sum(_range(each) > 0 and (_is_mixed(each) or len(each) <= SHORT) for each in together) >= len(together)


def _is_mixed(block: Rows) -> bool:
    """Whether no number of words is that of most lines."""
    return 2 * Counter(map(len, block)).most_common(1)[0][1] <= len(block)


def _range(block: Rows) -> int:
    return max(map(len, block)) - min(map(len, block))


def _is_wide(blocks: Sequence[Rows]) -> bool:
    """Whether numbers of words differ far more than optional columns do."""
    together = [block for block in blocks if len(block) > 1]
    if len(together) < len(blocks) / MANY_BLOCKS and len(blocks) >= MANY_BLOCKS:  # a paragraph on each line
        together = [[row for block in blocks for row in block]]
    wide = [each for each in together if _range(each) >= WIDE and max(map(len, each)) >= LONG and _is_mixed(each)]
    return bool(together) and 2 * len(wide) >= len(together)


def _is_wider(blocks: Sequence[Rows], most_columns: int | None) -> bool:
    """Whether there is one line, or lines of different lengths, with more words than a model was trained on columns."""
    rows = [row for block in blocks for row in block]
    if most_columns is None or 2 * sum(len(row) > most_columns for row in rows) <= len(rows):
        return False
    return _TAG.fullmatch(rows[0][-1]) is None if len(rows) == 1 else _varies(blocks)


def _is_wordy(rows: Rows) -> bool:
    """Whether at least half of the fields are words rather than attributes or numbers."""
    fields = [field for row in rows for field in row]
    return 2 * sum(any(map(str.isalpha, each)) and not _NO_WORD.search(each) for each in fields) >= len(fields)
