"""Symbols as the network reads and writes them: as they are, or words cut into subwords."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from trelliswork.data import Sentence
from trelliswork.data.subwords import BytePairs, joined, spans

Symbols = tuple[str, ...]


class Pieces:
    """Cuts symbols into pieces, and joins them; without merges each symbol is its own piece."""

    def __init__(self, pairs: BytePairs | None = None) -> None:
        self.pairs = pairs

    @classmethod
    def learned(cls, train: Sequence[Sentence], n_merges: int) -> Pieces:
        """Merges of both sides together, so that names and numbers are cut alike."""
        if not n_merges:
            return cls()
        counts = Counter(word for pair in train for side in (pair.words, pair.target or ()) for word in side)
        return cls(BytePairs.learned(counts, n_merges))

    @classmethod
    def from_stored(cls, merges: Sequence[str]) -> Pieces:
        """The inverse of `stored`."""
        if not merges:
            return cls()
        return cls(BytePairs([(left, right) for left, right in (each.split(" ") for each in merges)]))

    def stored(self) -> list[str]:
        """Plain values; pieces have no blanks."""
        return [] if self.pairs is None else [" ".join(pair) for pair in self.pairs.merges]

    def cut(self, symbols: Symbols) -> Symbols:
        return symbols if self.pairs is None else self.pairs.cut_all(symbols)

    def join(self, pieces: Symbols) -> Symbols:
        return pieces if self.pairs is None else joined(pieces)

    def places(self, pieces: Symbols) -> list[range]:
        """Where the pieces of each symbol are."""
        return [range(i, i + 1) for i in range(len(pieces))] if self.pairs is None else spans(pieces)
