"""Attributes as CRFsuite takes them: for each token a dict, or a list of names.

{"word": "Paris", "title": True, "length": 5.0} has the attributes word:Paris (1), title (1) and length (5).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from trelliswork.data.attributes.key_index import keys_of
from trelliswork.data.attributes.key_kernels import first_entries
from trelliswork.errors import DataError

Array = np.ndarray[Any, Any]
Token = Mapping[str, Any] | Sequence[str]
MOST_ITEMS = 2_000_000  # that a table remembers


def attribute_items(token: Token, prefix: str = "") -> Iterator[tuple[str, float]]:
    """(name, value) of each attribute of a token.

    >>> list(attribute_items({"w": "Paris", "title": True, "length": 5, "ngrams": ["pa", "ar"], "in": {"list": False}}))
    [('w:Paris', 1.0), ('title', 1.0), ('length', 5.0), ('ngrams:pa', 1.0), ('ngrams:ar', 1.0), ('in:list', 0.0)]
    """
    if isinstance(token, str):
        yield prefix + token, 1.0
    elif isinstance(token, Mapping):
        for name, value in token.items():
            yield from _items_of(prefix + str(name), value)
    else:
        for name in token:
            if not isinstance(name, str):
                got = f"the number {name}" if isinstance(name, int | float | np.number) else type(name).__name__
                raise DataError("attributes", f"expected names of attributes, got {got}; give a dict of named values")
            yield prefix + name, 1.0


def _items_of(name: str, value: Any) -> Iterator[tuple[str, float]]:
    if isinstance(value, str):
        yield f"{name}:{value}", 1.0
    elif isinstance(value, bytes):
        yield f"{name}:{value.decode('utf-8', 'backslashreplace')}", 1.0
    elif isinstance(value, bool | int | float | np.number | np.bool_):
        yield name, float(value)
    elif isinstance(value, Mapping | Sequence | set | frozenset):
        yield from attribute_items(value if not isinstance(value, set | frozenset) else sorted(value), f"{name}:")
    else:
        kind = type(value).__name__
        raise DataError("attributes", f"expected text, a number, a truth value or a list at {name!r}, got {kind}")


def token_lists(sentences: Iterable[Iterable[Token]]) -> list[list[Token]]:
    """Sentences and their tokens as lists, since iterators can be read only once; what is no token is named."""
    if isinstance(sentences, str | Mapping) or not isinstance(sentences, Iterable):
        raise DataError("attributes", f"expected a list of sentences, got {type(sentences).__name__}")
    found = []
    for s, sentence in enumerate(sentences, 1):
        if isinstance(sentence, str | Mapping) or not isinstance(sentence, Iterable):
            got = f"sentence {s}: expected a list of tokens, got {type(sentence).__name__}"
            raise DataError("attributes", f"{got}; put a single sentence into a list")
        found.append(list(sentence))
        if all(issubclass(kind, Iterable) for kind in set(map(type, found[-1]))):
            continue
        i, token = next((i, each) for i, each in enumerate(found[-1], 1) if not isinstance(each, Iterable))
        got = f"expected a dict or a list of names, got {type(token).__name__}"
        raise DataError("attributes", f"sentence {s}, token {i}: {got}")
    return found


class ItemTable(dict[Any, int]):
    """A number for each attribute with its value, as tokens have it: ("word", "Paris"), ("title", True) or a name.

    Its name, key and value are worked out once, however often it comes. A table that has grown beyond `MOST_ITEMS` is
    begun anew, so that it may live as long as a service does.
    """

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.sizes: list[float] = []
        self._arrays = np.empty(0, np.uint64), np.empty(0)

    def __missing__(self, item: Any) -> int:
        if isinstance(item, _Resolved):
            name, value = item
        else:
            found = list(attribute_items(item if isinstance(item, str) else {item[0]: item[1]}))
            if len(found) != 1:
                raise TypeError("several attributes in one")
            name, value = found[0]
        self[item] = number = len(self.names)
        self.names.append(name)
        self.sizes.append(value)
        return number

    def arrays(self) -> tuple[Array, Array]:
        """The keys and values of all numbers."""
        keys = self._arrays[0]
        if len(keys) < len(self.names):
            new = keys_of(self.names[len(keys) :])
            self._arrays = np.concatenate([keys, new]), np.array(self.sizes)
        return self._arrays

    def shrink(self) -> None:
        """Forget everything if it is too much."""
        if len(self) > MOST_ITEMS:
            self.clear()
            self.__init__()  # type: ignore[misc]


class _Resolved(tuple[str, float]):
    """The name and value of an attribute that a list or a dict inside a token has."""


def from_dicts(
    sentences: Iterable[Iterable[Token]], table: ItemTable | None = None
) -> tuple[Array, Array, Array, Array, EntryNames]:
    """(lengths, entries of each token, keys, values, names of the entries) of all sentences.

    A `table` that is given again remembers what it has seen.
    """
    table = ItemTable() if table is None else table
    table.shrink()
    rows = token_lists(sentences)
    lengths = np.array([len(row) for row in rows], np.int64)
    tokens = list(chain.from_iterable(rows))
    try:
        counts, numbers = _numbered(tokens, table)
    except (TypeError, DataError):  # lists inside, tokens of several kinds, or something wrong
        counts, numbers = _numbered_one_by_one(tokens, table, lengths)
    keys, values = (column[numbers] for column in table.arrays())
    if not np.isfinite(values).all():
        bad = np.flatnonzero(~np.isfinite(values))
        t = int(np.searchsorted(np.cumsum(counts), bad[0], side="right"))
        got = "NaN" if math.isnan(values[bad[0]]) else "an infinite value"
        name = table.names[numbers[bad[0]]]
        raise DataError("attributes", f"{_place(t, lengths)}: expected a finite number for {name!r}, got {got}")
    return lengths, counts, keys, values, EntryNames(table.names, numbers)


def _numbered(tokens: Sequence[Token], table: ItemTable) -> tuple[Array, Array]:
    """How many attributes each token has, and the number of each; all tokens are dicts, or all are lists of names."""
    kinds = set(map(type, tokens))
    if not kinds <= {dict} and not kinds <= {list}:
        raise TypeError("tokens of several kinds")
    items = chain.from_iterable(map(dict.items, tokens) if kinds == {dict} else tokens)  # type: ignore[arg-type]
    counts = np.fromiter(map(len, tokens), np.int64, len(tokens))
    return counts, np.fromiter(map(table.__getitem__, items), np.int32, int(counts.sum()))


def _numbered_one_by_one(tokens: Sequence[Token], table: ItemTable, lengths: Array) -> tuple[Array, Array]:
    counts, numbers, t = np.empty(len(tokens), np.int64), list[int](), 0
    try:
        for t, token in enumerate(tokens):
            before = len(numbers)
            numbers.extend(table[_Resolved(item)] for item in attribute_items(token))
            counts[t] = len(numbers) - before
    except DataError as error:
        raise DataError("attributes", f"{_place(t, lengths)}: {error.problem}") from error
    return counts, np.array(numbers, np.int32)


class EntryNames(Sequence[str]):
    """The names of entries, by the numbers that they have in a table."""

    def __init__(self, names: Sequence[str], numbers: Array) -> None:
        self._names, self._numbers = names, numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, place: Any) -> Any:
        found = self._numbers[place]
        return [self._names[i] for i in found] if isinstance(place, slice) else self._names[found]

    def distinct(self) -> list[str]:
        """Each name once, in the order in which they come first."""
        first = np.full(len(self._names), len(self))
        first_entries(self._numbers, first)
        order = np.argsort(first)[: int((first < len(self)).sum())]
        return list(dict.fromkeys(self._names[i] for i in order.tolist()))


def _place(t: int, lengths: Array) -> str:
    """Where token t of all is, for people."""
    sentence = int(np.searchsorted(np.cumsum(lengths), t, side="right"))
    return f"sentence {sentence + 1}, token {t - int(lengths[:sentence].sum()) + 1}"
