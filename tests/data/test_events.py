"""Events of the built-in corpus: read from the derivation, over its entities."""

from __future__ import annotations

import pytest

from trelliswork.data.corpus import AnnotatedSentence, builtin_corpus
from trelliswork.data.corpus.events import EVENTS, Event
from trelliswork.tags.schemes import spans_of


@pytest.fixture(scope="module")
def sentences() -> list[AnnotatedSentence]:
    return builtin_corpus(sizes=(400, 1, 1))["train"]


def events_of(sentences: list[AnnotatedSentence], text: str) -> list[tuple[str, str, dict[str, str]]]:
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
    found = events_of(sentences, "Orion Inc acquired Barkcorp .")
    assert found == [("acquired", "Acquire", {"Buyer": "Orion Inc", "Target": "Barkcorp"})]


def test_a_time_in_front_and_an_apposition(sentences: list[AnnotatedSentence]) -> None:
    found = events_of(sentences, "By Sunday , Barksoft launched its latest Bristol .")
    assert found == [("launched", "Trade", {"Time": "Sunday", "Seller": "Barksoft", "Product": "Bristol"})]
    found = events_of(sentences, "Dorman , a comfortable violinist , visited Garrville on Monday .")
    assert found == [("visited", "Visit", {"Agent": "Dorman", "Destination": "Garrville", "Time": "Monday"})]


def test_the_subject_of_an_aim_is_that_of_the_clause_around_it(sentences: list[AnnotatedSentence]) -> None:
    found = events_of(sentences, "Bank of Pellton wants to dismiss 45 designers .")
    assert found == [("dismiss", "Hire", {"Employer": "Bank of Pellton"})]


def test_each_clause_has_its_own_arguments(sentences: list[AnnotatedSentence]) -> None:
    found = events_of(sentences, "When Ramsoft Ltd invested in Sandburg , Ramware Bank acquired Beacon .")
    assert found == [
        ("invested", "Expand", {"Organisation": "Ramsoft Ltd", "Place": "Sandburg"}),
        ("acquired", "Acquire", {"Buyer": "Ramware Bank", "Target": "Beacon"}),
    ]


def test_an_owner_is_no_argument(sentences: list[AnnotatedSentence]) -> None:
    found = events_of(sentences, "Sundial recalled its new Compass in Morgan 's mayor .")
    assert found == [("recalled", "Trade", {"Seller": "Sundial", "Product": "Compass"})]


def test_arguments_are_entities_and_triggers_verbs(sentences: list[AnnotatedSentence]) -> None:
    every = [(sentence, event) for sentence in sentences for event in sentence.events]
    assert {event.type for _, event in every} == {type_ for type_, *_ in EVENTS.values()}
    for sentence, event in every:
        assert isinstance(event, Event) and sentence.pos[event.trigger].startswith("VB")
        entities = {(start, end) for start, end, _ in spans_of(sentence.entities, "IOB2")}
        assert {(start, end) for start, end, _ in event.arguments} <= entities
