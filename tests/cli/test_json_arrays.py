"""`.json` files that are an array of records, in and out; places of words that CoNLL-U has in `# text`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from trelliswork.data import json_text, read_conll, read_jsonl

RECORDS = [
    {"id": 1.50, "tokens": ["Jordan", "visited", "Paris"], "note": "a\nb, [c] {d}"},
    {"tokens": ["Stop"], "id": "x"},
    {"id": 3, "text": "Ann left Oslo. Why?"},
]


@pytest.mark.parametrize("indent", [None, 2])
def test_an_array_comes_back_as_an_array(cli: Cli, model: Path, tmp_path: Path, indent: int | None) -> None:
    array, lines = tmp_path / "a.json", tmp_path / "a.jsonl"
    array.write_text(json.dumps(RECORDS, indent=indent), encoding="utf-8")
    lines.write_text("".join(json.dumps(each) + "\n" for each in RECORDS), encoding="utf-8")
    answer = cli("predict", model, array)
    assert answer.status == 0, answer.err
    found = json.loads(answer.out)
    assert found == [json.loads(line) for line in cli("predict", model, lines).out.splitlines()]
    assert [each["id"] for each in found] == [1.5, "x", 3] and found[0]["note"] == RECORDS[0]["note"]
    assert '"id": 1.5,' in answer.out

    assert cli("predict", model, array, "--out", tmp_path / "b.jsonl").status == 0
    assert (tmp_path / "b.jsonl").read_text().count("\n") == 3
    assert cli("predict", model, lines, "--out", tmp_path / "b.json").status == 0
    assert json.loads((tmp_path / "b.json").read_text()) == found


def test_any_input_can_become_an_array(cli: Cli, model: Path, text_file: Path) -> None:
    found = json.loads(cli("predict", model, text_file, "--text", "--format", "json").out)
    lines = cli("predict", model, text_file, "--text", "--format", "jsonl").out.splitlines()
    assert found == [json.loads(line) for line in lines] and len(found) == 2


def test_a_model_is_trained_and_scored_on_an_array(cli: Cli, data: Path, tmp_path: Path) -> None:
    sentences = list(read_conll(data / "dev.conll"))
    array = tmp_path / "a.json"
    array.write_text(f"[{','.join(map(json_text, sentences))}]", encoding="utf-8")
    assert [(each.words, each.tags) for each in read_jsonl(array)] == [(each.words, each.tags) for each in sentences]
    train = cli("train", array, "--model", "naive-bayes", "--out", tmp_path / "m", "--quiet")
    assert train.status == 0, train.err
    assert cli("evaluate", tmp_path / "m", array).status == 0


def test_json_that_is_lines_is_read_as_lines(cli: Cli, model: Path, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"tokens": ["Ann"]}\n{"tokens": ["Bob"]}\n')
    assert cli("predict", model, tmp_path / "a.json").out.count("\n") == 2


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[\n{"tokens": ["a"]},\n{"tokens": "a"]\n]', "a.json:3:"),
        ("[1, 2]", "expected a JSON object, got a number"),
        ("[]", "expected at least one sentence, got none"),
        ('[{"tokens": ["a"]}', "not valid JSON"),
    ],
)
def test_broken_arrays(cli: Cli, model: Path, tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "a.json").write_text(text)
    answer = cli("predict", model, tmp_path / "a.json")
    assert answer.status == 2 and problem in answer.err and answer.err.count("\n") == 1, answer.err


CONLLU = """# sent_id = 1
# text = 😀 Ann don't  go (to Oslo).
1	😀	_	_	_	_	_	_	_	_
2	Ann	_	_	_	_	_	_	_	_
3-4	don't	_	_	_	_	_	_	_	_
3	do	_	_	_	_	_	_	_	_
4	not	_	_	_	_	_	_	_	_
5	go	_	_	_	_	_	_	_	_
5.1	went	_	_	_	_	_	_	_	_
6	(	_	_	_	_	_	_	_	_
7	to	_	_	_	_	_	_	_	_
8	Oslo	_	_	_	_	_	_	_	_
9	)	_	_	_	_	_	_	_	_
10	.	_	_	_	_	_	_	_	_

# text = something else
1	Why	_	_	_	_	_	_	_	_

1	So	_	_	_	_	_	_	_	_
"""


def test_places_of_the_words_of_conllu(cli: Cli, model: Path, tmp_path: Path) -> None:
    (tmp_path / "a.conllu").write_text(CONLLU, encoding="utf-8")
    answer = cli("predict", model, tmp_path / "a.conllu", "--format", "jsonl", "--confidence")
    assert answer.status == 0, answer.err
    first, second, third = map(json.loads, answer.out.splitlines())
    text = first["text"]
    assert text == "😀 Ann don't  go (to Oslo)."
    cut = [text[start:end] for start, end in first["offsets"]]
    assert cut == ["😀", "Ann", "don't", "don't", "go", "(", "to", "Oslo", ")", "."]
    for span in first["spans"]:
        words = first["tokens"][span["start"] : span["end"]]
        assert text[span["start_char"] : span["end_char"]].split()[-1] == words[-1]
    assert "offsets" not in second and "text" not in second, "the text is that of another sentence"
    assert "offsets" not in third
    assert cli("predict", model, tmp_path / "a.conllu", "--format", "csv").out.startswith("sentence,word,tag\n")
    kept = cli("predict", model, tmp_path / "a.conllu").out
    assert [line for line in kept.splitlines() if line.startswith("#")] == [
        line for line in CONLLU.splitlines() if line.startswith("#")
    ]
