"""The ARPA format of n-gram models: base-10 logarithms of probabilities and back-off weights, grouped by order.

    \\data\\
    ngram 1=3
    \\1-grams:
    -0.30103  word  -0.1
    \\end\\

Files of KenLM, SRILM and MITLM can be read, compressed with gzip or not; a missing back-off is 0.
"""

from __future__ import annotations

import math
import re
from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import count, pairwise
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from trelliswork.distributions.ngram_model import NGramModel
from trelliswork.errors import DataError, OutputError
from trelliswork.reading import name_of, numbered_lines
from trelliswork.runtime.arrays import Array
from trelliswork.structures.automata.ngram_arrays import NgramArrays
from trelliswork.structures.automata.ngram_tries import Grams, trie_of
from trelliswork.structures.automata.symbols import EPSILON_NAMES, Symbols
from trelliswork.writing import atomic_write

LN10 = math.log(10.0)
START, STOP, UNKNOWN = "<s>", "</s>", "<unk>"
NEVER = -99.0  # by convention, the log10 probability of <s>, which is never predicted


def write_arpa(model: NGramModel, path: str | Path) -> None:
    """Write a model in ARPA format, with nine digits of each number."""
    write_arrays(model.arrays, [_name(model, name) for name in list(model.symbols)[1:]], path)


def _name(model: NGramModel, name: str) -> str:
    if name in (START, STOP) or (name == UNKNOWN and model.unknown not in (None, UNKNOWN)):
        raise OutputError(f"{name} is reserved in ARPA files; got a word of that name; rename the word")
    if not name.split() == [name]:
        raise OutputError(f"words in ARPA files must not contain spaces; got {name!r}; rename the word")
    return UNKNOWN if name == model.unknown else name


def write_arrays(arrays: NgramArrays, names: Sequence[str], path: str | Path) -> None:
    """Write a model whose words have these names.

    Args:
        arrays: The n-grams of a model.
        names: Text of each word, by its number.
        path: The file, which is replaced if it is there.
    """
    starts = arrays.starts.tolist()
    with atomic_write(path) as file:
        sizes = [high - low for low, high in pairwise(starts[1:])]
        file.write("\\data\\\n" + "".join(f"ngram {n}={size}\n" for n, size in enumerate(sizes, 1)))
        for n, lines in enumerate(_sections(arrays, [*names, STOP, START], starts), 1):
            file.write(f"\n\\{n}-grams:\n")
            file.writelines(lines)
        file.write("\n\\end\\\n")


def _sections(arrays: NgramArrays, names: list[str], starts: list[int]) -> Iterator[list[str]]:
    """Yield the lines of each order."""
    parents, inner = arrays.parent, len(arrays.log_backoff)
    follows = (np.diff(arrays.first) > 0) | (arrays.log_backoff != 0)
    before: list[str] = []
    for low, high in pairwise(starts[1:]):
        words = [names[word] for word in arrays.word[low:high].tolist()]
        owners = (parents[low:high] - (low - len(before))).tolist()
        grams = [f"{before[i]} {word}" for i, word in zip(owners, words, strict=True)] if before else words
        log_probs = np.clip(arrays.log_prob[low:high] / LN10, NEVER, 0.0).tolist()
        backoffs = np.maximum(arrays.log_backoff[low : min(high, inner)] / LN10, NEVER).tolist()
        columns = [f"\t{b:.9g}" if has else "" for b, has in zip(backoffs, follows[low:high].tolist(), strict=True)]
        columns += [""] * (len(grams) - len(columns))  # the highest order has no back-offs
        yield [f"{p:.9g}\t{gram}{b}\n" for p, gram, b in zip(log_probs, grams, columns, strict=True)]
        before = grams


def read_arpa(path: str | Path) -> NGramModel:
    """Read a model from a file; `<unk>`, if present, stands for all words that are not listed."""
    reader = _Reader(path)
    for line, text in numbered_lines(path):
        if text.strip() and not reader.done:
            reader.take(text.strip(), line)
    return reader.model()


class _Section:
    """The n-grams of one order: their words one after the other, numbers, and lines in the file."""

    def __init__(self) -> None:
        self.words, self.log_probs, self.backoffs, self.lines = array("i"), array("d"), array("d"), array("q")


class _Reader:
    """Line-by-line reader of one file; words are numbered in the order of their first occurrence."""

    def __init__(self, path: str | Path):
        self.path, self.done = path, False
        self.announced: dict[int, int] = {}
        self.order, self.section = 0, _Section()  # being read; 0 before the first
        self.sections: dict[int, _Section] = {}
        self.numbers: defaultdict[str, int] = defaultdict(count().__next__)

    def take(self, text: str, line: int) -> None:
        if text == "\\end\\":
            self.done = True
        elif header := re.fullmatch(r"\\([0-9]{1,9})-grams:", text):
            self.order = int(header[1])
            if self.order not in self.announced:
                self._fail(f"a section of order {self.order}, which \\data\\ does not announce", line)
            if self.order in self.sections:
                self._fail(f"a second section of order {self.order}; merge it with the first", line)
            self.section = self.sections[self.order] = _Section()
        elif self.order:
            self._take_gram(text.replace("\t", " ").split(" "), line)
        elif size := re.fullmatch(r"ngram ([0-9]{1,9})\s*=\s*([0-9]{1,18})", text):
            self.announced[int(size[1])] = int(size[2])
        elif text != "\\data\\":
            self._fail(f"expected \\data\\, `ngram N=count` or \\1-grams:; got {text[:60]!r}", line)

    def _take_gram(self, fields: list[str], line: int) -> None:
        n, section = self.order, self.section
        if len(fields) not in (n + 1, n + 2) or "" in fields:
            fields = [field for field in fields if field]
        if len(fields) not in (n + 1, n + 2):
            self._fail(f"expected a logarithm, {n} words and optionally a back-off; got {len(fields)} fields", line)
        try:
            log_prob, backoff = float(fields[0]) * LN10, float(fields[n + 1]) * LN10 if len(fields) == n + 2 else 0.0
        except ValueError:
            self._fail(f"expected numbers around the words; got {fields[0]!r} and {fields[-1]!r}", line)
        # Other tools round: a probability of 1 may be written slightly above 0.
        if not log_prob <= 1e-6 or not backoff < math.inf:
            self._fail(f"log probabilities must be at most 0 and back-offs finite; got {fields}", line)
        section.words.extend(map(self.numbers.__getitem__, fields[1 : n + 1]))
        section.log_probs.append(min(log_prob, 0.0))
        section.backoffs.append(backoff)
        section.lines.append(line)

    def _fail(self, problem: str, line: int | None = None) -> NoReturn:
        raise DataError(name_of(self.path), problem, line=line)

    def model(self) -> NGramModel:
        self._check()
        names = list(self.numbers)
        ones = np.array(self.sections[1].words)
        words = [number for number in ones.tolist() if names[number] not in (START, STOP, *EPSILON_NAMES)]
        symbols = Symbols(names[number] for number in words)
        final = np.full(len(names) + 1, -1, np.int32)  # the numbers of the arrays
        final[words] = np.arange(len(words))
        final[self.numbers[STOP]], final[self.numbers[START]] = len(words), len(words) + 1
        grams = [self._grams(n, final[: len(names)], names) for n in sorted(self.sections)]
        if START not in names or self.numbers[START] not in ones:
            added: Any = [len(words) + 1]
            grams[0] = Grams(*(np.concatenate([old, new]) for old, new in zip(grams[0], ([added], [-np.inf], [0.0]),
                                                                              strict=True)))  # fmt: skip
        grams[0].log_prob[grams[0].words[:, 0] == len(words) + 1] = -np.inf
        return NGramModel(trie_of(grams, len(words)), symbols, UNKNOWN if UNKNOWN in symbols else None)

    def _grams(self, n: int, final: Array, names: list[str]) -> Grams:
        section = self.sections[n]
        given = np.array(section.words, np.int32).reshape(-1, n)
        words = final[given]
        if (words < 0).any():
            row, column = np.argwhere(words < 0)[0]
            self._fail(f"{names[given[row, column]]!r} is not among the 1-grams; add it there", section.lines[row])
        order = np.lexsort(given.T)
        twice = np.flatnonzero((given[order][1:] == given[order][:-1]).all(1))
        if len(twice):
            row = int(order[twice + 1].min())
            gram = " ".join(names[number] for number in given[row])
            self._fail(f"the n-gram {gram!r} is listed twice; remove one", section.lines[row])
        return Grams(words, np.array(section.log_probs), np.array(section.backoffs))

    def _check(self) -> None:
        if not self.done:
            self._fail("expected \\end\\ before the end of the file; the file may be truncated, copy it again")
        if not self.announced or sorted(self.announced) != list(range(1, len(self.announced) + 1)):
            self._fail(f"\\data\\ must announce the orders 1, 2, ... without gaps; got {sorted(self.announced)}")
        for order, n in self.announced.items():
            got = len(self.sections[order].lines) if order in self.sections else 0
            if got != n:
                self._fail(f"\\data\\ announces {n} n-grams of order {order}; got {got}")
        if STOP not in self.numbers or self.numbers[STOP] not in self.sections[1].words:
            self._fail(f"the 1-grams must contain {STOP}, the end of a sentence")
