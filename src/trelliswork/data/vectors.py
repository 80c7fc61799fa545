"""Word vectors in text files: GloVe, and word2vec and fastText, whose first line says how many there are."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from trelliswork.errors import DataError
from trelliswork.reading import name_of, numbered_lines
from trelliswork.runtime.arrays import Array

_COUNT = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True)
class WordVectors:
    """One row of `matrix` for each word; all words differ."""

    words: tuple[str, ...]
    matrix: Array  # [words, dim] float32
    n_announced: int | None = None  # lines that the first line of the file promises, if it does

    @property
    def dim(self) -> int:
        return int(self.matrix.shape[1])


def read_vectors(path: str | Path) -> WordVectors:
    """Read a text file, plain or gzip: on each line a word and its numbers. Of words that come twice the first counts.

    Lines with another number of values, or with something else than numbers, are errors that name the line.
    """
    file, dim, n_announced = name_of(path), 0, None
    rows: dict[str, Array] = {}
    for number, line in numbered_lines(path):
        if number == 1 and _is_header(line):
            n_announced, dim = map(int, line.split())
            continue
        if not line.strip():
            continue
        dim = dim or _n_numbers_at_the_end(line)
        if dim == 0:
            problem = f"expected a word and its numbers, got {_shortened(line)!r}"
            raise DataError(
                file, f"{problem}; give vectors as text, as GloVe, word2vec or fastText write them", line=number
            )
        word, values = _word_and_values(line, dim)
        row = _numbers(values)
        if word == "" or row.shape != (dim,) or not np.isfinite(row).all():
            got = _what_is_wrong(values, dim)
            raise DataError(
                file, f"expected a word and {dim} numbers, got {got}; correct or drop the line", line=number
            )
        rows.setdefault(word, row)
    if not rows:
        raise DataError(file, "expected word vectors, a word and its numbers on each line; got none")
    return WordVectors(tuple(rows), np.stack(list(rows.values())), n_announced)


def _is_header(line: str) -> bool:
    """Return whether a first line holds the numbers of words and dimensions."""
    fields = line.split()
    return len(fields) == 2 and all(_COUNT.fullmatch(field) for field in fields)


def _n_numbers_at_the_end(line: str) -> int:
    """Count the numbers at the end of the fields; the first field is the word or its beginning."""
    fields = line.split()[1:]
    return next((n for n, field in enumerate(reversed(fields)) if not _is_number(field)), len(fields))


def _shortened(line: str) -> str:
    return line if len(line) <= 40 else f"{line[:37]}..."


def _word_and_values(line: str, dim: int) -> tuple[str, list[str]]:
    """Return the word, which may hold spaces, and what follows it."""
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
