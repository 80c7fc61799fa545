"""Events of the built-in corpus: read from the derivation, over its entities."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from trelliswork.data import Sentence, read_jsonl
from trelliswork.data.corpus import (
    AnnotatedSentence,
    Event,
    builtin_corpus,
    builtin_documents,
    document_records,
    event_sentences,
    write_events,
)
from trelliswork.data.corpus.generate import EVENTS
from trelliswork.data.event_frames import frame_graph_of
from trelliswork.data.events import arcs_of, check_record, entities_of, events_of
from trelliswork.errors import DataError
from trelliswork.metrics.frame_graphs import frame_scores
from trelliswork.structures.beam.frames import Actions, FrameSystem, Kind, actions_of
from trelliswork.structures.beam.system import advance
from trelliswork.tags.schemes import spans_of


@pytest.fixture(scope="module")
def sentences() -> list[AnnotatedSentence]:
    return builtin_corpus(sizes=(400, 1, 1))["train"]


def in_words(sentences: list[AnnotatedSentence], text: str) -> list[tuple[str, str, dict[str, str]]]:
    """The events of one sentence, in words."""
    sentence = next(each for each in sentences if " ".join(each.words) == text)
    return [
        (
            sentence.words[event.trigger],
            event.type,
            {role: " ".join(sentence.words[i:j]) for i, j, role in event.arguments},
        )
        for event in sentence.events
    ]


def test_subject_and_object(sentences: list[AnnotatedSentence]) -> None:
    found = in_words(sentences, "Orion Inc acquired Barkcorp .")
    assert found == [("acquired", "Acquire", {"Buyer": "Orion Inc", "Target": "Barkcorp"})]


def test_a_time_in_front_and_an_apposition(sentences: list[AnnotatedSentence]) -> None:
    found = in_words(sentences, "By Sunday , Barksoft launched its latest Bristol .")
    assert found == [("launched", "Trade", {"Time": "Sunday", "Seller": "Barksoft", "Product": "Bristol"})]
    found = in_words(sentences, "Dorman , a comfortable violinist , visited Garrville on Monday .")
    assert found == [("visited", "Visit", {"Agent": "Dorman", "Destination": "Garrville", "Time": "Monday"})]


def test_the_subject_of_an_aim_is_that_of_the_clause_around_it(sentences: list[AnnotatedSentence]) -> None:
    found = in_words(sentences, "Bank of Pellton wants to dismiss 45 designers .")
    assert found == [("dismiss", "Hire", {"Employer": "Bank of Pellton"})]


def test_each_clause_has_its_own_arguments(sentences: list[AnnotatedSentence]) -> None:
    found = in_words(sentences, "When Ramsoft Ltd invested in Sandburg , Ramware Bank acquired Beacon .")
    assert found == [
        ("invested", "Expand", {"Organisation": "Ramsoft Ltd", "Place": "Sandburg"}),
        ("acquired", "Acquire", {"Buyer": "Ramware Bank", "Target": "Beacon"}),
    ]


def test_an_owner_is_no_argument(sentences: list[AnnotatedSentence]) -> None:
    found = in_words(sentences, "Sundial recalled its new Compass in Morgan 's mayor .")
    assert found == [("recalled", "Trade", {"Seller": "Sundial", "Product": "Compass"})]


def test_arguments_are_entities_and_triggers_verbs(sentences: list[AnnotatedSentence]) -> None:
    every = [(sentence, event) for sentence in sentences for event in sentence.events]
    assert {event.type for _, event in every} == {type_ for type_, *_ in EVENTS.values()} - {"React"}  # in documents
    for sentence, event in every:
        assert isinstance(event, Event) and sentence.pos[event.trigger].startswith("VB")
        entities = {(start, end) for start, end, _ in spans_of(sentence.entities, "IOB2")}
        assert {(start, end) for start, end, _ in event.arguments} <= entities


def test_sentences_have_events_entities_and_dependencies(sentences: list[AnnotatedSentence], tmp_path: Path) -> None:
    found = event_sentences(sentences)
    (path,) = write_events({"events": sentences}, tmp_path)
    for annotated, sentence, again in zip(sentences, found, read_jsonl(path), strict=True):
        assert events_of(sentence) == annotated.events == events_of(again)
        assert entities_of(sentence) == entities_of(again) == spans_of(annotated.entities, "IOB2")
        assert arcs_of(sentence) == arcs_of(again)
        dependents = [dependent for _, dependent, _ in arcs_of(sentence)]
        assert len(dependents) == len(set(dependents)) == len(sentence) - 1
    first = next(each for each in found if " ".join(each.words) == "Orion Inc acquired Barkcorp .")
    assert (2, 1, "nsubj") in arcs_of(first) and (2, 3, "obj") in arcs_of(first)


def check_that_actions_rebuild(found: list[Sentence]) -> set[Kind]:
    """From graphs to actions and back, by batched states; the kinds of actions that it takes."""
    graphs = [frame_graph_of(each) for each in found]
    derived = [actions_of(graph, len(each)) for graph, each in zip(graphs, found, strict=True)]
    table = Actions(action for actions, _ in derived for action in actions)
    system = FrameSystem(torch.tensor([len(each) for each in found]), table)
    state = system.initial()
    for column in system.decisions_of(graphs).T:
        moving = column >= 0
        allowed = system.allowed(state)[:, 0].gather(1, column.clamp(min=0)[:, None]).squeeze(1)
        assert bool((allowed | ~moving).all())
        state = advance(system, state, column[:, None], moving[:, None])
    again = [system.graph(state, row) for row in range(len(graphs))]
    for graph, built, (_, order) in zip(graphs, again, derived, strict=True):
        assert built == graph.renumbered(order)
    scores = frame_scores(graphs, again)
    assert scores.combined.precision == scores.combined.recall == 1.0
    return {action.kind for action in table.items}


def test_every_frame_graph_of_the_corpus_is_rebuilt_by_its_actions(sentences: list[AnnotatedSentence]) -> None:
    kinds = check_that_actions_rebuild(event_sentences(sentences))
    assert kinds == {Kind.SHIFT, Kind.STOP, Kind.EVOKE, Kind.CONNECT, Kind.ASSIGN}  # no name comes twice in a sentence


def test_documents_take_all_eight_kinds_of_actions() -> None:
    assert check_that_actions_rebuild(document_records(builtin_documents(sizes=(80, 1, 1))["train"])) == set(Kind)


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({}, r"a list of events under \"events\", got nothing"),
        ({"events": [3]}, "an event as an object, got 3"),
        ({"events": [{"trigger": 9, "type": "A"}]}, r"0..1, as \"trigger\", got 9"),
        ({"events": [{"trigger": 0}]}, r"a name as the \"type\""),
        ({"events": [{"trigger": 0, "type": "A", "arguments": [[1, 1, "x"]]}]}, "0 <= start < end <= 2"),
        ({"events": [{"trigger": 0, "type": "A", "attributes": {"x": 1}}]}, "an object of texts"),
        ({"events": [], "sentences": [[0, 1]]}, "one after another from 0 to 2"),
        ({"events": [], "sentences": [[0, 3]]}, r"a list of \[start, end\] within 2"),
        ({"events": [], "coreference": [[[0, 1], [0, 1]]]}, r"\[0, 1\] again"),
        ({"events": [], "coreference": [[[0]]]}, "as lists of"),
        ({"events": [], "links": [[0, "After", 1]]}, "events in 0..-1"),
        ({"events": [], "heads": [1, 5]}, "2 heads in 0..2"),
        ({"events": [], "heads": [0, 1]}, "2 relations"),
        ({"events": [{"trigger": 0, "type": "A", "arguments": [[1, 2, "x"]]}]}, "an entity at the argument"),
    ],
)
def test_records_that_are_wrong_are_explained(extra: dict[str, Any], message: str) -> None:
    sentence = Sentence(("a", "b"), ("O", "O"), line=7, file="f.jsonl", extra=extra)
    read: Any = arcs_of if "heads" in extra else check_record if len(extra) > 1 else frame_graph_of
    with pytest.raises(DataError, match=message) as caught:
        read(sentence)
    assert "f.jsonl" in str(caught.value) and "7" in str(caught.value)
