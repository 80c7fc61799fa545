"""Documents of the built-in corpus: what is mentioned again, what refers to what, and the files."""

from __future__ import annotations

from pathlib import Path

import pytest

from trelliswork.data import Sentence, read_jsonl
from trelliswork.data.corpus import AnnotatedDocument, builtin_documents, document_records, write_documents
from trelliswork.data.corpus.documents import NOUNS
from trelliswork.data.events import (
    IMPLIED,
    all_events_of,
    arcs_of,
    check_record,
    coreference_of,
    entities_of,
    events_of,
    links_of,
    sentences_in,
)


@pytest.fixture(scope="module")
def documents() -> list[AnnotatedDocument]:
    return builtin_documents(sizes=(120, 1, 1))["train"]


@pytest.fixture(scope="module")
def records(documents: list[AnnotatedDocument]) -> list[Sentence]:
    return document_records(documents)


def text(record: Sentence, span: tuple[int, int]) -> str:
    return " ".join(record.words[slice(*span)])


def test_the_seed_decides_and_parts_share_no_document() -> None:
    first, again, other = (builtin_documents(seed, sizes=(20, 5, 5)) for seed in (0, 0, 1))
    texts = {part: [each.words for each in of_part] for part, of_part in first.items()}
    assert texts == {part: [each.words for each in of_part] for part, of_part in again.items()}
    assert texts["train"] != [each.words for each in other["train"]]
    assert len({words for part in texts.values() for words in part}) == 30


def test_a_document_by_hand(documents: list[AnnotatedDocument], records: list[Sentence]) -> None:
    """Fentron Group grew in Verona. The move amazed Yuki Sandton. Fentron owned Summit Holdings. ..."""
    record = records[0]
    assert text(record, (0, 12)) == "Fentron Group grew in Verona . The move amazed Yuki Sandton ."
    said = [(record.words[e.trigger], e.type, [text(record, a[:2]) for a in e.arguments]) for e in events_of(record)]
    assert said[:4] == [
        ("grew", "Expand", ["Fentron Group", "Verona"]), ("move", "Expand", []),
        ("amazed", "React", ["Yuki Sandton"]), ("owned", "Acquire", ["Fentron", "Summit Holdings"]),
    ]  # fmt: skip
    assert links_of(record)[0] == (2, "Cause", 1)  # the move amazed
    assert ["grew", "move"] in [[text(record, span) for span in same] for same in coreference_of(record) or ()]
    assert sentences_in(record)[:2] == [(0, 6), (6, 12)] and len(sentences_in(record)) == len(documents[0].sentences)


def test_mentions_of_one_thing_are_of_one_type_and_take_all_forms(records: list[Sentence]) -> None:
    forms = set()
    for record in records:
        types = {(i, j): kind for i, j, kind in entities_of(record)}
        types |= {(e.trigger, e.trigger + 1): e.type for e in events_of(record)}
        for same in coreference_of(record) or ():
            assert len({types[span] for span in same}) == 1 and len(same) > 1
            assert [span[0] for span in same] == sorted(span[0] for span in same)
            forms |= {text(record, span).lower() for span in same[1:]}
    assert {"he", "she", "it"} <= forms and any(form.startswith("the ") for form in forms)
    assert {"deal", "move", "visit"} <= forms


def test_nouns_for_events_can_be_decided_by_the_document_alone(records: list[Sentence]) -> None:
    types: dict[str, set[str]] = {}
    for record in records:
        for event in events_of(record):
            types.setdefault(record.words[event.trigger], set()).add(event.type)
    assert types["deal"] == {"Acquire", "Trade"} and types["move"] == {"Hire", "Join", "Expand"}
    assert set(NOUNS) >= types["deal"] | types["move"]


def test_arguments_and_arcs_stay_in_their_sentences_and_are_entities(records: list[Sentence]) -> None:
    for record in records:
        bounds, spans = sentences_in(record), {(i, j) for i, j, _ in entities_of(record)}
        where = {i: number for number, (start, end) in enumerate(bounds) for i in range(start, end)}
        for event in all_events_of(record):
            places = {where[i] for start, end, _ in event.arguments for i in (start, end - 1)}
            assert len(places | ({where[event.trigger]} if event.trigger != IMPLIED else set())) <= 1
            assert {(start, end) for start, end, _ in event.arguments} <= spans
        assert all(where[head] == where[dependent] for head, dependent, _ in arcs_of(record))
        assert record.extra["heads"].count(0) == len(bounds)


def test_what_is_implied_hangs_on_what_is_said(records: list[Sentence]) -> None:
    found = {"Employ": 0, "Group": 0}
    for record in records:
        events = all_events_of(record)
        for place, event in enumerate(events):
            if event.trigger == IMPLIED:
                found[event.type] += 1
                if event.type == "Employ":
                    assert [role for *_, role in event.arguments] == ["Employer", "Person"]
                else:
                    (source,) = [s for s, role, target in links_of(record) if (role, target) == ("Person", place)]
                    assert events[source].type == "Hire" and dict(event.attributes)["Size"] in record.words
    assert min(found.values()) > 5


def test_files_keep_documents(records: list[Sentence], documents: list[AnnotatedDocument], tmp_path: Path) -> None:
    (path,) = write_documents({"train": documents}, tmp_path)
    assert len(path.read_text(encoding="utf-8").splitlines()) == len(documents)
    for record, again in zip(records, read_jsonl(path), strict=True):
        assert check_record(again).extra == record.extra and again.words == record.words and again.tags == record.tags
