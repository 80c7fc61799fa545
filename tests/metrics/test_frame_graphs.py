"""Scores of frame graphs, counted by hand."""

from __future__ import annotations

import random

import pytest

from tests.oracles.frames import random_graph
from trelliswork.errors import TrellisworkError
from trelliswork.metrics.frame_graphs import PARTS, align, frame_scores
from trelliswork.structures.beam.frames import FrameGraph, Mention, Slot

# Ann met Bob in Rome: a meeting with two people at a place, in the past; the team that both are in has no phrase.
GOLD = FrameGraph(
    ("PER", "Meet", "PER", "LOC", "Team"),
    (Mention(0, 1, 0), Mention(1, 2, 1), Mention(2, 3, 2), Mention(4, 5, 3)),
    (
        Slot(1, "Agent", 0), Slot(1, "Person", 2), Slot(1, "Place", 3), Slot(1, "Tense", "past"),
        Slot(4, "Member", 0), Slot(4, "Member", 2),
    ),
)  # fmt: skip


def counts(gold: FrameGraph, found: FrameGraph) -> dict[str, tuple[int, int, int]]:
    return {part: tuple(scores) for part, scores in frame_scores([gold], [found]).parts.items()}


def test_the_same_graph_in_another_order_is_right_in_every_part() -> None:
    other = GOLD.renumbered([4, 2, 0, 3, 1])
    assert counts(GOLD, other) == {
        "mentions": (4, 4, 4), "frames": (5, 5, 5), "types": (5, 5, 5), "roles": (5, 5, 5), "labels": (1, 1, 1),
    }  # fmt: skip
    assert frame_scores([GOLD], [other]).combined.f1 == 1.0
    assert align(GOLD, other) == {0: 2, 1: 4, 2: 1, 3: 3, 4: 0}


def test_every_kind_of_mistake() -> None:
    """Rome is an organisation and part of a longer phrase, Bob is the agent, the past is the present, no team."""
    found = FrameGraph(
        ("PER", "Meet", "PER", "ORG"),
        (Mention(0, 1, 0), Mention(1, 2, 1), Mention(2, 3, 2), Mention(3, 5, 3)),
        (Slot(1, "Agent", 2), Slot(1, "Person", 0), Slot(1, "Place", 3), Slot(1, "Tense", "present")),
    )
    # The place is aligned by its role, though its phrase is another; that makes the role right and the type wrong.
    assert counts(GOLD, found) == {
        "mentions": (4, 4, 3), "frames": (5, 4, 4), "types": (5, 4, 3), "roles": (5, 3, 1), "labels": (1, 1, 0),
    }  # fmt: skip
    scores = frame_scores([GOLD], [found])
    assert scores.parts["types"].precision == 3 / 4 and scores.parts["types"].recall == 3 / 5
    assert scores.combined == (20, 16, 11) and scores.combined.f1 == 22 / 36


def test_a_phrase_with_two_frames_is_aligned_by_type() -> None:
    gold = FrameGraph(("A", "B"), (Mention(0, 1, 0), Mention(0, 1, 1)))
    found = FrameGraph(("B", "C"), (Mention(0, 1, 0), Mention(0, 1, 1)))
    assert align(gold, found) == {1: 0, 0: 1}
    assert counts(gold, found)["types"] == (2, 2, 1) and counts(gold, found)["mentions"] == (2, 2, 2)


def test_one_frame_found_as_two_is_right_once() -> None:
    gold = FrameGraph(("PER",), (Mention(0, 1, 0), Mention(3, 4, 0)))
    found = FrameGraph(("PER", "PER"), (Mention(0, 1, 0), Mention(3, 4, 1)))
    assert counts(gold, found)["mentions"] == (2, 2, 1) and counts(gold, found)["frames"] == (1, 2, 1)


def test_nothing_found_and_nothing_to_find() -> None:
    nothing = FrameGraph()
    assert frame_scores([GOLD], [nothing]).combined == (20, 0, 0)
    assert frame_scores([nothing], [nothing]).combined.f1 == 0.0
    with pytest.raises(TrellisworkError, match="for each of 1 gold graphs; got 0"):
        frame_scores([GOLD], [])


def test_scores_change_places_with_the_graphs_and_add_up() -> None:
    source = random.Random(0)
    graphs = [random_graph(source, 5) for _ in range(60)]
    others = graphs[1:] + graphs[:1]
    one_by_one = [frame_scores([a], [b]) for a, b in zip(graphs, others, strict=True)]
    for part in PARTS:
        total = tuple(map(sum, zip(*(each.parts[part] for each in one_by_one), strict=True)))
        assert frame_scores(graphs, others).parts[part] == total
        assert all(each.parts[part].n_right <= min(each.parts[part][:2]) for each in one_by_one)
    assert frame_scores(graphs, graphs).combined.f1 == 1.0
