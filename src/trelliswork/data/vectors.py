"""Word vectors in text files: GloVe, and word2vec and fastText, whose first line says how many there are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from trelliswork.data.files import name_of, numbered_lines
from trelliswork.errors import DataError

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class WordVectors:
    """One row of `matrix` for each word; all words differ."""

    words: tuple[str, ...]
    matrix: Array  # [words, dim] float32

    @property
    def dim(self) -> int:
        return int(self.matrix.shape[1])


def read_vectors(path: str | Path) -> WordVectors:
    """Read a text file, plain or gzip: on each line a word and its numbers. Of words that come twice the first counts.

    Lines with another number of values, or with something else than numbers, are errors that name the line.
    """
    file, dim = name_of(path), 0
    rows: dict[str, Array] = {}
    for number, line in numbered_lines(path):
        if number == 1 and _is_header(line):
            dim = int(line.split()[1])
            continue
        if not line.strip():
            continue
        dim = dim or len(line.split()) - 1
        word, values = _word_and_values(line, dim)
        row = _numbers(values)
        if word == "" or row.shape != (dim,) or not np.isfinite(row).all():
            got = _what_is_wrong(values, dim)
            raise DataError(file, f"expected a word and {dim} numbers, got {got}; mend or drop the line", line=number)
        rows.setdefault(word, row)
    if not rows:
        raise DataError(file, "expected word vectors, a word and its numbers on each line; got none")
    return WordVectors(tuple(rows), np.stack(list(rows.values())))


def _is_header(line: str) -> bool:
    """Whether a first line says how many words and dimensions there are."""
    fields = line.split()
    return len(fields) == 2 and all(field.isdigit() for field in fields)


def _word_and_values(line: str, dim: int) -> tuple[str, list[str]]:
    """The word, which may hold spaces, and what comes behind it."""
    fields = line.rstrip().split(" ") if "\t" not in line else line.rstrip().split()
    n_word = max(len(fields) - dim, 1)
    word, values = fields[:n_word], fields[n_word:]
    if n_word > 1 and _is_number(word[-1]) and _is_number(word[1]):  # too many numbers, not a word with spaces
        return word[0], fields[1:]
    return " ".join(word), values


def _numbers(values: list[str]) -> Array:
    try:
        return np.array(values, np.float32)
    except ValueError:
        return np.empty(0, np.float32)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _what_is_wrong(values: list[str], dim: int) -> str:
    if len(values) != dim:
        return f"{len(values)} values"
    return repr(next((text for text in values if not _is_number(text) or not np.isfinite(float(text))), "no word"))
