"""Symbol tables: which number stands for which symbol. Number 0 is always epsilon, the empty symbol."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import Array

EPSILON = 0
EPSILON_NAMES = ("<eps>", "", "ε")


class Symbols:
    """Symbols in a fixed order, numbered from 1; 0 is epsilon.

    >>> symbols = Symbols(["a", "b"])
    >>> symbols.number("b"), symbols.name(1), len(symbols)
    (2, 'a', 3)
    """

    __slots__ = ("_names", "_numbers")

    def __init__(self, symbols: Iterable[str]):
        names = dict.fromkeys(symbols)
        if strange := [name for name in names if not isinstance(name, str)]:
            raise ScoreError(f"symbols must be strings; got {strange[0]!r}; call str() on them")
        self._names = (EPSILON_NAMES[0], *(name for name in names if name not in EPSILON_NAMES))
        self._numbers = {name: number for number, name in enumerate(self._names)}
        self._numbers.update(dict.fromkeys(EPSILON_NAMES, EPSILON))

    def __len__(self) -> int:
        """Return the number of symbols, epsilon included."""
        return len(self._names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __contains__(self, symbol: object) -> bool:
        return symbol in self._numbers

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Symbols) and self._names == other._names

    def __hash__(self) -> int:
        return hash(self._names)

    def __repr__(self) -> str:
        return f"Symbols({len(self) - 1}: {' '.join(self._names[1:6])}{' ...' if len(self) > 6 else ''})"

    def name(self, number: int) -> str:
        if not 0 <= number < len(self._names):
            raise ScoreError(f"symbol numbers lie in 0..{len(self._names) - 1}; got {number}")
        return self._names[number]

    def number(self, symbol: str) -> int:
        number = self._numbers.get(symbol)
        if number is None:
            raise ScoreError(f"{symbol!r} is not in the symbol table of {len(self) - 1}; add it or spell it as there")
        return number

    def numbers(self, symbols: Sequence[str]) -> list[int]:
        return [self.number(symbol) for symbol in symbols]


def unify(left: Symbols | None, right: Symbols | None) -> tuple[Symbols | None, Array | None]:
    """Return one table for both, in which left's numbers stay; and right's numbers in it, None if they stay as well."""
    if left is right or left == right:
        return left, None
    if left is None or right is None:
        raise ScoreError(
            "one machine has a symbol table and the other plain numbers; give both the same kind of labels"
        )
    both = Symbols([*list(left)[1:], *list(right)[1:]])
    return both, np.array([both.number(name) for name in right], np.int64)
