"""Tokens cut into smaller ones keep their tags."""

from __future__ import annotations

import pytest

from trelliswork.data import Sentence, cut_tokens
from trelliswork.errors import DataError, TrellisworkError
from trelliswork.tags.schemes import spans_of


@pytest.mark.parametrize(
    ("word", "pieces"),
    [
        ("@ann_b", ["@", "ann", "_", "b"]),
        ("isn't", ["is", "n", "'", "t"]),
        ("I'm", ["I", "'", "m"]),
        ("X-Files", ["X-Files"]),
        ("18th", ["18", "th"]),
        ("http://t.co/a1", ["http://t.co/a1"]),
        (":-)", [":", "-", ")"]),
        ("...", [".", ".", "."]),
    ],
)
def test_fine_tokens(word: str, pieces: list[str]) -> None:
    assert cut_tokens(Sentence((word,)), "plain").words == tuple(pieces)


@pytest.mark.parametrize(
    ("scheme", "tags"),
    [("IOB2", ("B-X", "B-X", "O")), ("IOBES", ("S-X", "S-X", "O")), ("IOB1", ("I-X", "B-X", "O"))],
)
def test_spans_keep_their_extent(scheme: str, tags: tuple[str, ...]) -> None:
    cut = cut_tokens(Sentence(("U.S.", "Ann's", "a-b"), tags, (("1", "2", "3"),)), scheme)
    assert cut.words == ("U", ".", "S", ".", "Ann", "'", "s", "a-b")
    assert spans_of(cut.tags or (), scheme, "strict") == [(0, 4, "X"), (4, 7, "X")]
    assert cut.features == (("1", "1", "1", "1", "2", "2", "2", "3"),)


def test_plain_tags_are_repeated() -> None:
    assert cut_tokens(Sentence(("a.", "b"), ("N", "V")), "plain").tags == ("N", "N", "V")


def test_a_pattern_of_ones_own() -> None:
    cut = cut_tokens(Sentence(("a-b", "--")), "plain", r"\w+")
    assert cut.words == ("a", "b", "--"), "what the pattern does not find stays whole"
    with pytest.raises(TrellisworkError, match="expected a regular expression"):
        cut_tokens(Sentence(("a",)), "plain", "(")


def test_tags_that_do_not_fit_are_named() -> None:
    with pytest.raises(DataError, match="expected 2 tags, got 1"):
        cut_tokens(Sentence(("a", "b"), ("O",), line=7), "IOB2")
