"""Words cut into the pieces that are frequent: byte-pair encoding, learned in seconds.

Sennrich, Haddow and Birch (2016), Neural machine translation of rare words with subword units.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise

from trelliswork.errors import TrellisworkError

JOIN = "￭"  # at the end of a piece that goes on: the halfwidth square that other tools use, which texts do not
Pair = tuple[str, str]


class BytePairs:
    """Merges of neighbouring pieces, the most frequent first; a word is cut by applying them in this order.

    >>> pairs = BytePairs.learn({"lower": 9, "low": 7, "newer": 6}, 4)
    >>> pairs.merges
    [('l', 'o'), ('lo', 'w'), ('e', 'r'), ('low', 'er')]
    >>> pairs.cut("slower"), pairs.cut("low")
    (('s￭', 'lower'), ('low',))
    """

    def __init__(self, merges: Sequence[Pair]) -> None:
        self.merges = [(left, right) for left, right in merges]
        self._rank = {pair: i for i, pair in enumerate(self.merges)}
        self._cut: dict[str, tuple[str, ...]] = {}

    @classmethod
    def learn(cls, counts: Mapping[str, int], n_merges: int) -> BytePairs:
        """Merge the most frequent pair of neighbours again and again; ties go to the first in the alphabet."""
        if n_merges < 0:
            raise TrellisworkError(f"the number of merges must be at least 0; got {n_merges}")
        words = [list(word) for word in counts]
        weights, places, totals = list(counts.values()), defaultdict[Pair, set[int]](set), Counter[Pair]()
        for i, word in enumerate(words):
            for pair in pairwise(word):
                places[pair].add(i)
                totals[pair] += weights[i]
        heap, merges = [(-n, pair) for pair, n in totals.items()], list[Pair]()
        heapify(heap)
        while heap and len(merges) < n_merges:
            n, pair = heappop(heap)
            if -n != totals[pair]:  # an old count; the newer one is in the heap as well
                continue
            if -n < 2:
                break
            merges.append(pair)
            for changed in _merge_everywhere(pair, words, weights, places, totals):
                if totals[changed] > 0:
                    heappush(heap, (-totals[changed], changed))
        return cls(merges)

    def cut(self, word: str) -> tuple[str, ...]:
        """Return the pieces of a word; all but the last are marked."""
        pieces_of_word = self._cut.get(word)
        if pieces_of_word is None:
            pieces = list(word)
            while len(pieces) > 1:
                best = min(pairwise(pieces), key=lambda pair: self._rank.get(pair, len(self.merges)))
                if best not in self._rank:
                    break
                pieces = merge_pair(pieces, best)
            pieces_of_word = self._cut[word] = (*(piece + JOIN for piece in pieces[:-1]), *pieces[-1:])
        return pieces_of_word

    def cut_all(self, words: Iterable[str]) -> tuple[str, ...]:
        """Return the pieces of several words."""
        return tuple(piece for word in words for piece in self.cut(word))


def join_pieces(pieces: Iterable[str]) -> tuple[str, ...]:
    """Return the words of some pieces; a piece that should go on and does not ends its word.

    >>> join_pieces(["low￭", "er", "s"])
    ('lower', 's')
    """
    listed = list(pieces)
    return tuple("".join(listed[i].removesuffix(JOIN) for i in place) for place in spans(listed))


def spans(pieces: Sequence[str]) -> list[range]:
    """Return the range of the pieces of each word."""
    ranges, start = [], 0
    for i, piece in enumerate(pieces):
        if not piece.endswith(JOIN) or i + 1 == len(pieces):
            ranges.append(range(start, i + 1))
            start = i + 1
    return ranges


def merge_pair(pieces: Sequence[str], pair: Pair) -> list[str]:
    """Return the pieces with each occurrence of a pair as one piece.

    >>> merge_pair(["a", "b", "a", "b", "c"], ("a", "b"))
    ['ab', 'ab', 'c']
    """
    joined_pieces, i = list[str](), 0
    while i < len(pieces):
        if i + 1 < len(pieces) and (pieces[i], pieces[i + 1]) == pair:
            joined_pieces.append(pieces[i] + pieces[i + 1])
            i += 2
        else:
            joined_pieces.append(pieces[i])
            i += 1
    return joined_pieces


def _merge_everywhere(
    pair: Pair, words: list[list[str]], weights: list[int], places: dict[Pair, set[int]], totals: Counter[Pair]
) -> set[Pair]:
    """Merge a pair in all words that have it; the pairs whose counts have changed."""
    changed = set[Pair]()
    for i in places.pop(pair, set()):
        before, after = words[i], merge_pair(words[i], pair)
        for each in pairwise(before):
            totals[each] -= weights[i]
            changed.add(each)
        for each in pairwise(after):
            totals[each] += weights[i]
            places[each].add(i)
            changed.add(each)
        words[i] = after
    totals[pair] = 0
    changed.discard(pair)
    return changed
