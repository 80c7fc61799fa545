"""The ARPA format of n-gram models: base-10 logarithms of probabilities and back-off weights, by order.

    \\data\\
    ngram 1=3
    \\1-grams:
    -0.30103  word  -0.1
    \\end\\
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import NoReturn

from trelliswork.data.files import name_of, numbered_lines
from trelliswork.distributions.ngram_model import NGramModel
from trelliswork.errors import DataError, OutputError
from trelliswork.structures.automata.ngrams import BEGIN, END, History, Tables
from trelliswork.structures.automata.symbols import Symbols
from trelliswork.writing import atomic_write

LN10 = math.log(10.0)
START, STOP, UNKNOWN = "<s>", "</s>", "<unk>"
NEVER = -99.0  # how the format writes the probability of <s>, which is never predicted


def write_arpa(model: NGramModel, path: str | Path) -> None:
    """The model as other tools read it; exact to nine digits."""
    grams = [_grams(model, length) for length in range(1, model.order + 1)]
    with atomic_write(path) as file:
        file.write("\\data\\\n" + "".join(f"ngram {n}={len(each)}\n" for n, each in enumerate(grams, 1)))
        for n, each in enumerate(grams, 1):
            file.write(f"\n\\{n}-grams:\n")
            file.writelines(f"{line}\n" for line in each)
        file.write("\n\\end\\\n")


def _grams(model: NGramModel, length: int) -> list[str]:
    """The lines of one order."""
    tables, lines = model.tables, list[str]()
    if length == 1:
        lines.append(_line(NEVER * LN10, [START], tables.log_backoff.get((BEGIN,))))
    for history in (each for each in model.histories if len(each) == length - 1):
        for word, log_prob in sorted(tables.log_probs[history].items()):
            names = [_name(model, number) for number in (*history, word)]
            lines.append(_line(log_prob, names, tables.log_backoff.get((*history, word)) if word != END else None))
    return lines


def _name(model: NGramModel, number: int) -> str:
    if number in (BEGIN, END):
        return START if number == BEGIN else STOP
    name = model.symbols.name(number)
    if name in (START, STOP) or (name == UNKNOWN and model.unknown not in (None, UNKNOWN)):
        raise OutputError(f"ARPA files give {name} a meaning of its own; got a word of that name; rename the word")
    if not name.split() == [name]:
        raise OutputError(f"ARPA files separate words by blanks; {name!r} contains one; rename the word")
    return UNKNOWN if name == model.unknown else name


def _line(log_prob: float, names: list[str], log_backoff: float | None) -> str:
    backoff = [] if log_backoff is None else [f"{log_backoff / LN10:.9g}"]
    return "\t".join([f"{log_prob / LN10:.9g}", " ".join(names), *backoff])


def read_arpa(path: str | Path) -> NGramModel:
    """A model from a file; `<unk>`, if it is there, stands for all words that are not."""
    reader = _Reader(path)
    for line, text in numbered_lines(path):
        if text.strip() and not reader.done:
            reader.take(text.strip(), line)
    return reader.model()


class _Reader:
    """The sections of one file, line by line."""

    def __init__(self, path: str | Path):
        self.path, self.done = path, False
        self.announced: dict[int, int] = {}
        self.section = 0  # the order being read; 0 before the first
        self.grams: dict[int, list[tuple[tuple[str, ...], float, float, int]]] = {}

    def take(self, text: str, line: int) -> None:
        if text == "\\end\\":
            self.done = True
        elif header := re.fullmatch(r"\\([0-9]{1,9})-grams:", text):
            self.section = int(header[1])
            if self.section not in self.announced:
                self._fail(f"a section of order {self.section}, which \\data\\ does not announce", line)
            if self.section in self.grams:
                self._fail(f"a second section of order {self.section}; join it with the first", line)
            self.grams[self.section] = []
        elif count := re.fullmatch(r"ngram ([0-9]{1,9})\s*=\s*([0-9]{1,18})", text):
            self.announced[int(count[1])] = int(count[2])
        elif self.section:
            self.grams[self.section].append(self._gram(text.split(), line))
        elif text != "\\data\\":
            self._fail(f"expected \\data\\, `ngram N=count` or \\1-grams:, got {text[:60]!r}", line)

    def _gram(self, fields: list[str], line: int) -> tuple[tuple[str, ...], float, float, int]:
        n = self.section
        if len(fields) not in (n + 1, n + 2):
            self._fail(f"expected a logarithm, {n} words and maybe a back-off; got {len(fields)} fields", line)
        try:
            log_prob, backoff = float(fields[0]) * LN10, float(fields[n + 1]) * LN10 if len(fields) == n + 2 else 0.0
        except ValueError:
            self._fail(f"expected numbers around the words; got {fields[0]!r} and {fields[-1]!r}", line)
        if not log_prob <= 1e-6 or not backoff < math.inf:
            self._fail(f"a log probability must not be above 0, nor a back-off NaN or infinite; got {fields}", line)
        return tuple(fields[1 : n + 1]), log_prob, backoff, line

    def _fail(self, problem: str, line: int | None = None) -> NoReturn:
        raise DataError(name_of(self.path), problem, line=line)

    def model(self) -> NGramModel:
        self._check()
        names = [words[0] for words, *_ in self.grams[1]]
        symbols = Symbols(name for name in names if name not in (START, STOP))
        numbers = {START: BEGIN, STOP: END, **{name: symbols.number(name) for name in list(symbols)[1:]}}
        tables = Tables({(): {}}, {})
        for gram in (gram for order in sorted(self.grams) for gram in self.grams[order]):
            self._enter(gram, numbers, tables)
        return NGramModel(tables, symbols, max(self.grams), UNKNOWN if UNKNOWN in symbols else None)

    def _check(self) -> None:
        if not self.done:
            self._fail("the file ends before \\end\\; copy it again")
        if sorted(self.announced) != list(range(1, len(self.announced) + 1)):
            self._fail(f"\\data\\ must announce the orders 1, 2, ... without gaps; got {sorted(self.announced)}")
        for order, n in self.announced.items():
            if len(self.grams.get(order, ())) != n:
                self._fail(f"\\data\\ announces {n} n-grams of order {order}; got {len(self.grams.get(order, ()))}")
        if STOP not in {words[0] for words, *_ in self.grams.get(1, ())}:
            self._fail(f"the 1-grams must contain {STOP}, the end of a sentence")

    def _enter(self, gram: tuple[tuple[str, ...], float, float, int], numbers: dict[str, int], tables: Tables) -> None:
        words, log_prob, backoff, line = gram
        if strange := [word for word in words if word not in numbers]:
            self._fail(f"{strange[0]!r} is not among the 1-grams", line)
        *before, last = (numbers[word] for word in words)
        history: History = tuple(before)
        if last in tables.log_probs.get(history, {}):
            self._fail(f"the n-gram {' '.join(words)!r} is there already; remove one", line)
        if last != BEGIN:
            tables.log_probs.setdefault(history, {})[last] = min(log_prob, 0.0)
        if backoff:
            tables.log_backoff[*history, last] = backoff
            tables.log_probs.setdefault((*history, last), {})
