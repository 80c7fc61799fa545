"""A command line to call, a small corpus on disk, and a tagger trained on it once."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from trelliswork.cli import compiling
from trelliswork.cli.main import run
from trelliswork.data.corpus import builtin_corpus, write_corpus

SMALL = ["--hidden", "32", "--word-dim", "16", "--affix-dim", "6", "--column-dim", "6"]
WINDOW = ["--model", "window", *SMALL]


class Answer(NamedTuple):
    """What a command line left behind."""

    status: int
    out: str
    err: str


Cli = Callable[..., Answer]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Run a command in this process."""

    def call(*arguments: object) -> Answer:
        capsys.readouterr()
        status = run([str(argument) for argument in arguments])
        return Answer(status, *capsys.readouterr())

    return call


@pytest.fixture(autouse=True)
def no_word_of_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    """What commands say is compared, whether kernels are compiled already or not."""
    monkeypatch.setattr(compiling, "PATIENCE", math.inf)


@pytest.fixture(scope="package")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """train.conll, dev.conll and test.conll: word, part of speech, chunk, entity."""
    folder = tmp_path_factory.mktemp("data")
    write_corpus(builtin_corpus(sizes=(150, 30, 30)), folder)
    return folder


@pytest.fixture(scope="package")
def model(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tagger of entities by word alone."""
    folder = tmp_path_factory.mktemp("models") / "ner"
    command = ["train", data / "train.conll", "--dev", data / "dev.conll", "--out", folder, "--quiet"]
    assert run([*map(str, command), "--feature-columns", "none", "--epochs", "15", "--lr", "0.01", *WINDOW]) == 0
    return folder


@pytest.fixture(scope="package")
def crf(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tagger over features, which processes load without torch."""
    folder = tmp_path_factory.mktemp("models") / "crf"
    command = ["train", data / "train.conll", "--model", "crf", "--feature-columns", "none", "--out", folder, "--quiet"]
    assert run([*map(str, command)]) == 0
    return folder


@pytest.fixture
def text_file(tmp_path: Path) -> Path:
    """Two sentences of plain text."""
    path = tmp_path / "new.txt"
    path.write_text("Jordan visited Paris .\n\nDr May Lincoln smiled in Oslo .\n", encoding="utf-8")
    return path
