"""Input of unusual length: tagged in bounded memory, or refused with a sentence."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.test_bad_input import is_one_sentence
from tests.docs.documents import ROOT
from trelliswork import reading as files
from trelliswork.cli import answering as answers

MEASURED = """
import sys
from tests.memory import peak_megabytes
from trelliswork.cli.main import run
status = run(sys.argv[1:])
print(status, int(peak_megabytes()))
"""


def megabytes(*command: object) -> int:
    """The most memory that a command line takes."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *map(str, command)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=500,
    )
    status, peak = done.stdout.split()
    assert status == "0", done.stderr
    return int(peak)


def text_of(n: int, data: Path, path: Path) -> Path:
    """The words of the corpus, again and again, on one line."""
    words = [line.split()[0] for line in (data / "test.conll").read_text().splitlines() if line.strip()]
    path.write_text(" ".join((words * (n // len(words) + 1))[:n]) + "\n")
    return path


def test_confidences_of_a_long_text_take_little_memory(crf: Path, data: Path, tmp_path: Path) -> None:
    options = ["--text", "--confidence", "--out", tmp_path / "tagged"]
    short = megabytes("tag", crf, text_of(20, data, tmp_path / "short.txt"), *options)
    long = megabytes("tag", crf, text_of(20_000, data, tmp_path / "long.txt"), *options)
    assert (tmp_path / "tagged").read_text().count("B-") > 1000
    assert long - short < 500


@pytest.mark.parametrize("format", ["text", "conll", "jsonl", "csv"])
def test_a_line_that_is_far_too_long(cli: Cli, model: Path, tmp_path: Path, format: str) -> None:
    path = tmp_path / "long"
    path.write_bytes(
        (b'{"tokens": ["word"]}\n' if format == "jsonl" else b"word\n") + b"word " * (files.LONGEST_LINE // 5 + 1)
    )
    answer = cli("tag", model, path, "--from", format)
    assert is_one_sentence(answer)
    assert "long:2: expected lines of at most 10,000,000 bytes, got a longer one; break it up" in answer.err


def test_a_sentence_of_too_many_tokens(cli: Cli, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    path.write_text("a word\n" + "word " * (answers.MOST_TOKENS + 1))
    for option in ("--lines", "--pretokenised"):
        answer = cli("tag", model, path, option)
        assert is_one_sentence(answer)
        assert "long.txt:2: expected sentences of at most 100,000 tokens, got one of 100,001" in answer.err
