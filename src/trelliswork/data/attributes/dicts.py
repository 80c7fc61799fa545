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
from trelliswork.errors import DataError

Array = np.ndarray[Any, Any]
Token = Mapping[str, Any] | Sequence[str]


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
        for i, token in enumerate(found[-1], 1):
            if not isinstance(token, Iterable):
                place = f"sentence {s}, token {i}"
                got = f"expected a dict or a list of names, got {type(token).__name__}"
                raise DataError("attributes", f"{place}: {got}")
    return found


def from_dicts(sentences: Iterable[Iterable[Token]]) -> tuple[Array, Array, Array, Array, list[str]]:
    """(lengths, entries of each token, keys, values, names) of all sentences."""
    rows = token_lists(sentences)
    lengths = np.array([len(row) for row in rows], np.int64)
    counts, names, values = np.empty(int(lengths.sum()), np.int64), list[str](), list[float]()
    t = 0
    try:
        for t, token in enumerate(chain.from_iterable(rows)):
            before = len(names)
            for name, value in attribute_items(token):
                names.append(name)
                values.append(value)
            counts[t] = len(names) - before
    except DataError as error:
        raise DataError("attributes", f"{_place(t, lengths)}: {error.problem}") from error
    numbers = np.array(values)
    bad = np.flatnonzero(~np.isfinite(numbers))
    if len(bad):
        t = int(np.searchsorted(np.cumsum(counts), bad[0], side="right"))
        got = "NaN" if math.isnan(numbers[bad[0]]) else "an infinite value"
        raise DataError(
            "attributes", f"{_place(t, lengths)}: expected a finite number for {names[bad[0]]!r}, got {got}"
        )
    return lengths, counts, keys_of(names), numbers, names


def _place(t: int, lengths: Array) -> str:
    """Where token t of all is, for people."""
    sentence = int(np.searchsorted(np.cumsum(lengths), t, side="right"))
    return f"sentence {sentence + 1}, token {t - int(lengths[:sentence].sum()) + 1}"
