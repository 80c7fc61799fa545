"""Text files as sentences, sentences as units, and all of a corpus as one array of numbers, read as a stream."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import NamedTuple, Self

import numpy as np

from trelliswork.data.json_values import JsonObject
from trelliswork.data.readers import read_pretokenised
from trelliswork.data.sentence import Sentence
from trelliswork.data.subwords import BytePairs, join_pieces
from trelliswork.errors import DataError, TrellisworkError
from trelliswork.models.language.config import TextConfig
from trelliswork.reading import name_of, numbered_lines
from trelliswork.runtime.arrays import Array
from trelliswork.runtime.scratch import Scratch
from trelliswork.text import RuleTokeniser, read_text
from trelliswork.text.rules import Tokeniser

UNKNOWN, START, STOP = "<unk>", "<s>", "</s>"
SPACE = "▁"  # a space between words as a character of its own
AT_A_TIME = 1 << 20  # units in memory before they go to disk


@dataclass(frozen=True)
class TextReading:
    """Way of reading text: its tokeniser, and its units."""

    units: str = "words"
    pretokenised: bool = False
    pairs: BytePairs | None = None  # of subwords
    tokeniser: Tokeniser | None = None

    def sentences(self, path: str) -> Iterator[Sentence]:
        """Yield the sentences of a file."""
        return read_pretokenised(path) if self.pretokenised else read_text(path, self.tokeniser or RuleTokeniser())

    def lines(self, path: str) -> Iterator[Sequence[str]]:
        """Yield the units of each sentence of a file, an empty list between documents."""
        if self.pretokenised and self.units == "words":
            for _, line in numbered_lines(path):
                yield line.split()
            return
        before = 0  # the line on which the sentence before ended
        for sentence in self.sentences(path):
            if before and sentence.line > before + 1:
                yield []
            before = sentence.line + sentence.text.count("\n")
            yield self.cut(sentence)

    def cut(self, sentence: Sentence) -> Sequence[str]:
        """Return the units of a sentence."""
        if self.units == "characters":
            return ((sentence.text and " ".join(sentence.text.split())) or " ".join(sentence.words)).replace(" ", SPACE)
        return sentence.words if self.pairs is None else self.pairs.cut_all(sentence.words)

    def words(self, line: str) -> list[str]:
        """Return the words of a line, which need not be a whole sentence."""
        if self.pretokenised:
            return line.split()
        tokens = (self.tokeniser or RuleTokeniser()).tokenise(line)
        return [word for sentence in tokens for token in sentence for word in token.words]

    def stored(self) -> dict[str, object]:
        """Return plain values for a model folder; its tokeniser is kept in a folder of its own."""
        pairs = None if self.pairs is None else [" ".join(pair) for pair in self.pairs.merges]
        return {"units": self.units, "pretokenised": self.pretokenised, "pairs": pairs}

    @classmethod
    def from_stored(cls, values: JsonObject) -> Self:
        """Return the way of reading that `stored` describes."""
        pairs = values["pairs"]
        merges = None if pairs is None else BytePairs([(a, b) for a, b in (each.split(" ") for each in pairs)])
        return cls(TextConfig(units=values["units"]).units, bool(values["pretokenised"]), merges)

    def join(self, units: Sequence[str]) -> str:
        """Return the text of some units."""
        if self.units == "characters":
            return "".join(units).replace(SPACE, " ")
        return " ".join(units if self.pairs is None else join_pieces(units))


class Corpus(NamedTuple):
    """Units by frequency, <unk> among them, their counts, and all sentences between BEGIN and END as numbers.

    The units are 0..n - 1, then END, then BEGIN, as n-gram arrays have them.
    """

    names: list[str]
    counts: Array
    tokens: Array
    n_sentences: int

    @property
    def n_tokens(self) -> int:
        """Number of units, ends of sentences not counted."""
        return len(self.tokens) - 2 * self.n_sentences


def learned_reading(paths: Sequence[str], reading: TextReading, merges: int) -> TextReading:
    """Return a way of reading whose subwords are learned from the text.

    Args:
        paths: Files of text.
        reading: Way of reading.
        merges: Number of merges of byte pairs.
    """
    if reading.units != "subwords":
        return reading
    if "-" in paths:
        raise TrellisworkError("subwords are learned by reading the text twice, and standard input can be read once; "
                               "give a file")  # fmt: skip
    whole, words = replace(reading, units="words"), Counter[str]()
    for path in paths:
        for line in whole.lines(path):
            words.update(line)
    return replace(reading, pairs=BytePairs.learn(words, merges))


def read_corpus(
    paths: Sequence[str], reading: TextReading, least_count: int = 1, scratch: Scratch | None = None
) -> Corpus:
    """Read all files; units seen fewer than `least_count` times are <unk>.

    Args:
        paths: Files of text.
        reading: Way of reading.
        least_count: Count below which a unit is <unk>.
        scratch: Place for large arrays.
    """
    return _corpus(_lines(paths, reading), name_of(paths[0]), least_count, scratch or Scratch())


def corpus_of(sentences: Iterable[Sequence[str]], least_count: int = 1) -> Corpus:
    """Return sentences of units as a corpus."""
    return _corpus(sentences, "the text", least_count, Scratch())


def _corpus(lines: Iterable[Sequence[str]], file: str, least_count: int, scratch: Scratch) -> Corpus:
    numbers: defaultdict[str, int] = defaultdict(count(2).__next__)  # 0 and 1 are BEGIN and END
    growing, n_sentences = scratch.growing(np.int32), 0
    for part, n in _numbered(lines, numbers):
        growing.add(part)
        n_sentences += n
    tokens = growing.whole()
    if not n_sentences:
        raise DataError(file, "expected text to learn from, got none; the file is empty")
    if marks := [mark for mark in (START, STOP) if mark in numbers]:
        problem = f"expected text without {marks[0]}, which marks the ends of sentences itself; remove it from the text"
        raise DataError(file, problem)
    seen = np.bincount(tokens, minlength=len(numbers) + 2)[2:]
    names = list(numbers)
    known = [i for i in np.argsort(-seen, kind="stable").tolist() if seen[i] >= least_count and names[i] != UNKNOWN]
    unknown_at = len(known)
    final = np.full(len(names) + 2, unknown_at, np.int32)
    final[np.array(known, np.int64) + 2] = np.arange(len(known))
    final[:2] = unknown_at + 2, unknown_at + 1
    counts = np.append(seen[known], seen.sum() - seen[known].sum())
    return Corpus([*(names[i] for i in known), UNKNOWN], counts, scratch.taken(final, tokens), n_sentences)


def _numbered(lines: Iterable[Sequence[str]], numbers: dict[str, int]) -> Iterator[tuple[Array, int]]:
    """Yield the sentences between BEGIN and END as arrays of many, and how many each has."""
    part, n_sentences = array("i"), 0
    for line in lines:
        if line:
            part.append(0)
            part.extend(map(numbers.__getitem__, line))
            part.append(1)
            n_sentences += 1
        if len(part) > AT_A_TIME:
            yield np.frombuffer(part, np.int32), n_sentences
            part, n_sentences = array("i"), 0
    yield np.array(part, np.int32), n_sentences


def _lines(paths: Iterable[str], reading: TextReading) -> Iterator[Sequence[str]]:
    for path in paths:
        yield from reading.lines(path)
        yield ()
