"""Brackets counted by hand, as evalb with COLLINS.prm counts them."""

from __future__ import annotations

import pytest

from trelliswork.data.brackets import sentence_of
from trelliswork.errors import TrellisworkError
from trelliswork.metrics.brackets import Parsed, bracket_scores
from trelliswork.metrics.spans import Score
from trelliswork.structures.grammar.tree import Tree


def parsed(text: str) -> Parsed:
    sentence = sentence_of(Tree.parse(text))
    return Parsed(sentence.tags or (), sentence.brackets or ())


GOLD = parsed("(TOP (S (NP (DT the) (NN dog)) (, ,) (VP (VBZ runs) (ADVP (RB up)) (PP (IN to) (NP (PRP us)))) (. .)))")


def test_the_same_tree_is_exact() -> None:
    report = bracket_scores([GOLD], [GOLD])
    assert report.overall == Score(6, 6, 6), "TOP and tags are not counted"
    assert (report.f1, report.exact_match, report.crossing, report.tagging_accuracy) == (1.0, 1.0, 0.0, 1.0)


def test_punctuation_does_not_move_brackets_and_prt_is_advp() -> None:
    """The comma is inside the NP here, the stop outside the S, and the particle is PRT: all of it still counts."""
    found = parsed(
        "(TOP (X (S (NP (DT the) (NN dog) (, ,)) (VP (VBZ runs) (PRT (RP up)) (PP (IN to) (NP (PRP us))))) (. .)))"
    )
    report = bracket_scores([GOLD], [found])
    assert report.overall == Score(6, 7, 6), "X is one bracket too many"
    assert report.by_label["ADVP"] == Score(1, 1, 1) and report.by_label["X"] == Score(0, 1, 0)
    assert report.exact_match == 0.0
    assert report.tagging_accuracy == pytest.approx(5 / 6), "RP for RB; commas and stops are not counted"


def test_crossing_brackets() -> None:
    """[dog runs] crosses the NP and the VP, and is one crossing bracket; [the dog runs] crosses the VP."""
    found = Parsed(GOLD.tags, ((0, 8, "S"), (0, 4, "A"), (1, 4, "B")))
    report = bracket_scores([GOLD, GOLD], [found, GOLD])
    assert (report.n_crossing, report.crossing, report.without_crossing) == (2, 1.0, 0.5)
    assert report.overall == Score(1 + 6, 3 + 6, 12)


def test_brackets_that_occur_twice_count_twice() -> None:
    twice, once = Parsed(("NN", "NN"), ((0, 2, "NP"), (0, 2, "NP"))), Parsed(("NN", "NN"), ((0, 2, "NP"),))
    assert bracket_scores([twice], [once]).overall == Score(1, 1, 2)
    assert bracket_scores([once], [twice]).overall == Score(1, 2, 1)


def test_brackets_above_punctuation_alone_do_not_count() -> None:
    gold = Parsed(("NN", ".", "''"), ((0, 3, "S"), (1, 3, "PRN")))
    assert bracket_scores([gold], [gold]).overall == Score(1, 1, 1)


def test_sentences_of_other_lengths_are_skipped_and_told() -> None:
    report = bracket_scores([GOLD, GOLD], [Parsed(GOLD.tags[:3], GOLD.brackets[:1]), GOLD])
    assert (report.n_skipped, report.n_compared, report.f1) == (1, 1, 1.0)
    assert "skipped sentences" in report.table() and report.sentences[0] is None
    with pytest.raises(TrellisworkError, match=r"as many predicted as gold sentences \(2\); got 1"):
        bracket_scores([GOLD, GOLD], [GOLD])
