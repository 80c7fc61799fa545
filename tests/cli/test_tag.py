"""`tag`: inputs, outputs, confidences, alternatives and pins."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from trelliswork.cli.answering import Question, answers
from trelliswork.data import Sentence, read_conll
from trelliswork.models import Tagger


def rows_of(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]


def test_tag_agrees_with_the_model_and_reads_back(cli: Cli, model: Path, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "tagged.conll"
    assert cli("tag", model, data / "test.conll", "--out", out) == (0, "", "")
    sentences = [Sentence(each.words) for each in read_conll(data / "test.conll")]
    read = list(read_conll(out))
    assert [each.words for each in read] == [each.words for each in sentences]
    assert [list(each.tags or ()) for each in read] == Tagger.load(model).tag(sentences)


def test_words_alone_are_enough(cli: Cli, model: Path, tmp_path: Path, text_file: Path) -> None:
    words = tmp_path / "words.conll"
    words.write_text("Jordan\nvisited\nParis\n.\n\nDr\nMay\nLincoln\nsmiled\nin\nOslo\n.\n\n")
    assert cli("tag", model, words).out == cli("tag", model, text_file, "--pretokenised").out


def test_confidence_columns_are_the_exact_probabilities(cli: Cli, model: Path, text_file: Path) -> None:
    rows = rows_of(cli("tag", model, text_file, "--pretokenised", "--confidence").out)
    sentences = [Sentence(tuple(line.split())) for line in text_file.read_text().splitlines() if line]
    found = Tagger.load(model).confidences(sentences)
    assert [float(row[2]) for row in rows] == pytest.approx([p for each in found for p in each.tokens], abs=1e-4)
    inside = [row[3] != "_" for row in rows]
    covered = [any(s.start <= i < s.end for s in each.spans) for each in found for i in range(len(each.tags))]
    assert inside == covered and any(inside)


def test_jsonl_in_and_out(cli: Cli, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "new.jsonl"
    path.write_text('{"id": 7, "tokens": ["Dr", "May", "Lincoln", "smiled"]}\n')
    answer = cli("tag", model, path, "--format", "jsonl", "--confidence", "--top-k", "2", "--pin", "2=B-PER")
    record = json.loads(answer.out)
    assert record["id"] == 7, "what else a record says goes out as it came in"
    assert record["tokens"] == ["Dr", "May", "Lincoln", "smiled"] and len(record["confidences"]) == 4
    best, second = record["analyses"]
    assert best["tags"] == record["tags"] and best["probability"] >= second["probability"]
    assert record["spans"]
    for span in record["spans"]:
        assert set(span) == {"start", "end", "label", "text", "probability"}
        assert span["text"] == " ".join(record["tokens"][span["start"] : span["end"]])


def test_a_file_with_spaces_stays_one(cli: Cli, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "spaced.conll"
    path.write_text("Jordan x y O\nsings x y O\n")
    rows = [line.split(" ") for line in cli("tag", model, path).out.splitlines()]
    assert [row[:3] for row in rows] == [["Jordan", "x", "y"], ["sings", "x", "y"]]
    assert [row[3] for row in rows] == Tagger.load(model).tag(["Jordan", "sings"])


def test_text_that_is_read_as_columns_is_refused(cli: Cli, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "new.txt"
    path.write_text("Jordan sings in Paris every day .\n")
    refused = cli("tag", model, path)
    assert (refused.status, refused.out) == (2, "") and "add --text" in refused.err
    assert "add --text" not in cli("tag", model, path, "--text").err
    assert "add --text" not in cli("tag", model, path, "--from", "conll").err


def test_top_k_blocks_carry_their_probability(cli: Cli, model: Path, text_file: Path) -> None:
    lines = cli("tag", model, text_file, "--pretokenised", "--top-k", "3", "--confidence").out.splitlines()
    headings = [line for line in lines if line.startswith("#")]
    assert [heading.split(":")[0] for heading in headings] == [f"# analysis {k} of 3" for k in (1, 2, 3)] * 2
    assert len({len(row) for row in rows_of("\n".join(lines))}) == 1


def test_pretty_marks_spans_with_percentages(cli: Cli, model: Path, text_file: Path) -> None:
    answer = cli("tag", model, text_file, "--text", "--format", "pretty", "--confidence", "--top-k", "2")
    assert answer.status == 0
    assert "%" in answer.out and "  1. " in answer.out and "\x1b" not in answer.out


def test_pins_hold_for_every_sentence_or_for_one(cli: Cli, model: Path, text_file: Path) -> None:
    everywhere = rows_of(cli("tag", model, text_file, "--pretokenised", "--pin", "1=B-LOC").out)
    assert [everywhere[0][1], everywhere[4][1]] == ["B-LOC", "B-LOC"]
    free = rows_of(cli("tag", model, text_file, "--pretokenised").out)
    once = rows_of(cli("tag", model, text_file, "--pretokenised", "--pin", "2:1=B-LOC", "--pin", "2:2=I-LOC").out)
    assert once[:4] == free[:4]
    assert [row[1] for row in once[4:6]] == ["B-LOC", "I-LOC"]


@pytest.mark.parametrize(
    ("pins", "sentence"),
    [
        (["oops"], "--pin: expected TOKEN=TAG or SENTENCE:TOKEN=TAG, counted from 1"),
        (["0=O"], "--pin: expected TOKEN=TAG or SENTENCE:TOKEN=TAG, counted from 1"),
        (["1=B-FOO"], "--pin 1=B-FOO: expected one of the tags O, B-DATE"),
        (["6=O"], "new.txt:1: --pin 6=O names token 6, the sentence has 4; pin one of those"),
        (["3:1=O"], "new.txt: --pin 3:1=O names sentence 3, the input has 2; correct the pin"),
        (["1=O", "1=B-PER"], "--pin 1=B-PER: token 1 is already pinned to O; drop one"),
        (["2:1=O", "2:2=I-PER"], "new.txt:3: no analysis agrees with the pins 2:1=O, 2:2=I-PER; drop one of them"),
    ],
)
def test_bad_pins_are_one_sentence(cli: Cli, model: Path, text_file: Path, pins: list[str], sentence: str) -> None:
    out = text_file.with_name("out.conll")
    options = [part for pin in pins for part in ("--pin", pin)]
    answer = cli("tag", model, text_file, "--text", "--out", out, *options)
    assert answer.status == 2
    assert sentence in answer.err and answer.err.count("\n") == 1
    assert sorted(path.name for path in text_file.parent.iterdir()) == ["new.txt"]


def test_standard_input_as_text(cli: Cli, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"Jordan visited Paris .\n")))
    assert len(rows_of(cli("tag", model, "-", "--from", "text").out)) == 4


def test_batches_are_read_as_they_are_needed(model: Path) -> None:
    taken = 0

    def endless() -> object:
        nonlocal taken
        while True:
            taken += 1
            yield Sentence(("Jordan", "sings"))

    stream = answers(Tagger.load(model), endless(), Question(), batch=4)  # type: ignore[arg-type]
    for _ in range(6):
        next(stream)
    assert taken == 8


def test_a_closed_pipe_is_quiet(crf: Path, data: Path) -> None:
    command = [sys.executable, "-m", "trelliswork", "tag", str(crf), str(data / "train.conll")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait() == 141


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="this system has no /dev/stdout")
def test_standard_output_by_its_name(cli: Cli, crf: Path, data: Path) -> None:
    command = ["tag", str(crf), str(data / "test.conll")]
    named = subprocess.run(
        [sys.executable, "-m", "trelliswork", *command, "--out", "/dev/stdout"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert named == cli(*command).out != ""
