"""Byte-pair encoding against a plain version that counts anew after each merge."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

import pytest

from trelliswork.data.subwords import JOIN, BytePairs, join_pieces, merge_pair, spans
from trelliswork.errors import TrellisworkError


def plain(counts: dict[str, int], n_merges: int) -> list[tuple[str, str]]:
    """The loop of Sennrich, Haddow and Birch (2016): count all pairs, merge the most frequent."""
    words, merges = {word: list(word) for word in counts}, []
    for _ in range(n_merges):
        pairs = Counter[tuple[str, str]]()
        for word, pieces in words.items():
            for pair in pairwise(pieces):
                pairs[pair] += counts[word]
        best = min(pairs.items(), key=lambda each: (-each[1], each[0]), default=None)
        if best is None or best[1] < 2:
            break
        merges.append(best[0])
        words = {word: merge_pair(pieces, best[0]) for word, pieces in words.items()}
    return merges


@pytest.mark.parametrize("seed", range(4))
def test_merges_are_those_of_the_plain_loop(seed: int) -> None:
    random_ = random.Random(seed)
    counts = {"".join(random_.choices("abc", k=random_.randint(1, 9))): random_.randint(1, 9) for _ in range(40)}
    assert BytePairs.learn(counts, 30).merges == plain(counts, 30)
    assert len(BytePairs.learn(counts, 10_000).merges) == len(plain(counts, 10_000))


def test_a_word_is_cut_in_the_order_of_the_merges() -> None:
    pairs = BytePairs([("a", "b"), ("b", "c"), ("ab", "c")])
    assert pairs.cut("abc") == ("abc",)
    assert pairs.cut("bc") == ("bc",)
    assert pairs.cut("xabx") == (f"x{JOIN}", f"ab{JOIN}", "x")
    assert BytePairs([]).cut("ab") == (f"a{JOIN}", "b")


def test_pieces_give_the_words_back() -> None:
    pairs = BytePairs.learn({"lower": 9, "low": 7, "newer": 6}, 4)
    words = ("slower", "newest", "", "low", "ß")
    pieces = pairs.cut_all(words)
    assert join_pieces(pieces) == tuple(word for word in words if word)
    assert [pieces[i] for i in spans(pieces)[0]] == [f"s{JOIN}", "lower"]
    assert join_pieces([f"a{JOIN}"]) == ("a",)  # cut off


def test_a_negative_number_of_merges_is_refused() -> None:
    with pytest.raises(TrellisworkError, match="at least 0"):
        BytePairs.learn({"ab": 3}, -1)
