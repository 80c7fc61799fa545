"""Every dependency tree over a few words, spanning or projective."""

from __future__ import annotations

import itertools
from functools import lru_cache

Heads = tuple[int, ...]
"""heads[m - 1] is the head of word m; 0 is the root."""


@lru_cache
def trees(n: int, single_root: bool, projective: bool = False) -> list[Heads]:
    """All trees over n words, heads in lexicographic order.

    There are n^(n-1) spanning trees with one root word, and (n+1)^(n-1) otherwise.
    """
    return [
        heads
        for heads in itertools.product(range(n + 1), repeat=n)
        if reaches_the_root(heads)
        and (not single_root or heads.count(0) == 1)
        and (not projective or is_projective(heads))
    ]


def ancestors(heads: Heads, word: int) -> list[int]:
    """The way from a word to the root; it stops where it begins to go round."""
    way: list[int] = []
    while word != 0 and len(way) <= len(heads):
        word = heads[word - 1]
        way.append(word)
    return way


def reaches_the_root(heads: Heads) -> bool:
    return all(ancestors(heads, word)[-1] == 0 for word in range(1, len(heads) + 1))


def is_projective(heads: Heads) -> bool:
    """No arc covers a word that is not below its head; arcs of the root reach over nothing but its own tree."""
    for word, head in enumerate(heads, 1):
        for between in range(min(word, head) + 1, max(word, head)):
            if head not in [between, *ancestors(heads, between)]:
                return False
    return True
