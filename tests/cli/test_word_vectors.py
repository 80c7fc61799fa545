"""Word vectors through the commands: train, predict, evaluate, info, export, use; and bad input."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from trelliswork.data import read_vectors
from trelliswork.models import load
from trelliswork.models.language.vectors import WordVectorModel

TEXT = "the cat sat on the mat\nthe dog sat on the rug\n\na cat saw the dog\nthe dog saw a cat\n" * 5
FEW = ("--dim", 6, "--epochs", 3, "--buckets", 1000)


@pytest.fixture
def vectors(tmp_path: Path, cli: Any) -> Path:
    (tmp_path / "text.txt").write_text(TEXT)
    (tmp_path / "pairs.txt").write_text("cat\tdog\t8.5\ncat\tmat\t2\ncats\trug\t1\n")
    answer = cli(
        "train", tmp_path / "text.txt", "--pretokenised", "--dev", tmp_path / "pairs.txt", "--model", "vectors", *FEW,
        "--out", tmp_path / "vec",
    )  # fmt: skip
    assert answer.status == 0, answer.err
    assert "train: 20 sentences, 110 words, 9 different ones seen 5 times or more" in answer.err
    assert "epoch 3 of 3: loss" in answer.err and "Spearman" in answer.out and "pairs.txt" in answer.out
    return tmp_path / "vec"


def asked(cli: Any, monkeypatch: pytest.MonkeyPatch, text: str, *command: object) -> list[str]:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    answer = cli("predict", *command)
    assert answer.status == 0, answer.err
    return answer.out.splitlines()


def test_nearest_words_and_vectors(vectors: Path, cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model: Any = load(vectors)
    first, second, third = asked(cli, monkeypatch, "cat cats\n\n日本語\n", vectors, "-", "--top-k", 2)
    name, best, other = first.split("\t")
    assert name == "cat" and best.split()[0] == model.nearest(["cat"])[0][0][0] and len(other.split()) == 2
    assert second.startswith("cats\t") and third == "日本語"
    (record,) = map(json.loads, asked(cli, monkeypatch, "cat\n", vectors, "-", "--format", "jsonl"))
    assert [each["word"] for each in record["nearest"]] == [word for word, _ in model.nearest(["cat"])[0]]
    lines = asked(cli, monkeypatch, "cat cats 日本語 cat\n", vectors, "-", "--vectors")
    (vectors.parent / "new.txt").write_text("\n".join(lines))
    read = read_vectors(vectors.parent / "new.txt")
    assert read.words == ("cat", "cats")
    assert read.matrix == pytest.approx(model.vectors(["cat", "cats"]), rel=1e-4)
    assert asked(cli, monkeypatch, "", vectors, "-") == []


def test_similarities_are_scored(vectors: Path, tmp_path: Path, cli: Any) -> None:
    (tmp_path / "more.txt").write_text("dog mat 3\ncat rug 4\n")
    answer = cli("evaluate", vectors, tmp_path / "pairs.txt", tmp_path / "more.txt", "--json", tmp_path / "s.json")
    assert answer.status == 0 and "5 word pairs" in answer.out, answer.err
    assert re.search(r"pairs.txt +3 +2 +-?\d\.\d+ +3 +-?\d\.\d+\nmore.txt +2", answer.out)
    scores = json.loads((tmp_path / "s.json").read_text())
    assert [each["covered"] for each in scores["by_file"].values()] == [2, 2]
    shown = cli("info", vectors).out
    assert "word vectors" in shown and "most frequent words" in shown


def test_a_tagger_reads_the_vectors(vectors: Path, tmp_path: Path, cli: Any) -> None:
    answer = cli("export", vectors, tmp_path / "v.txt.gz", "--vectors")
    assert answer.status == 0, answer.err
    (tmp_path / "tagged").write_text("the\tD\ncat\tN\n\na\tD\nfox\tN\n\n" * 6)
    small = ["--hidden", 4, "--epochs", 1, "--word-dim", 3, "--quiet"]
    trained = cli(
        "train", tmp_path / "tagged", "--vectors", tmp_path / "v.txt.gz", *small, "--out", tmp_path / "tagger"
    )
    assert trained.status == 0, trained.err
    assert cli("export", vectors, tmp_path / "v.txt.gz", "--vectors").status == 2, "not twice without --force"
    refused = cli("export", tmp_path / "tagger", tmp_path / "w.txt", "--vectors")
    assert refused.status == 2 and "expected word vectors to write as a text file" in refused.err
    refused = cli("predict", tmp_path / "tagger", tmp_path / "tagged", "--vectors")
    assert refused.status == 2 and "--vectors is for word vectors" in refused.err


def test_raw_text_and_counting(tmp_path: Path, cli: Any) -> None:
    (tmp_path / "raw.txt").write_text("It rained, and it rained. Cafe\u0301s close!\n\nقِطّة نامت. قِطّة نامت.\n" * 6)
    command = ["train", tmp_path / "raw.txt", "--model", "vectors", "--method", "sppmi", "--lower"]
    answer = cli(*command, "--fit-dim", "--dim", 8, "--out", tmp_path / "vec")
    assert answer.status == 0 and "least estimated PIP loss" in answer.err, answer.err
    model = load(tmp_path / "vec")
    assert (
        isinstance(model, WordVectorModel) and model.knows("IT") and model.knows("CAF\u00c9S") and model.knows("نامت")
    )


@pytest.mark.parametrize(
    ("text", "options", "problem"),
    [
        (b"", [], "expected text to learn from, got none"),
        (b"a b c\n", [], "expected words that are frequent enough"),
        (b"a b\xff c\n", [], "UTF-8"),
        (b"a b c\n", ["--dim", 0], "dim must lie in"),
        (b"a b c\n", ["--method", "glove"], "method must be one of"),
        (b"a b c\n", ["--method", "sppmi", "--epochs", 3], "--epochs is not used by --method sppmi"),
        (b"a b c\n", ["--units", "characters"], "--units is not used by --model vectors"),
        (b"a b c\n", ["--seeds", 2], "--seeds is for networks"),
        (b"a b c\n", ["--resume"], "--resume is for networks"),
        (b"a b c\n", ["--order", 2], "--order is not used by --model vectors"),
    ],
)
def test_what_cannot_be_learned_from_is_a_sentence(
    tmp_path: Path, cli: Any, text: bytes, options: list[object], problem: str
) -> None:
    (tmp_path / "text.txt").write_bytes(text)
    answer = cli(
        "train", tmp_path / "text.txt", "--pretokenised", "--model", "vectors", *options, "--out", tmp_path / "v"
    )
    assert answer.status == 2 and re.search(problem, answer.err) and "Traceback" not in answer.err, answer.err
    assert not (tmp_path / "v" / "config.json").exists()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--sample", 1], "--sample is for language models"),
        (["--vectors", "--top-k", 2], "--vectors writes a word"),
        (["--threshold", 0.5], "without --pin and --threshold"),
    ],
)
def test_what_cannot_be_asked_is_a_sentence(vectors: Path, cli: Any, options: list[object], problem: str) -> None:
    (vectors.parent / "words.txt").write_text("cat\n")
    answer = cli("predict", vectors, vectors.parent / "words.txt", *options)
    assert answer.status == 2 and re.search(problem, answer.err), answer.err


def test_a_file_that_has_no_pairs_is_a_sentence(vectors: Path, cli: Any) -> None:
    answer = cli("evaluate", vectors, vectors.parent / "text.txt")
    assert answer.status == 2 and "expected two words and their similarity" in answer.err


def test_ctrl_c_leaves_nothing_half_written(tmp_path: Path, cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    (tmp_path / "text.txt").write_text(TEXT)
    monkeypatch.setattr("trelliswork.models.language.vector_learning._report", interrupted)
    answer = cli(
        "train", tmp_path / "text.txt", "--pretokenised", "--model", "vectors", *FEW, "--out", tmp_path / "vec"
    )
    assert answer.status == 130 and not (tmp_path / "vec" / "config.json").exists()
    assert {path.name for path in tmp_path.iterdir()} <= {"text.txt", "vec"}
