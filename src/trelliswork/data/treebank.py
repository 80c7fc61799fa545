r"""Dependency trees of CoNLL-U: words with heads, labels and parts of speech, each tree checked.

The format is that of Universal Dependencies (Nivre et al. 2020, "Universal Dependencies v2"). Multi-word tokens (`3-4`)
and empty nodes (`3.1`) are not words; they stay in the file.

>>> block = ["1\tShe\t_\tPRON\t_\t_\t2\tnsubj\t_\t_", "2\tsings\t_\tVERB\t_\t_\t0\troot\t_\t_"]
>>> sentence = next(trees_in(enumerate(block, 1), "en.conllu", TREEBANK))
>>> sentence.heads, sentence.tags
((2, 0), ('nsubj', 'root'))
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from trelliswork.data.choices import CONLLU_NAMES, Choices, column_number
from trelliswork.data.columns import ColumnFormat, NumberedLine
from trelliswork.data.sentence import Sentence
from trelliswork.errors import DataError
from trelliswork.reading import name_of, numbered_lines

N_COLUMNS = len(CONLLU_NAMES)
HEAD, DEPREL = CONLLU_NAMES.index("HEAD"), CONLLU_NAMES.index("DEPREL")
GOLD = {name: CONLLU_NAMES.index(name) for name in ("LEMMA", "UPOS", "XPOS", "FEATS")}
ANSWERS = ("HEAD", "DEPREL", "DEPS")  # what a parser learns, and so cannot read
NOTHING = "_"
TREEBANK = ColumnFormat(
    "\t", N_COLUMNS, 2, DEPREL + 1, scheme="plain", comments=True, conllu=True, head_column=HEAD + 1
)
LEAVE_OUT = "correct it, or leave the sentence out"

MOST_DIGITS = 18  # of an id or a head
_PART = re.compile(r"([0-9]{1,18})([-.])([0-9]{1,18})")
_IDS = tuple(map(str, range(1, 301)))


def word_ids(n: int) -> tuple[str, ...]:
    """Return the ids of n words.

    >>> word_ids(3)
    ('1', '2', '3')
    """
    return _IDS[:n] if n <= len(_IDS) else tuple(map(str, range(1, n + 1)))


def read_treebank(path: str | Path, choices: Choices | None = None) -> tuple[ColumnFormat, list[Sentence]]:
    """Return the layout and the sentences of a CoNLL-U file; the first that is not a tree is an error with its place.

    `Sentence.tags` are the labels, which are all `_` in a treebank without labels, and `columns` has LEMMA, UPOS, XPOS
    and FEATS as far as the file has them. `choices.feature_columns` are further columns that a parser reads.
    """
    format = format_of_treebank(name_of(path), choices or Choices())
    sentences = list(trees_in(numbered_lines(path), name_of(path), format))
    if not sentences:
        raise DataError(name_of(path), "expected at least one sentence, got none; the file is empty")
    for name in GOLD:
        if all(set(sentence.columns[name]) == {NOTHING} for sentence in sentences):
            for sentence in sentences:
                del sentence.columns[name]  # type: ignore[attr-defined]
    return format, sentences


def survey_treebank(path: str | Path) -> Iterator[Sentence | DataError]:
    """Yield the sentences of a treebank, and what is wrong with those that are not a tree."""
    name = name_of(path)
    for block in _blocks(numbered_lines(path)):
        try:
            sentence = block.sentence(name, TREEBANK)
        except DataError as error:
            yield error
        else:
            if sentence is not None:
                yield sentence


def trees_in(lines: Iterable[NumberedLine], file: str, format: ColumnFormat) -> Iterator[Sentence]:
    """Yield the sentences in numbered lines.

    Args:
        lines: Lines with their numbers.
        file: The file, for messages.
        format: The columns to read.

    Yields:
        The sentences.
    """
    for block in _blocks(lines):
        sentence = block.sentence(file, format)
        if sentence is not None:
            yield sentence


def format_of_treebank(file: str, choices: Choices) -> ColumnFormat:
    """Return the layout of CoNLL-U with the columns that are chosen; choices that do not apply are an error."""
    given = choices.completed(conllu=True)
    for option, value, allowed in (
        ("--delimiter", choices.delimiter, (None, "\t")),
        ("--tag-column", given.tag_column, (None, DEPREL + 1, "DEPREL")),
        ("--scheme", given.scheme, (None, "plain")),
    ):
        if value not in allowed:
            raise DataError(file, f"{option} is for taggers, got {value!r}; a parser reads CoNLL-U, leave it out")
    if choices.fields.given():
        raise DataError(file, "--field is for JSON records, and a parser reads CoNLL-U; leave it out")
    word = column_number(given.word_column or TREEBANK.word_column, CONLLU_NAMES, "word", file)
    features = tuple(column_number(each, CONLLU_NAMES, "feature", file) for each in given.feature_columns or ())
    for column in (word, *features):
        if not 1 <= column <= N_COLUMNS:
            raise DataError(file, f"expected a column in 1..{N_COLUMNS}, got {column}; choose one of CoNLL-U")
        if CONLLU_NAMES[column - 1] in ANSWERS:
            raise DataError(file, f"column {CONLLU_NAMES[column - 1]} is what a parser learns to find; leave it out")
    return replace(TREEBANK, word_column=word, feature_columns=features)


@dataclass(slots=True)
class _Block:
    """The lines of a sentence, and its comments."""

    comments: list[str] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)

    def sentence(self, file: str, format: ColumnFormat) -> Sentence | None:
        """Return the sentence, or None if there are no words."""
        self._check_columns(file)
        columns = list(zip(*self.rows, strict=True))
        if columns and columns[0] != word_ids(len(self.rows)):
            self._leave_words(file)
            columns = list(zip(*self.rows, strict=True))
        if not columns:
            return None
        words = _interned(columns[format.word_column - 1])
        self._check_words(words, file)
        heads, first = self._heads(columns[HEAD], words, file), self.numbers[0]
        consecutive = self.numbers[-1] == first + len(words) - 1
        return Sentence(
            words,
            _interned(columns[DEPREL]),
            tuple(_interned(columns[i - 1]) for i in format.feature_columns),
            first,
            file,
            () if consecutive else tuple(self.numbers),
            heads=heads,
            columns={name: _interned(columns[i]) for name, i in GOLD.items()},
        )

    def problem(self, file: str, text: str, at: int) -> DataError:
        """Return an error at the line of the row `at`, which names the sentence."""
        ident = next((line.partition("=")[2].strip() for line in self.comments if _is_id(line)), "")
        return DataError(file, f"sentence {ident}: {text}" if ident else text, line=self.numbers[at])

    def _check_columns(self, file: str) -> None:
        for at, row in enumerate(self.rows):
            if len(row) != N_COLUMNS:
                problem = f"expected the {N_COLUMNS} columns of CoNLL-U, separated by tabs, got {len(row)}"
                raise self.problem(file, f"{problem}; correct the line, or end the sentence before it", at)

    def _check_words(self, words: Sequence[str], file: str) -> None:
        for at, word in enumerate(words):
            if not word.strip():
                raise self.problem(file, "expected a word, got an empty column; fill it in", at)

    def _leave_words(self, file: str) -> None:
        """Take out multi-word tokens and empty nodes; ids must count the words from 1."""
        n_words, kept, open_until = 0, [], 0
        for at, row in enumerate(self.rows):
            part = _PART.fullmatch(row[0])
            if part is None:
                n_words += 1
                if row[0] != str(n_words):
                    raise self.problem(file, _wrong_id(row[0], n_words), at)
                kept.append(at)
            elif part[2] == "-":
                first, last = int(part[1]), int(part[3])
                if first != n_words + 1 or last < first or first <= open_until:
                    problem = f"expected the words of a token to follow it, got {row[0]} before word {n_words + 1}"
                    raise self.problem(file, f"{problem}; number it as its first and last word", at)
                open_until = last
            elif int(part[1]) != n_words:
                problem = f"expected an empty node {n_words}.1 behind word {n_words}, got {row[0]}"
                raise self.problem(file, f"{problem}; number it by the word before", at)
        if open_until > n_words:
            problem = f"expected {open_until} words, as a token of several says, got {n_words}; add them"
            raise self.problem(file, problem, len(self.rows) - 1)
        self.numbers, self.rows = [self.numbers[at] for at in kept], [self.rows[at] for at in kept]

    def _heads(self, texts: Sequence[str], words: Sequence[str], file: str) -> tuple[int, ...]:
        """Return the heads of the words, which must be a tree."""
        if not all(map(_is_number, texts)):
            at = next(i for i, text in enumerate(texts) if not _is_number(text))
            raise self.problem(file, _no_head(texts[at], words[at]), at)
        heads = tuple(map(int, texts))
        if (fault := tree_problem(heads, words)) is not None:
            raise self.problem(file, f"{fault[1]}; {LEAVE_OUT}", fault[0])
        return heads


def _blocks(lines: Iterable[NumberedLine]) -> Iterator[_Block]:
    """Yield sentences: what is between blank lines."""
    block = _Block()
    for number, line in lines:
        if line.startswith("#") and not block.rows:
            block.comments.append(line)
        elif line and not line.isspace():
            block.numbers.append(number)
            block.rows.append(line.split("\t"))
        elif block.rows or block.comments:
            yield block
            block = _Block()
    if block.rows:
        yield block


def _interned(values: Iterable[str]) -> tuple[str, ...]:
    """Return the values interned, so that repeated ones share memory."""
    return tuple(map(sys.intern, values))


def _is_number(text: str) -> bool:
    return text.isdecimal() and text.isascii() and len(text) <= MOST_DIGITS


def _is_id(comment: str) -> bool:
    return comment[1:].partition("=")[0].strip() == "sent_id"


def _wrong_id(given: str, wanted: int) -> str:
    if given == "1" and wanted > 1:
        return "expected a blank line before the first word of a sentence, got none; add it"
    if not given.isdecimal():
        return f"expected an id such as 3, 3-4 or 3.1, got {given!r}; number the words of a sentence from 1"
    return f"expected word {wanted}, got the id {given}; number the words of a sentence from 1, without gaps"


def _no_head(given: str, word: str) -> str:
    if given == NOTHING:
        problem = f"expected the head of {word!r} in column {HEAD + 1}, got _: the sentence is not annotated"
        return f"{problem}; annotate it, or leave it out"
    return f"expected the number of a head in column {HEAD + 1}, got {given!r} for {word!r}; {LEAVE_OUT}"


# Heads of words as trees: what is wrong with them, and whether they are projective. Words count from 1.

Heads = Sequence[int]


def tree_problem(heads: Heads, words: Sequence[str]) -> tuple[int, str] | None:
    """Return the word to look at, from 0, and why heads are not a tree with one root; None if they are one.

    >>> tree_problem((2, 0), ("She", "sings")) is None
    True
    >>> tree_problem((2, 1, 0), ("a", "b", "c"))
    (0, "expected a tree, got a cycle: 1 'a' -> 2 'b' -> 1 'a'")
    """
    n = len(heads)
    if max(heads, default=0) > n:
        at = next(i for i, head in enumerate(heads) if head > n)
        return at, f"expected heads in 0..{n}, as there are {n} words, got {heads[at]} for {words[at]!r}"
    roots = [i for i, head in enumerate(heads) if head == 0]
    if len(roots) > 1:
        shown = ", ".join(f"{i + 1} {words[i]!r}" for i in roots)
        return roots[1], f"expected one word with head 0, got {len(roots)}: {shown}"
    circle = _circle(heads)
    if circle:
        shown = " -> ".join(f"{m} {words[m - 1]!r}" for m in (*circle, circle[0]))
        return circle[0] - 1, f"expected a tree, got a cycle: {shown}"
    return None


def _circle(heads: Heads) -> list[int]:
    """Return the first words that lead to one another and never to the root, each before its head; empty if there are
    none.
    """
    seen = [0] * (len(heads) + 1)  # by which walk
    seen[0] = -1
    for start in range(1, len(heads) + 1):
        m = start
        while not seen[m]:
            seen[m] = start
            m = heads[m - 1]
        if seen[m] == start:
            circle = [m]
            while heads[circle[-1] - 1] != m:
                circle.append(heads[circle[-1] - 1])
            low = circle.index(min(circle))
            return circle[low:] + circle[:low]
    return []


def is_projective(heads: Heads) -> bool:
    """Return whether no two arcs of a tree cross, that of the root included.

    If two arcs cross, one of all crossing arcs has a dependent between the ends of another and its head outside.

    >>> is_projective((2, 0, 2)), is_projective((3, 0, 2))
    (True, False)
    """
    for m, head in enumerate(heads, 1):
        low, high = (head, m) if head < m else (m, head)
        if high - low > 1:
            inside = heads[low : high - 1]
            if min(inside) < low or max(inside) > high:
                return False
    return True
