"""Mistakes of parsers by label, distance and kind of word: a case by hand."""

from __future__ import annotations

from trelliswork.data.treebank import is_projective
from trelliswork.metrics import Score
from trelliswork.metrics.attachment import arcs_by_label, attachment_where, content_score, heads_by_distance

GOLD = [
    [(2, "det"), (3, "nsubj"), (0, "root"), (3, "punct")],
    [(3, "nmod"), (0, "root"), (2, "obj"), (3, "acl:relcl")],  # arcs cross
]
FOUND = [
    [(2, "det"), (3, "obj"), (0, "root"), (1, "punct")],
    [(2, "nmod"), (0, "root"), (2, "obj"), (3, "acl")],
]


def test_labels() -> None:
    found = arcs_by_label(GOLD, FOUND)
    assert next(iter(found)) == "root" and found["root"] == Score(2, 2, 2)
    assert found["obj"] == Score(1, 2, 1) and found["nsubj"] == Score(0, 0, 1) and found["punct"] == Score(0, 1, 1)
    assert found["acl"] == Score(0, 1, 0) and found["acl:relcl"] == Score(0, 0, 1)


def test_content_words_without_subtypes() -> None:
    assert content_score(GOLD, FOUND) == Score(4, 6, 6)


def test_distances() -> None:
    assert heads_by_distance(GOLD, FOUND) == {
        "root": Score(2, 2, 2), "1": Score(4, 5, 5), "2": Score(0, 0, 1), "3-6": Score(0, 1, 0),
    }  # fmt: skip


def test_some_of_the_trees() -> None:
    crossing = attachment_where(GOLD, FOUND, lambda heads: not is_projective(heads))
    assert (crossing.n_trees, crossing.n_words, crossing.n_heads, crossing.n_both) == (1, 4, 3, 2)
