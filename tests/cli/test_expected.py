"""`predict --expected`: how many spans of a label to expect in a file, with the error bar."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import trelliswork as tw
from tests.cli.conftest import Cli
from trelliswork.cli.main import run
from trelliswork.data import Sentence, read_conll
from trelliswork.models.expected_counts import total_counts

TRAIN = "Ann B-PER\nLee I-PER\nsings O\n\nBob B-PER\nleft O\nRome B-LOC\n\n" * 3


@pytest.fixture(scope="module")
def crf(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A model and a file."""
    folder = tmp_path_factory.mktemp("expected")
    file = folder / "train.conll"
    file.write_text(TRAIN)
    assert run(["train", str(file), "--model", "crf", "--max-iterations", "3", "--out", str(folder / "crf")]) == 0
    return folder / "crf", file


def test_a_line_for_each_label(cli: Cli, crf: tuple[Path, Path], tmp_path: Path) -> None:
    model, file = crf
    given = [Sentence(each.words) for each in read_conll(file)]
    totals = total_counts(tw.load(model).expected_counts(given, ["LOC", "PER"]))
    lines = [f"{each} in {file}" for each in totals]
    answer = cli("predict", model, file, "--expected", "LOC", "--expected", "PER")
    assert (answer.status, answer.out.splitlines()) == (0, lines)
    assert cli("predict", model, file, "--expected", "PER", "--out", tmp_path / "n.txt").status == 0
    assert (tmp_path / "n.txt").read_text() == f"{lines[1]}\n"


def test_json_counts_in_each_sentence(cli: Cli, crf: tuple[Path, Path]) -> None:
    model, file = crf
    pinned = "--pin", "1:1=B-LOC"
    rows = [
        json.loads(line)
        for line in cli("predict", model, file, "--expected", "PER", "--format", "jsonl", *pinned).out.splitlines()
    ]
    given = [Sentence(each.words) for each in read_conll(file)]
    counts = tw.load(model).expected_counts(given, ["PER"], pins=[{0: "B-LOC"}, *[{}] * 5])
    assert [row["tokens"] for row in rows] == [list(each.words) for each in given]
    assert [row["expected"] for row in rows] == [[each.record() for each in row] for row in counts]
    assert rows[0]["expected"] != rows[2]["expected"], "the pin is on the first sentence alone"


def test_raw_text(cli: Cli, crf: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "new.txt").write_text("Ann sings. Bob left Rome.")
    found = cli("predict", crf[0], tmp_path / "new.txt", "--text", "--expected", "PER")
    total = total_counts(tw.load(crf[0]).expected_counts("Ann sings. Bob left Rome.", ["PER"]))[0]
    assert found.out == f"{total} in {tmp_path / 'new.txt'}\n"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--expected", "PRE"], "expected one of the labels PER, LOC; got 'PRE'; did you mean PER?"),
        (["--expected", "PER", "--confidence"], "leave out --confidence, --top-k and --threshold"),
        (["--expected", "PER", "--top-k", "2"], "leave out --confidence, --top-k and --threshold"),
        (["--expected", "PER", "--format", "conll"], "writes a line for each label, or --format jsonl; got conll"),
        (["--expected", "PER", "--pin", "1=I-PER"], "no analysis agrees with the pins"),
    ],
)
def test_what_cannot_be_asked_is_a_sentence(cli: Cli, crf: tuple[Path, Path], options: list[str], problem: str) -> None:
    answer = cli("predict", *crf, *options)
    assert answer.status == 2 and answer.out == "" and problem in answer.err and "Traceback" not in answer.err


def test_several_files_are_refused(cli: Cli, crf: tuple[Path, Path], tmp_path: Path) -> None:
    other = tmp_path / "other.conll"
    other.write_text(TRAIN)
    answer = cli("predict", *crf, other, "--expected", "PER", "--out", tmp_path / "out")
    assert answer.status == 2 and "--expected counts in one FILE" in answer.err


def test_a_model_without_a_distribution_is_refused(cli: Cli, crf: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("ab\tA B\nba\tB A\nbb\tB B\n")
    assert cli("train", tmp_path / "pairs.tsv", "--model", "pair-ngram", "--out", tmp_path / "pairs").status == 0
    answer = cli("predict", tmp_path / "pairs", crf[1], "--expected", "A")
    assert answer.status == 2
    assert "--expected needs a model with an exact distribution over its answers, such as a CRF; got a P" in answer.err
