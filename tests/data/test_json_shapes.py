"""Records of Prodigy, Label Studio and Hugging Face, and members with other names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trelliswork.data import JsonFields, read_jsonl
from trelliswork.data.json_shapes import LabelledPiece, Place, Reading, shape_of
from trelliswork.errors import DataError, TrellisworkError, TrellisworkWarning
from trelliswork.text import RuleTokeniser

TEXT = "😀 Ann Lee left. She likes Gent!"
PRODIGY = {"text": TEXT, "spans": [{"start": 2, "end": 9, "label": "PER"}, {"start": 26, "end": 30, "label": "LOC"}]}
STUDIO = {
    "id": 3,
    "data": {"text": TEXT},
    "annotations": [
        {"result": [{"value": {"start": 0, "end": 1, "labels": ["X"]}}], "was_cancelled": True},
        {
            "result": [
                {
                    "value": {"start": 2, "end": 9, "text": "Ann Lee", "labels": ["PER"]},
                    "from_name": "ner",
                    "to_name": "t",
                },
                {"value": {"choices": ["nice"]}},
            ]
        },
    ],
}


def written(folder: Path, *records: Any) -> Path:
    path = folder / "a.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in records), encoding="utf-8")
    return path


def read(path: Path, *fields: str, with_tags: bool = True) -> list[Any]:
    return list(read_jsonl(path, with_tags=with_tags, fields=JsonFields.parse(fields), tokeniser=RuleTokeniser()))


def test_text_with_spans(tmp_path: Path) -> None:
    first, second = read(written(tmp_path, PRODIGY))
    assert first.words == ("😀", "Ann", "Lee", "left", ".") and first.tags == ("O", "B-PER", "I-PER", "O", "O")
    assert second.tags == ("O", "O", "B-LOC", "O") and second.line == 1
    assert [TEXT[start:end] for start, end in second.offsets] == list(second.words)


def test_tokens_of_the_record_are_taken(tmp_path: Path) -> None:
    tokens = [{"text": "AnnLee", "start": 0, "end": 6, "id": 0}, {"text": "x", "start": 6, "end": 7, "id": 1}]
    record = {"text": "AnnLeex", "tokens": tokens, "spans": [{"start": 0, "end": 6, "label": "PER"}]}
    (sentence,) = read(written(tmp_path, record))
    assert sentence.words == ("AnnLee", "x") and sentence.tags == ("B-PER", "O")


def test_label_studio(tmp_path: Path) -> None:
    first, second = read(written(tmp_path, STUDIO))
    assert first.tags == ("O", "B-PER", "I-PER", "O", "O") and set(second.tags) == {"O"}


def test_a_span_over_two_sentences_keeps_them_together(tmp_path: Path) -> None:
    record = {"text": "Ann left. Bob", "spans": [{"start": 4, "end": 13, "label": "X"}]}
    (sentence,) = read(written(tmp_path, record))
    assert sentence.tags == ("O", "B-X", "I-X", "I-X")


def test_spans_that_do_not_fall_on_tokens_are_told(tmp_path: Path) -> None:
    spans = [
        {"start": 1, "end": 5, "label": "PER"},
        {"start": 0, "end": 8, "label": "PER"},
        {"start": 5, "end": 8, "label": "X"},
    ]
    path = written(tmp_path, {"text": "Annie Lee", "spans": []}, {"text": "Annie Lee ", "spans": spans})
    with pytest.warns(TrellisworkWarning) as caught:
        read(path)
    (note,) = [str(each.message) for each in caught]
    assert note.startswith("3 of 3 spans overlap others or do not begin and end with a token, and are left out: ")
    assert "a.jsonl:2: 'nnie' (PER, 1 to 5) in 'Annie Lee '" in note


def test_white_space_around_a_span_does_not_matter(tmp_path: Path) -> None:
    (sentence,) = read(written(tmp_path, {"text": "Hi Ann !", "spans": [{"start": 2, "end": 7, "label": "PER"}]}))
    assert sentence.tags == ("O", "B-PER", "O")


def test_records_that_were_rejected_are_left_out(tmp_path: Path) -> None:
    path = written(tmp_path, PRODIGY | {"answer": "accept"}, PRODIGY | {"answer": "reject"})
    with pytest.warns(TrellisworkWarning, match="1 records with the answer reject or ignore"):
        assert len(read(path)) == 2


def test_numbers_as_tags_need_names(tmp_path: Path) -> None:
    path = written(tmp_path, {"tokens": ["Ann", "sings"], "ner_tags": [1, 0]})
    with pytest.raises(
        DataError, match=r'expected tags as text in "ner_tags", got numbers; say .* --field names=O,B-PER'
    ):
        read(path)
    (sentence,) = read(path, "names=O,B-PER")
    assert sentence.tags == ("B-PER", "O")
    with pytest.raises(DataError, match=r"expected numbers in 0..0"):
        read(path, "names=O")
    assert read(path, with_tags=False)[0].tags is None


def test_other_names(tmp_path: Path) -> None:
    (sentence,) = read(written(tmp_path, {"words": ["Ann"], "labels": ["X"]}), "tokens=words", "tags=labels")
    assert (sentence.words, sentence.tags) == (("Ann",), ("X",))
    record = {"body": "Ann", "entities": [{"start": 0, "end": 3, "label": "X"}]}
    (sentence,) = read(written(tmp_path, record), "text=body", "spans=entities")
    assert (sentence.words, sentence.tags) == (("Ann",), ("B-X",))


@pytest.mark.parametrize("given", ["words", "word=x", "tokens="])
def test_bad_fields(given: str) -> None:
    with pytest.raises(TrellisworkError, match="--field: expected one of tokens, tags, text, spans, names"):
        JsonFields.parse([given])


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ({"text": "Ann"}, 'expected the key "spans", got text'),
        ({"text": "Ann", "spans": [{"start": 2, "end": 1, "label": "X"}]}, "expected spans such as"),
        ({"text": "Ann", "spans": {}}, None),
        ({"text": "Ann", "spans": "x"}, 'expected a list in "spans", got a string'),
        ({"data": {"body": "Ann"}}, 'expected a string under "text" in "data"'),
    ],
)
def test_bad_records(tmp_path: Path, record: dict[str, Any], problem: str | None) -> None:
    if problem is None:
        assert read(written(tmp_path, record))[0].tags == ("O",)
        return
    with pytest.raises(DataError, match=r"a\.jsonl:1: ") as caught:
        read(written(tmp_path, record))
    assert problem in str(caught.value)


def answered(
    record: dict[str, Any], *fields: str, tags: list[list[str]], found: list[LabelledPiece] | None = None
) -> Any:
    line, place = json.dumps(record) + "\n", Place("a.jsonl", 1)
    shape = shape_of(record, place, Reading(JsonFields.parse(fields)))
    return json.loads(shape.put_answers(line, record, tags, found or []))


def test_answers_have_the_shape_of_the_record() -> None:
    assert answered({"tokens": ["a"], "ner_tags": [0]}, "names=O,B-X", tags=[["B-X"]])["ner_tags"] == [1]
    assert answered({"words": ["a"]}, "tokens=words", "tags=labels", tags=[["X"]])["labels"] == ["X"]
    piece = LabelledPiece(2, 9, "PER", {"probability": 0.5})
    assert answered(PRODIGY, tags=[], found=[piece])["spans"] == [
        {"start": 2, "end": 9, "label": "PER", "text": "Ann Lee", "probability": 0.5}
    ]
    tokens = [{"text": "Ann", "start": 2, "end": 5}, {"text": "Lee", "start": 6, "end": 9}]
    assert answered(PRODIGY | {"tokens": tokens}, tags=[], found=[piece])["spans"][0]["token_end"] == 1
    studio = answered(STUDIO, tags=[], found=[LabelledPiece(2, 9, "PER")])
    assert studio["annotations"] == STUDIO["annotations"]
    assert studio["predictions"][0]["result"] == [
        {"from_name": "ner", "to_name": "t", "type": "labels",
         "value": {"start": 2, "end": 9, "text": "Ann Lee", "labels": ["PER"]}}
    ]  # fmt: skip


# --- spans as lists: doccano, spaCy --------------------------------------------------------------------------------

SPANS = [[2, 9, "PER"], [26, 30, "LOC"]]
OFFSETS = [{"id": 1, "start_offset": 2, "end_offset": 9, "label": "PER"}]


@pytest.mark.parametrize("key", ["label", "labels", "entities", "spans"])
def test_spans_may_be_lists(tmp_path: Path, key: str) -> None:
    first, second = read(written(tmp_path, {"id": 7, "text": TEXT, key: SPANS}))
    assert first.tags == ("O", "B-PER", "I-PER", "O", "O") and second.tags == ("O", "O", "B-LOC", "O")
    assert first.extra == {"id": 7}


def test_doccano_with_relations(tmp_path: Path) -> None:
    record = {"text": TEXT, "entities": OFFSETS, "relations": []}
    assert read(written(tmp_path, record))[0].tags == ("O", "B-PER", "I-PER", "O", "O")
    found = answered(record, tags=[], found=[LabelledPiece(26, 30, "LOC")])["entities"]
    assert found == [{"start_offset": 26, "end_offset": 30, "label": "LOC", "text": "Gent"}]


@pytest.mark.parametrize("empty", [[], None])
def test_a_text_without_labels_has_none(tmp_path: Path, empty: Any) -> None:
    assert {tag for each in read(written(tmp_path, {"text": TEXT, "label": empty})) for tag in each.tags} == {"O"}


def test_pairs_of_spacy(tmp_path: Path) -> None:
    pair = [TEXT, {"entities": SPANS, "cats": {}}]
    path = tmp_path / "a.json"
    path.write_text(json.dumps([pair, ["Ann", {"entities": []}]], indent=1), encoding="utf-8")
    first, second, third = read(path)
    assert second.tags == ("O", "O", "B-LOC", "O") and third.tags == ("O",) and first.extra == {"cats": {}}
    assert [each.tags for each in read(written(tmp_path, pair))] == [first.tags, second.tags]


@pytest.mark.parametrize("key", ["label", "labels", "entities"])
def test_answers_to_lists_are_lists_and_probabilities_are_kept_too(key: str) -> None:
    record = {"text": TEXT, key: []}
    assert answered(record, tags=[], found=[LabelledPiece(2, 9, "PER")]) == {"text": TEXT, key: [[2, 9, "PER"]]}
    found = answered(record, tags=[], found=[LabelledPiece(2, 9, "PER", {"probability": 0.5})])
    assert found[key] == [[2, 9, "PER"]]
    assert found["spans"] == [{"start": 2, "end": 9, "label": "PER", "text": "Ann Lee", "probability": 0.5}]


def test_lists_come_before_the_spans_that_a_prediction_has_added(tmp_path: Path) -> None:
    added = {"text": "Ann Lee", "label": [[0, 3, "X"]], "spans": [{"start": 0, "end": 7, "label": "PER"}]}
    assert read(written(tmp_path, added))[0].tags == ("B-X", "O")
    found = answered(added, tags=[], found=[LabelledPiece(4, 7, "Y")])
    assert found["label"] == [[4, 7, "Y"]]
    assert found["spans"] == [{"start": 4, "end": 7, "label": "Y", "text": "Lee"}], "nothing old is left"
    kinds = {"text": "Ann Lee", "labels": ["PER", "LOC"], "spans": [{"start": 0, "end": 7, "label": "PER"}]}
    assert read(written(tmp_path, kinds))[0].tags == ("B-PER", "I-PER")


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ({"text": "Ann", "label": [[0, 4, "X"]]}, 'inside the text of 3 characters in "label", got 0 to 4 (X)'),
        ({"text": "Ann", "spans": [{"start": 2, "end": 9, "label": "X"}]}, "offsets count code points from 0"),
        ({"text": "Ann", "label": [[3, 1, "X"]]}, "expected spans such as"),
        ({"text": "Ann", "label": [[0, 3]]}, 'or [4, 8, "PER"] in "label", got a list [0, 3]'),
        ({"text": "Ann", "label": [[0, 3, "X", "more"]]}, "expected spans such as"),
        ({"text": "Ann", "label": ["positive"]}, "got a string 'positive'"),
        ({"text": "Ann", "label": "positive"}, 'expected the key "spans", got text, label'),
        (["Ann", [[0, 3, "X"]]], "expected a JSON object, got a list"),
    ],
)
def test_wrong_lists_are_one_sentence(tmp_path: Path, record: Any, problem: str) -> None:
    with pytest.raises(DataError, match=r"a\.jsonl:2: ") as caught:
        read(written(tmp_path, {"text": "Ann", "label": []}, record))
    assert problem in str(caught.value)
