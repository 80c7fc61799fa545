"""CRF++ templates, expanded over whole files at once.

U01:%x[-1,0]/%x[0,0]     the word before and this word (columns are numbered from 0)
U02:%x[0,0.suffix3]      what can be seen of a column: lower, shape, short, prefixN, suffixN
B                        scores of neighbouring tags
B01:%x[0,1]              scores of neighbouring tags that depend on an attribute
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import repeat
from pathlib import Path

import numpy as np

from trelliswork.data.attributes import key_kernels
from trelliswork.data.attributes.dicts import FeatureFunction, merge_attributes
from trelliswork.data.attributes.key_index import encoded
from trelliswork.data.attributes.rows import offsets_of
from trelliswork.data.choices import WORDS_ALONE
from trelliswork.data.sentence import Sentence
from trelliswork.errors import DataError
from trelliswork.reading import name_of, numbered_lines
from trelliswork.runtime.arrays import Array

Views = dict[tuple[int, str], tuple[Array, Array, Array]]  # (column, spelling) -> codes, texts, offsets
FURTHEST = 1000  # tokens from the current one, and columns
_REFERENCE = re.compile(r"%x\[\s*(-?\d+)\s*,\s*(\d+)(?:\.(\w+))?\s*\]")


@dataclass(frozen=True)
class Reference:
    """The value of a column `shift` tokens further on, as it is or seen through `spelling`."""

    shift: int
    column: int
    spelling: str = ""


@dataclass(frozen=True)
class Template:
    """A name with holes: text and references in turn; `pairs` if it scores neighbouring tags."""

    parts: tuple[str | Reference, ...]
    pairs: bool = False
    line: int | None = field(default=None, compare=False, repr=False)  # of its file

    @classmethod
    def parse(cls, text: str, *, file: str = "template", line: int | None = None) -> Template:
        """Parse one template.

        >>> Template.parse("U1:%x[-1,0]").parts
        ('U1:', Reference(shift=-1, column=0, spelling=''))

        Args:
            text: Its line, such as U1:%x[-1,0].
            file: Name of the file, for the sentence of an error.
            line: Number of the line; None if it is not from a file.
        """
        if text[:1] not in ("U", "B"):
            raise DataError(file, f"expected a template that begins with U or B, got {text!r}", line=line)
        parts: list[str | Reference] = []
        end = 0
        for match in _REFERENCE.finditer(text):
            shift, column = _number(match[1], file, line), _number(match[2], file, line)
            spelling = match[3] or ""
            if spelling and spelling_of(spelling) is None:
                known = "lower, shape, short, prefixN or suffixN"
                raise DataError(file, f"expected {known} after the column, got {spelling!r}", line=line)
            parts += [text[end : match.start()], Reference(shift, column, spelling)]
            end = match.end()
        if "%" in (rest := text[end:]):
            at = end + rest.index("%") + 1
            raise DataError(file, f"expected %x[row,column], got {rest[rest.index('%') :]!r}", line=line, column=at)
        return cls(tuple(part for part in (*parts, rest) if part != ""), text[0] == "B", line)

    @property
    def references(self) -> list[Reference]:
        return [part for part in self.parts if isinstance(part, Reference)]

    def filled(self, values: Sequence[str]) -> str:
        """Return the name that it makes of the values of its references.

        >>> Template.parse("U1:%x[-1,0]/%x[0,0]").filled(["the", "cat"])
        'U1:the/cat'
        """
        left = iter(values)
        return "".join(part if isinstance(part, str) else next(left) for part in self.parts)

    @property
    def text(self) -> str:
        return "".join(part if isinstance(part, str) else _written(part) for part in self.parts)


def _number(text: str, file: str, line: int | None) -> int:
    """Return a row or column of a reference; far rows would make a name for each place outside of the sentence."""
    if len(text) > len(f"-{FURTHEST}") or abs(int(text)) > FURTHEST:
        got = text if len(text) <= 20 else f"{text[:17]}..."
        raise DataError(
            file, f"expected rows and columns of at most {FURTHEST} in %x[row,column], got {got}", line=line
        )
    return int(text)


def _written(part: Reference) -> str:
    return f"%x[{part.shift},{part.column}{'.' + part.spelling if part.spelling else ''}]"


@dataclass(frozen=True)
class Column:
    """One value a token: codes[t] into the different values."""

    codes: Array  # [tokens] int32
    values: list[str]

    @classmethod
    def of(cls, values: Iterable[str]) -> Column:
        listed = list(values)
        known = {value: code for code, value in enumerate(dict.fromkeys(listed))}
        return cls(np.fromiter(map(known.__getitem__, listed), np.int32, len(listed)), list(known))

    def seen_through(self, spelling: str) -> Column:
        function = spelling_of(spelling)
        assert function is not None, "checked when the template was parsed"
        seen = Column.of(map(function, self.values))
        return Column(seen.codes[self.codes] if len(self.codes) else self.codes, seen.values)


@dataclass(frozen=True)
class Templates:
    """Templates of one file. Outside the sentence a value is _B-1, _B+1, ..., or with `skip_outside` there is none."""

    templates: tuple[Template, ...]
    skip_outside: bool = False
    file: str = field(default="template", compare=False)

    @classmethod
    def parse(cls, lines: Iterable[str], *, file: str = "template", skip_outside: bool = False) -> Templates:
        """Parse lines of text; empty ones and those that begin with # are skipped.

        Args:
            lines: Lines of the file.
            file: Its name, for the sentence of an error.
            skip_outside: Whether a template has no value where it reads beyond the sentence.
        """
        numbered = [(number, line.strip()) for number, line in enumerate(lines, 1)]
        wanted = [(number, line) for number, line in numbered if line and not line.startswith("#")]
        if not wanted:
            raise DataError(file, "expected at least one template such as U00:%x[0,0], got none")
        return cls(tuple(Template.parse(line, file=file, line=number) for number, line in wanted), skip_outside, file)

    @classmethod
    def read(cls, path: str | Path) -> Templates:
        return cls.parse([line for _, line in numbered_lines(path)], file=name_of(path))

    def check(self, n_columns: int, data: str | None = None) -> None:
        """Refuse templates that speak of columns which the data does not have.

        The place named is that of the template, or `data` if the templates are those of a model that was trained.
        """
        for template in self.templates:
            for reference in template.references:
                if reference.column >= n_columns:
                    has = f"columns 0..{n_columns - 1}" if n_columns > 1 else "column 0 only"
                    problem = f"{template.text} asks for column {reference.column}; the data has {has}"
                    if data is not None:
                        fix = f"give the column (--feature-columns), {WORDS_ALONE}"
                        raise DataError(data, f"the model's template {problem}; {fix}")
                    fix = f"{problem} (0 is the word, then --feature-columns); correct the template or give the column"
                    raise DataError(self.file, fix, line=template.line)

    def views(self, columns: Sequence[Column]) -> Views:
        """Return the columns that the templates read, as they are or through a spelling, with their texts in UTF-8."""
        views: Views = {}
        for template in self.templates:
            for part in template.references:
                if (at := (part.column, part.spelling)) not in views:
                    column = _view(columns, *at)
                    views[at] = column.codes, *encoded(column.values)
        return views

    def keys(self, lengths: Array, columns: Sequence[Column]) -> tuple[Array, Array]:
        """Return keys [tokens, templates] of all attributes, and which of them are present."""
        keys, present = self.keys_of(lengths, 0, range(len(self.templates)), self.views(columns))
        return keys.T, present.T

    def keys_of(self, lengths: Array, first: int, wanted: Sequence[int], views: Views) -> tuple[Array, Array]:
        """Return keys [templates, tokens] of the wanted templates for sentences of these lengths, which begin at token
        `first`; and which of them are present.

        Args:
            lengths: Tokens of each sentence [sentences].
            first: The token that the first of these sentences begins at.
            wanted: The numbers of the templates.
            views: What `views` gave for the columns of all tokens.

        Returns:
            Keys and presence [templates, tokens].
        """
        last = first + int(lengths.sum())
        keys = np.full((len(wanted), last - first), key_kernels.SEED)
        present = np.ones(keys.shape, np.bool_)
        for row, template in enumerate(wanted):
            for part in self.templates[template].parts:
                if isinstance(part, str):
                    key_kernels.extend_by_text(keys[row], encoded([part])[0])
                    continue
                codes, *texts = views[part.column, part.spelling]
                outside = encoded([] if self.skip_outside else _outside(abs(part.shift)))
                key_kernels.extend_by_column(
                    keys[row], present[row], lengths, codes[first:last], *texts, part.shift, *outside
                )
        return keys, present

    def names(self, places: Array, lengths: Array, columns: Sequence[Column]) -> list[str]:
        """Return the names behind some keys, for people; places [names, 2] are (token, template).

        Args:
            places: (token, template) of each name [names, 2].
            lengths: Tokens of each sentence [sentences].
            columns: The columns of all tokens.

        Returns:
            The names.
        """
        starts = offsets_of(lengths)
        ends = np.searchsorted(starts, places[:, 0], side="right")
        names = [""] * len(places)
        view = cache(partial(_view, columns))
        for row in np.unique(places[:, 1]).tolist():
            chosen = np.flatnonzero(places[:, 1] == row)
            tokens, bounds = places[chosen, 0], (starts[ends[chosen] - 1], starts[ends[chosen]])
            parts = [
                repeat(part, len(chosen)) if isinstance(part, str) else _values(part, tokens, *bounds, view)
                for part in self.templates[row].parts
            ]
            for i, name in zip(chosen.tolist(), map("".join, zip(*parts, strict=True)), strict=True):
                names[i] = name
        return names


def _view(columns: Sequence[Column], column: int, spelling: str) -> Column:
    """Return a column as it is, or through a spelling."""
    return columns[column].seen_through(spelling) if spelling else columns[column]


def _values(
    part: Reference, tokens: Array, first: Array, last: Array, view: Callable[[int, str], Column]
) -> Iterator[str]:
    """Yield the values that a reference reads at tokens of the sentences first..last."""
    column, at = view(part.column, part.spelling), tokens + part.shift
    before, after = first - at, at - last + 1
    codes = column.codes[np.clip(at, first, last - 1)]
    for code, b, a in zip(codes.tolist(), before.tolist(), after.tolist(), strict=True):
        yield f"_B-{b}" if b > 0 else f"_B+{a}" if a > 0 else column.values[code]


def _outside(n: int) -> list[str]:
    """Return _B-1, _B+1, _B-2, _B+2, ... as `extend_by_column` counts them."""
    return [f"_B{sign}{k}" for k in range(1, n + 1) for sign in "-+"]


# What can be seen of a word: columns made from a column, once for each different word.

_RUNS = re.compile(r"(.)\1+", re.DOTALL)


class _Signs(dict[int, str]):
    """Character -> the sign of its kind, found out when first asked for."""

    def __missing__(self, code: int) -> str:
        ch = chr(code)
        self[code] = sign = "X" if ch.isupper() else "x" if ch.isalpha() else "d" if ch.isdigit() else ch
        return sign


_SIGNS = _Signs()


def shape(word: str) -> str:
    """Return a word with letters as X and x, digits as d, the rest as it is.

    >>> shape("McDonald's-2024")
    "XxXxxxxx'x-dddd"
    """
    return word.translate(_SIGNS)


def short_shape(word: str) -> str:
    """Return the shape with runs of the same sign written once.

    >>> short_shape("McDonald's-2024")
    "XxXx'x-d"
    """
    return _RUNS.sub(r"\1", shape(word))


def spelling_of(name: str) -> Callable[[str], str] | None:
    """Return the function behind a name: lower, shape, short, prefixN, suffixN (of the lower-cased word); None if
    unknown.
    """
    simple = {"lower": str.lower, "shape": shape, "short": short_shape}
    if name in simple:
        return simple[name]
    match = re.fullmatch(r"(prefix|suffix)([1-9])", name)
    if not match:
        return None
    n = int(match[2])
    return (lambda word: word.lower()[:n]) if match[1] == "prefix" else (lambda word: word.lower()[-n:])


# Templates that need not be written: chosen by the columns there are.

_WORDS = """
U00:%x[-2,0]
U01:%x[-1,0]
U02:%x[0,0]
U03:%x[1,0]
U04:%x[2,0]
U05:%x[-1,0]/%x[0,0]
U06:%x[0,0]/%x[1,0]
U10:%x[0,0.lower]
U11:%x[-1,0.lower]
U12:%x[1,0.lower]
U20:%x[0,0.prefix1]
U21:%x[0,0.prefix2]
U22:%x[0,0.prefix3]
U23:%x[0,0.prefix4]
U24:%x[0,0.suffix1]
U25:%x[0,0.suffix2]
U26:%x[0,0.suffix3]
U27:%x[0,0.suffix4]
U30:%x[-1,0.short]
U31:%x[0,0.short]
U32:%x[1,0.short]
U33:%x[-1,0.short]/%x[0,0.short]/%x[1,0.short]
U34:%x[0,0.shape]
B
"""

_COLUMN = """
U{c}00:%x[-2,{c}]
U{c}01:%x[-1,{c}]
U{c}02:%x[0,{c}]
U{c}03:%x[1,{c}]
U{c}04:%x[2,{c}]
U{c}05:%x[-2,{c}]/%x[-1,{c}]
U{c}06:%x[-1,{c}]/%x[0,{c}]
U{c}07:%x[0,{c}]/%x[1,{c}]
U{c}08:%x[1,{c}]/%x[2,{c}]
U{c}09:%x[-2,{c}]/%x[-1,{c}]/%x[0,{c}]
U{c}10:%x[-1,{c}]/%x[0,{c}]/%x[1,{c}]
U{c}11:%x[0,{c}]/%x[1,{c}]/%x[2,{c}]
"""


def default_templates(n_columns: int) -> Templates:
    """Make templates of words, affixes and shapes in a window, and windows, pairs and triples of further columns."""
    further = "".join(_COLUMN.format(c=c) for c in range(1, n_columns))
    return Templates.parse((_WORDS + further).splitlines())


# The attributes of all tokens, a block of sentences at a time, so that little more is held than the result.


@dataclass(frozen=True)
class AttributeEntries:
    """Keys of all attributes token by token, how many each token has, their values (None: all 1)."""

    counts: Array  # [tokens] int64
    keys: Array  # [entries] uint64
    values: Array | None
    names_of: Callable[[Array], list[str]]  # the names of some entries
    looks_at_pairs: Array | None = None  # [entries] whether it scores neighbouring labels; None: none does

    def with_function(self, function: FeatureFunction | None, sentences: Sequence[Sentence]) -> AttributeEntries:
        """Add the attributes that a function gives, after those that are there."""
        if function is None:
            return self
        more_counts, more_keys, more_values, names = function.attributes(sentences)
        counts, keys, values, order = merge_attributes(self.counts, self.keys, more_counts, more_keys, more_values)
        n_before = len(self.keys)

        def names_of(entries: Array) -> list[str]:
            places = order[entries]
            own = places >= n_before
            listed = np.empty(len(places), object)
            listed[~own] = self.names_of(places[~own])
            listed[own] = names.of(places[own] - n_before)
            return list(listed)

        pairs = self.looks_at_pairs
        if pairs is not None:
            pairs = np.concatenate([pairs, np.zeros(len(more_keys), np.bool_)])[order]
        return AttributeEntries(counts, keys, values, names_of, pairs)


TOKENS_AT_A_TIME = 8192


@dataclass(frozen=True)
class Places:
    """The (token, template) of attributes that are listed token by token."""

    offsets: Array  # [tokens + 1] first attribute of each token
    templates: Array  # [attributes] uint16

    def __getitem__(self, entries: Array) -> Array:
        """[entries, 2] int32"""
        tokens = np.searchsorted(self.offsets, entries, side="right") - 1
        return np.stack([tokens.astype(np.int32), self.templates[entries].astype(np.int32)], 1)


def expand(
    templates: Templates, wanted: Sequence[int], lengths: Array, columns: Sequence[Column]
) -> tuple[Array, Array, Places]:
    """Make the attributes of the wanted templates, token by token.

    Args:
        templates: The templates of a file.
        wanted: The numbers of those to use.
        lengths: Tokens of each sentence [sentences].
        columns: The columns of all tokens.

    Returns:
        Keys [entries], how many each token has [tokens], and the place of each key.
    """
    n_tokens = int(lengths.sum())
    room = n_tokens * len(wanted)  # of which only what is written to takes memory
    keys, rows = np.empty(room, np.uint64), np.empty(room, np.uint16)
    counts, n = np.empty(n_tokens, np.int64), 0
    views, numbers = templates.views(columns), np.array(wanted, np.uint16)
    for sentences, first, last in _blocks(lengths):
        keys_and_presence = templates.keys_of(lengths[sentences], first, wanted, views)
        n += key_kernels.by_token(*keys_and_presence, numbers, keys[n:], rows[n:], counts[first:last])
    return keys[:n], counts, Places(offsets_of(counts), rows[:n])


def _blocks(lengths: Array) -> Iterator[tuple[slice, int, int]]:
    """Yield sentences, their first token and their end, about `TOKENS_AT_A_TIME` tokens together."""
    ends = np.cumsum(lengths)
    first, begin = 0, 0
    while first < len(lengths):
        last = max(first + 1, int(np.searchsorted(ends, begin + TOKENS_AT_A_TIME, side="right")))
        yield slice(first, last), begin, int(ends[last - 1])
        first, begin = last, int(ends[last - 1])
