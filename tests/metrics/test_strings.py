"""Errors of strings against recursion, and BLEU against sacrebleu (tokenize none) and figures of its version 2.6."""

from __future__ import annotations

import random
from functools import cache
from itertools import product

import pytest

from tests.contract.base import case
from trelliswork.errors import TrellisworkError
from trelliswork.metrics.strings import bleu, edit_distance, edit_distances, string_scores


def slow_distance(a: str, b: str) -> int:
    @cache
    def rest(i: int, j: int) -> int:
        if i == len(a) or j == len(b):
            return len(a) - i + len(b) - j
        return min(rest(i + 1, j + 1) + (a[i] != b[j]), rest(i + 1, j) + 1, rest(i, j + 1) + 1)

    return rest(0, 0)


def test_edit_distance_is_the_recursion() -> None:
    strings = ["".join(each) for n in range(4) for each in product("ab", repeat=n)]
    draw = random.Random(0)
    strings += ["".join(draw.choices("abc", k=draw.randint(5, 9))) for _ in range(10)]
    pairs = list(product(strings, strings))
    assert edit_distances(pairs) == [slow_distance(a, b) for a, b in pairs]
    assert edit_distance(["AH", "B"], ["A", "H", "B"]) == 2, "symbols, not letters"
    assert edit_distances([]) == []


def test_the_nearest_right_target_counts() -> None:
    report = string_scores(["abd", "x", ""], [["abcdef", "abc"], ["x", "xyz"], ["q"]])
    assert (report.n, report.n_wrong, report.right) == (3, 2, (False, True, False))
    assert (report.n_errors, report.n_symbols) == (2, 3 + 1 + 1)
    assert report.word_error_rate == pytest.approx(2 / 3)
    assert report.symbol_error_rate == pytest.approx(2 / 5)


def test_misfits_are_refused() -> None:
    with pytest.raises(TrellisworkError, match="each of 2 inputs, got 1"):
        string_scores(["a"], [["a"], ["b"]])
    with pytest.raises(TrellisworkError, match="got none for input 1"):
        bleu(["a", "b"], [["a"], []])


BLEU = [  # predictions, the right targets of each, and what sacrebleu 2.6.0 has: score, precisions, brevity
    (
        ["the cat sat on the mat"], [["the cat is on the mat"]],
        37.99178428257963, (83.33333333333333, 60.0, 25.0, 16.666666666666668), 1.0,
    ),
    (["the cat"], [["the cat is on the mat"]], 0.0, (100.0, 100.0, 0.0, 0.0), 0.1353352832366127),
    (
        ["the the the the the the the"], [["the cat is on the mat", "there is a cat on the mat"]],
        7.809849842300637, (28.571428571428573, 8.333333333333334, 5.0, 3.125), 1.0,
    ),
    (
        ["a b c d e", "f g"], [["a b c d f", "a b c d e f"], ["f g h", "f g h"]],
        86.6877899750182, (100.0, 100.0, 100.0, 100.0), 0.8668778997501817,
    ),
    (["x y z"], [["a b c"]], 0.0, (0.0, 0.0, 0.0, 0.0), 1.0),
    (
        ["one two three four five"], [["five four three two one"]],
        15.97357760615681, (100.0, 12.5, 8.333333333333334, 6.25), 1.0,
    ),
    (
        [
            "it is a guide to action which ensures that the military always obeys the commands of the party",
            "he read the book because he was interested in world history",
        ],
        [
            ["it is a guide to action that ensures that the military will forever heed party commands"],
            ["he was interested in world history because he read the book"],
        ],
        53.7346712159519, (79.3103448275862, 62.96296296296296, 48.0, 34.78260869565217), 1.0,
    ),
]  # fmt: skip


def test_bleu_has_the_figures_of_sacrebleu() -> None:
    for found, targets, score, precisions, brevity in BLEU:
        with case(found=found):
            report = bleu([each.split() for each in found], [[each.split() for each in right] for right in targets])
            assert report.score == pytest.approx(score, abs=1e-9)
            assert report.precisions == pytest.approx(precisions)
            assert report.brevity == pytest.approx(brevity)
    assert bleu([[]], [[["a"]]]).score == 0.0 == bleu([[]], [[["a"]]]).brevity


def random_words(draw: random.Random, shortest: int) -> list[str]:
    return draw.choices("abcde", weights=(8, 4, 2, 1, 1), k=draw.randint(shortest, 12))


@pytest.mark.parametrize("seed", range(60))
def test_bleu_is_that_of_sacrebleu(seed: int) -> None:
    """Random corpora: several targets, not as many for each input; empty predictions; no match of some lengths."""
    peer = pytest.importorskip("sacrebleu")
    draw = random.Random(seed)
    n, most = draw.randint(1, 8), draw.randint(1, 3)
    found = [random_words(draw, 0) for _ in range(n)]
    targets = [[random_words(draw, 1) for _ in range(draw.randint(1, most))] for _ in range(n)]
    if seed % 3:  # near to a target, so that long n-grams match
        found = [[word for word in right[0] if draw.random() < 0.9] for right in targets]
    streams = [[" ".join(right[i]) if i < len(right) else None for right in targets] for i in range(most)]
    expected = peer.corpus_bleu([" ".join(each) for each in found], streams, tokenize="none", force=True)
    report = bleu(found, targets)
    assert report.score == pytest.approx(expected.score, abs=1e-9)
    assert report.precisions == pytest.approx(expected.precisions)
    assert report.brevity == pytest.approx(expected.bp)
    assert (report.length, report.target_length) == (expected.sys_len, expected.ref_len)
