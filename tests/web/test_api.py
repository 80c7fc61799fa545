"""The API against the library: what the server answers is what `model.predict` says."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

import trelliswork as tw
from tests.web.conftest import Served, sentences
from trelliswork.cli.main import run
from trelliswork.web import Client, ServerError
from trelliswork.web.describing import describe_model

TEXT = "Ann met Jordan in New York. May left Chase."


@pytest.fixture(scope="module")
def model(tagger: Path) -> Any:
    return tw.load(tagger)


def parts_of(answer: Any) -> list[dict[str, Any]]:
    return [{"start": p.start, "end": p.end, "label": p.label, "probability": p.probability} for p in answer.parts]


def test_answers_are_those_of_the_library(client: Client, model: Any) -> None:
    found = client.predict(text=TEXT, top_k=3, choices=4)["results"][0]["sentences"]
    answers, choices = model.predict(TEXT, top_k=3), model.choices(TEXT, most=4)
    assert [each["value"] for each in found] == [each.value for each in answers]
    for sentence, answer, wanted in zip(found, answers, choices, strict=True):
        assert sentence["probability"] == pytest.approx(answer.probability, rel=1e-9)
        assert sentence["tokens"] == list(answer.inputs)
        assert sentence["offsets"] == [list(each) for each in answer.offsets]
        assert [TEXT[a:b] for a, b in sentence["offsets"]] == sentence["tokens"]
        for part, expected in zip(sentence["parts"], parts_of(answer), strict=True):
            assert part == {**expected, "probability": pytest.approx(expected["probability"], rel=1e-9)}
        others = [(each["value"], each["probability"]) for each in sentence["alternatives"]]
        assert others == [(each.value, pytest.approx(each.probability, rel=1e-9)) for each in answer.alternatives]
        for part, expected in zip(sentence["choices"], wanted, strict=True):
            assert part["entropy"] == pytest.approx(expected.entropy, rel=1e-9, abs=1e-12)
            assert [each["label"] for each in part["choices"]] == [each.label for each in expected.choices]
        for span in sentence["spans"]:
            assert (
                TEXT[span["start_char"] : span["end_char"]].split() == sentence["tokens"][span["start"] : span["end"]]
            )


@pytest.mark.parametrize(
    ("pins", "library"),
    [
        ([{"token": 2, "value": "B-LOC"}], {2: "B-LOC"}),
        ([{"token": 0, "value": "B-ORG"}, {"token": 1, "value": "O"}], {0: "B-ORG", 1: "O"}),
        ([{"token": 2, "value": "O|B-LOC"}], {2: "O|B-LOC"}),
        ([{"start": 4, "end": 6, "label": "ORG"}], {4: "B-ORG", 5: "I-ORG", 6: "O|B-LOC|B-ORG|B-PER|I-LOC"}),
    ],
)
def test_pins_change_probabilities_as_the_library_does(
    client: Client, model: Any, pins: list[dict[str, Any]], library: dict[int, str]
) -> None:
    found = client.predict(text=TEXT, top_k=2, pins=pins)["results"][0]["sentences"]
    first, free = model.predict(TEXT, top_k=2, pins=[library, {}])[0], model.predict(TEXT, top_k=2)[0]
    assert found[0]["value"] == first.value
    assert found[0]["probability"] == pytest.approx(first.probability, rel=1e-9)
    assert [each["probability"] for each in found[0]["parts"]] == pytest.approx([p.probability for p in first.parts])
    assert [each["probability"] for each in found[0]["parts"]] != pytest.approx([p.probability for p in free.parts])


def test_a_span_pin_is_the_condition_that_exactly_this_span_is_there(client: Client, model: Any) -> None:
    words = ["Ann", "saw", "New", "York", "."]
    every = client.predict(tokens=[words], top_k=100)["results"][0]["sentences"][0]["alternatives"]
    span = {"start": 2, "end": 4, "label": "LOC"}
    with_it = [each for each in every if span in each["spans"]]
    total = sum(each["probability"] for each in with_it)
    pinned = client.predict(tokens=[words], top_k=100, pins=[span])["results"][0]["sentences"][0]
    assert pinned["alternatives"][0]["probability"] == pytest.approx(with_it[0]["probability"] / total, rel=1e-2)
    assert all(span in each["spans"] for each in pinned["alternatives"])
    assert {"start": 2, "end": 4, "choices": [{"label": "LOC", "probability": 1.0}]} in (
        client.predict(tokens=[words], choices=1, pins=[span])["results"][0]["sentences"][0]["span_choices"]
    )


def test_many_inputs_at_once_are_answered_in_order(client: Client, model: Any) -> None:
    texts = ["Ann met Bob.", "", "May left Rome. Bob saw Ann.", "  "]
    found = client.predict(texts=texts)["results"]
    assert [[each["tokens"] for each in result["sentences"]] for result in found] == [
        [list(each.inputs) for each in model.predict(text)] for text in texts
    ]
    rows = [list(each.words) for each in sentences(50, seed=9)]
    tags = [each["sentences"][0]["value"] for each in client.predict(tokens=rows, confidences=False)["results"]]
    assert tags == [answer.value for answer in model.predict(rows, top_k=0, confidence=False)]


def test_clients_side_by_side_get_their_own_answers(server: Served, model: Any) -> None:
    rows = [list(each.words) for each in sentences(40, seed=5)]
    wanted = [answer.value for answer in model.predict(rows, top_k=0, confidence=False)]
    wrong: list[int] = []

    def ask(first: int) -> None:
        with Client(server.address) as mine:
            for i in range(first, len(rows), 8):
                good = i % 3 or mine.predict(tokens=[rows[i]], pins=[{"token": 0, "value": "B-PER"}])
                found = mine.predict(tokens=[rows[i]], confidences=bool(i % 2))["results"][0]["sentences"][0]
                if not good or found["value"] != wanted[i]:
                    wrong.append(i)

    threads = [threading.Thread(target=ask, args=(first,)) for first in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert wrong == []


def test_expected_numbers_are_those_of_the_library(client: Client, model: Any) -> None:
    pins = [{"token": 2, "value": "B-LOC"}]
    found = client.predict(text=TEXT, expected=True, pins=pins)["results"][0]["sentences"]
    wanted = model.expected_counts(TEXT, pins=[{2: "B-LOC"}, {}])
    assert [each["expected"] for each in found] == [[count.record() for count in row] for row in wanted]
    assert {each["label"] for each in found[0]["expected"]} == {"PER", "LOC", "ORG"}
    assert "expected" not in client.predict(text=TEXT)["results"][0]["sentences"][0]
    assert client.predict(text=TEXT, expected=False) == client.predict(text=TEXT)


def test_pictures_votes_and_the_list_of_models(client: Client, model: Any) -> None:
    about = client.models()[0]
    assert (about["name"], about["answers"], about["search"]) == ("ner", "spans", "exact")
    assert about["can"] == {
        "pins": True, "choices": True, "top_k": True, "explain": True, "text": True, "teach": True,
        "chains": False, "expected": True,
    }  # fmt: skip
    assert set(about["labels"]) == set(model.labels.data_tags)
    drawn = client.draw(text=TEXT)["results"][0]["sentences"]
    assert [each["svg"] for each in drawn] == [each.draw().svg for each in model.predict(TEXT, top_k=0)]
    one = client.draw(text=TEXT, picture="trellis", sentence=1)["results"][0]["sentences"]
    assert len(one) == 1 and "Trellis of: May left Chase ." in one[0]["svg"]
    votes = client.explain(text="Ann met Bob.")["results"][0]["sentences"][0]["votes"]
    assert (
        votes[0]["votes"][0]["score"] == model.explain(model.sentences_of("Ann met Bob."))[0].tokens[0].votes[0].score
    )
    assert any(vote["words"].startswith("previous tag = ") for vote in votes[1]["votes"] + votes[1]["rival_votes"])


def test_examples_are_sentences_of_the_training_file(tmp_path: Path, tagger: Path) -> None:
    """The page offers texts in the language of the model; a model that keeps none, such as an older one, has none."""
    names = "Anke\tB-PER\nwoont\tO\nin\tO\nGent\tB-LOC\n.\tO\n\nHet\tO\nis\tO\nlaat\tO\n.\tO\n\n"
    (tmp_path / "nl.conll").write_text(names + "Ja\tO\n\n", encoding="utf-8")
    train = ["train", str(tmp_path / "nl.conll"), "--dev", str(tmp_path / "nl.conll"), "--quiet", "--model", "hmm"]
    assert run([*train, "--out", str(tmp_path / "nl")]) == 0
    assert describe_model("nl", "", tw.load(tmp_path / "nl"))["examples"] == ["Anke woont in Gent .", "Het is laat ."]
    assert describe_model("ner", "", tw.load(tagger))["examples"] == []
    lines = "".join(f"{word}\t{word.upper()}\n" for word in ("huis", "boom", "vis", "roos"))
    (tmp_path / "g2p.tsv").write_text(lines, encoding="utf-8")
    pairs = ["train", str(tmp_path / "g2p.tsv"), "--dev", str(tmp_path / "g2p.tsv"), "--quiet", "--model", "pair-ngram"]
    assert run([*pairs, "--out", str(tmp_path / "g2p")]) == 0
    assert describe_model("g2p", "", tw.load(tmp_path / "g2p"))["examples"] == ["huis", "boom", "vis"]


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        ({}, 422, "expected one of text, texts, tokens; got none of them"),
        ({"text": "a", "texts": ["a"]}, 422, "got text and texts"),
        ({"text": 3}, 422, "body.text: expected a string, got 3"),
        ({"text": "a", "top_k": True}, 422, "body.top_k: expected a whole number in 0..100, got True"),
        ({"text": "a", "topk": 1}, 422, "got the unknown member 'topk'"),
        ({"text": "a", "model": "x"}, 404, "expected one of the models ner; got 'x'"),
        ({"text": "a\ud800"}, 422, "half a surrogate pair"),
        ({"text": "a" * 100_001}, 413, "at most 100,000 characters, got 100,001"),
        ({"texts": ["a"] * 1025}, 413, "at most 1,024 entries"),
        ({"tokens": [["a", ""]]}, 422, "body.tokens[0][1]: expected a string that is not empty"),
        ({"text": "a", "pins": [{"value": "B-XX"}]}, 422, "body.pins[0]: expected one of the tags"),
        ({"text": "a", "pins": [{"token": 1, "value": "O"}]}, 422, "expected one of the 1 tokens, from 0; got 1"),
        ({"text": "a", "pins": [{"sentence": 1, "value": "O"}]}, 422, "expected one of the 1 sentences, from 0; got 1"),
        ({"text": "a b", "pins": [{"value": "O"}, {"value": "B-PER"}]}, 422, "pinned to something else already"),
        ({"text": "a", "pins": [{"value": "I-LOC"}]}, 422, "no answer agrees with the pins"),
        ({"text": "a", "pins": [{"start": 0, "end": 2, "label": "PER"}]}, 422, "within 0..1; got 0..2"),
        ({"tokens": [["a"]], "columns": [[["x", "y"]]]}, 422, "expected 1 entries in column 0"),
    ],
)
def test_bad_requests_get_a_sentence(client: Client, body: Any, status: int, sentence: str) -> None:
    with pytest.raises(ServerError) as error:
        client.predict(**body)
    assert error.value.status == status
    assert sentence in str(error.value)


def test_the_documents_are_made_of_the_declarations(client: Client, server: Served) -> None:
    document = client.get("/openapi.json")
    schema = document["paths"]["/v1/predict"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert schema["properties"]["top_k"] == {
        "type": "integer", "minimum": 0, "maximum": 100, "default": 0,
        "description": "How many of the best answers to list as `alternatives`.",
    }  # fmt: skip
    assert schema["oneOf"] == [{"required": [name]} for name in ("text", "texts", "tokens")]
    assert "/v1/teach/decide" in document["paths"]
    assert json.loads(json.dumps(document)) == document
