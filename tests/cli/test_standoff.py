"""Texts with spans from doccano, spaCy and BRAT through every command, and answers that have the text of each span."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from trelliswork.cli.main import run

Spans = list[tuple[int, int, str]]


def documents(n: int) -> list[tuple[str, Spans]]:
    """Texts with emoji, line breaks and names whose places count code points."""
    rng, found = random.Random(5), []
    for _ in range(n):
        text, spans = "", Spans()
        for _ in range(8):
            text += rng.choice(["", "😀 "])
            for name, label, after in (
                (rng.choice(["Ann Lee", "Zoë", "Bob"]), "PER", " lives in "),
                (rng.choice(["Gent", "New York", "Łódź"]), "LOC", rng.choice([".\n", ". "])),
            ):
                spans.append((len(text), len(text) + len(name), label))
                text += name + after
        found.append((text, spans))
    return found


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """brat/, doccano.jsonl and spacy.json: the same texts."""
    folder, texts = tmp_path_factory.mktemp("standoff"), documents(6)
    (folder / "brat").mkdir()
    for i, (text, spans) in enumerate(texts):
        ends = "\r\n" if i % 2 else "\n"  # as git may leave them
        (folder / "brat" / f"{i}.txt").write_bytes(text.replace("\n", ends).encode())
        lines = [f"T{t}\t{label} {start} {end}\t{text[start:end]}\n" for t, (start, end, label) in enumerate(spans, 1)]
        (folder / "brat" / f"{i}.ann").write_text("".join(lines) + "R1\tIn Arg1:T1 Arg2:T2\n", encoding="utf-8")
    doccano = [json.dumps({"id": i, "text": text, "label": spans}) for i, (text, spans) in enumerate(texts)]
    (folder / "doccano.jsonl").write_text("\n".join(doccano) + "\n", encoding="utf-8")
    spacy = json.dumps([[text, {"entities": spans}] for text, spans in texts], ensure_ascii=False, indent=2)
    (folder / "spacy.json").write_text(spacy, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def tagger(corpus: Path) -> Path:
    folder = corpus / "model"
    data = [str(corpus / "brat"), "--dev", str(corpus / "brat" / "*.ann")]
    assert run(["train", *data, "--model", "crf", "--out", str(folder)]) == 0
    return folder


@pytest.mark.parametrize("file", ["brat", "brat/*.ann", "brat/0.ann", "brat/0.txt", "doccano.jsonl", "spacy.json"])
def test_every_command_reads_them(cli: Cli, corpus: Path, tagger: Path, file: str) -> None:
    scores = cli("evaluate", tagger, corpus / file)
    assert scores.status == 0 and "100.00" in scores.out, scores.err
    assert ("1 relation" in scores.err or "6 relations" in scores.err) == file.startswith("brat")
    checked = cli("check", corpus / file)
    assert checked.status == 0 and "2: PER " in checked.out
    if file == "brat":
        place = re.escape(str(corpus / "brat"))
        assert re.search(rf"{place}/\d\.txt:\d+: the same sentence as line \d+ of {place}/\d\.txt", checked.out)


def gold(corpus: Path) -> list[tuple[str, Spans]]:
    return [
        (text, [tuple(span) for span in about["entities"]])
        for text, about in json.loads((corpus / "spacy.json").read_text(encoding="utf-8"))
    ]  # fmt: skip


def test_doccano_and_spacy_come_back_as_they_were_given(cli: Cli, corpus: Path, tagger: Path) -> None:
    given = [json.loads(line) for line in (corpus / "doccano.jsonl").read_text(encoding="utf-8").splitlines()]
    found = [json.loads(line) for line in cli("predict", tagger, corpus / "doccano.jsonl").out.splitlines()]
    assert found == given
    sure = [
        json.loads(line) for line in cli("predict", tagger, corpus / "doccano.jsonl", "--confidence").out.splitlines()
    ]
    for record, (text, spans) in zip(sure, gold(corpus), strict=True):
        assert [span["text"] for span in record["spans"]] == [text[start:end] for start, end, _ in spans]
        assert all(0 < span["probability"] <= 1 for span in record["spans"]) and record["label"]
    pairs = json.loads(cli("predict", tagger, corpus / "spacy.json").out)
    assert pairs == json.loads((corpus / "spacy.json").read_text(encoding="utf-8"))


def test_brat_is_answered_in_json_lines_with_the_document(cli: Cli, corpus: Path, tagger: Path, tmp_path: Path) -> None:
    assert cli("predict", tagger, corpus / "brat", "--out", tmp_path / "all.jsonl").status == 0
    records = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text(encoding="utf-8").splitlines()]
    for i, (_, spans) in enumerate(gold(corpus)):
        written = (corpus / "brat" / f"{i}.txt").read_bytes().decode()
        answers = [span for each in records if each["document"] == str(i) for span in each["spans"]]
        assert [span["label"] for span in answers] == [label for *_, label in spans]
        assert [written[span["start_char"] : span["end_char"]] for span in answers] == [
            each["text"] for each in answers
        ]
    assert cli("predict", tagger, corpus / "brat" / "*.ann", "--out", f"{tmp_path}/ann/").status == 0
    assert sorted(path.name for path in (tmp_path / "ann").glob("*")) == [f"{i}.jsonl" for i in range(6)]
    several = cli("predict", tagger, corpus / "brat", "--out", f"{tmp_path}/each/")
    assert several.status == 0 and sorted(path.name for path in (tmp_path / "each").glob("*")) == [
        f"{i}.jsonl" for i in range(6)
    ]


def test_wrong_places_are_one_sentence_and_status_2(cli: Cli, tagger: Path, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "Ann", "label": [[0, 9, "PER"]]}\n', encoding="utf-8")
    (tmp_path / "a.txt").write_text("Ann", encoding="utf-8")
    (tmp_path / "a.ann").write_text("T1\tPER 0 9\tAnn\n", encoding="utf-8")
    for file in ("a.jsonl", "a.ann"):
        for command in (("evaluate", tagger), ("check",)):
            answer: Any = cli(*command, tmp_path / file)
            assert answer.status == 2 and f"{file}:1: expected" in answer.err and "code points" in answer.err
            assert len(answer.err.splitlines()) == 1
