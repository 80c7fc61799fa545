"""What can be seen of a word: columns made from a column, once for each different word."""

from __future__ import annotations

import re
from collections.abc import Callable

_RUNS = re.compile(r"(.)\1+", re.DOTALL)


class _Signs(dict[int, str]):
    """Character -> the sign of its kind, found out when first asked for."""

    def __missing__(self, code: int) -> str:
        ch = chr(code)
        self[code] = sign = "X" if ch.isupper() else "x" if ch.isalpha() else "d" if ch.isdigit() else ch
        return sign


_SIGNS = _Signs()


def shape(word: str) -> str:
    """Letters as X and x, digits as d, the rest as it is.

    >>> shape("McDonald's-2024")
    "XxXxxxxx'x-dddd"
    """
    return word.translate(_SIGNS)


def short_shape(word: str) -> str:
    """The shape with runs of the same sign written once.

    >>> short_shape("McDonald's-2024")
    "XxXx'x-d"
    """
    return _RUNS.sub(r"\1", shape(word))


def spelling_of(name: str) -> Callable[[str], str] | None:
    """The function behind a name: lower, shape, short, prefixN, suffixN (of the lower-cased word); None if unknown."""
    simple = {"lower": str.lower, "shape": shape, "short": short_shape}
    if name in simple:
        return simple[name]
    found = re.fullmatch(r"(prefix|suffix)([1-9])", name)
    if not found:
        return None
    n = int(found[2])
    return (lambda word: word.lower()[:n]) if found[1] == "prefix" else (lambda word: word.lower()[-n:])
