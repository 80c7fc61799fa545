"""Language models through the commands: train, predict, evaluate, info, export; and bad input."""

from __future__ import annotations

import io
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

import trelliswork as tw
from trelliswork.fst import read_arpa

TEXT = "the cat sat on the mat\nthe dog sat\n\na cat saw the dog\nthe dog saw a cat\n"


@pytest.fixture
def lm(tmp_path: Path, cli: Any) -> Path:
    (tmp_path / "text.txt").write_text(TEXT)
    (tmp_path / "more.txt").write_text("the cat ran\n")
    answer = cli(
        "train", tmp_path / "text.txt", tmp_path / "more.txt", "--dev", tmp_path / "text.txt", "--pretokenised",
        "--model", "ngram", "--order", 3, "--smoothing", "kneser-ney", "--out", tmp_path / "lm",
    )  # fmt: skip
    assert answer.status == 0, answer.err
    assert "train: 5 sentences, 22 words, 10 different" in answer.err and "perplexity" in answer.out
    return tmp_path / "lm"


def test_scores_of_tokens_and_sentences(lm: Path, tmp_path: Path, cli: Any) -> None:
    (tmp_path / "new.txt").write_text("the cat\na zebra\n")
    answer = cli("predict", lm, tmp_path / "new.txt", "--score")
    blocks = answer.out.strip().split("\n\n")
    assert [line.split("\t")[0] for line in blocks[1].splitlines()[1:]] == ["a", "zebra", "</s>"]
    records = [
        json.loads(line) for line in cli("predict", lm, tmp_path / "new.txt", "--format", "jsonl").out.splitlines()
    ]
    model: Any = tw.load(lm)
    for block, record, words in zip(blocks, records, (["the", "cat"], ["a", "zebra"]), strict=True):
        scores = [float(line.split("\t")[1]) for line in block.splitlines()[1:]]
        assert scores == pytest.approx(record["log_probs"], abs=1e-6)
        assert float(block.splitlines()[0].removeprefix("# log_prob = ")) == pytest.approx(sum(scores), abs=1e-5)
        assert record["log_prob"] == pytest.approx(model.machine.score(words), abs=1e-5)
        assert model.predict([words])[0].value == pytest.approx(record["log_prob"])


def test_evaluation_counts_unknown_words_and_characters(lm: Path, tmp_path: Path, cli: Any) -> None:
    (tmp_path / "new.txt").write_text("the cat\na zebra\n")
    answer = cli("evaluate", lm, tmp_path / "new.txt", "--json", tmp_path / "scores.json")
    assert re.search(r"unknown words +1 of 6\n", answer.out)
    scores = json.loads((tmp_path / "scores.json").read_text())
    assert scores["perplexity"] > scores["perplexity_of_known"] and scores["characters"] == len("the cat\na zebra\n")
    bits = math.log2(scores["perplexity"]) * 6 / scores["characters"]
    assert scores["bits_per_character"] == pytest.approx(bits, rel=1e-6)


def continued(cli: Any, monkeypatch: pytest.MonkeyPatch, text: str, *command: object) -> list[str]:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    answer = cli("predict", *command)
    assert answer.status == 0, answer.err
    return answer.out.splitlines()


def test_prefixes_are_continued(lm: Path, cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sampled = [lm, "-", "--sample", 3, "--nucleus", 0.9, "--temperature", 0.8, "--seed", 1]
    first = continued(cli, monkeypatch, "the\na cat\n", *sampled)
    assert len(first) == 6 and all(line.startswith("the") for line in first[:3])
    assert first == continued(cli, monkeypatch, "the\na cat\n", *sampled)
    assert len(continued(cli, monkeypatch, "", lm, "-", "--sample", 2)) == 2, "without text, from the beginning"
    (greedy,) = continued(cli, monkeypatch, "a\n", lm, "-", "--beam", 1)
    best, second = continued(cli, monkeypatch, "a\n", lm, "-", "--beam", 9, "--top-k", 2, "--confidence")
    assert greedy.startswith("a cat") and float(best.split("\t")[0]) >= float(second.split("\t")[0])


def test_constrained_answers_are_exact(lm: Path, cli: Any) -> None:
    (line,) = cli("predict", lm, "-", "--constraint", "(the|a) (dog|cat)", "--format", "jsonl").out.splitlines()
    record, model = json.loads(line), tw.load(lm)
    scores = {f"{x} {y}": model.machine.score([x, y]) for x in ("the", "a") for y in ("dog", "cat")}  # type: ignore[attr-defined]
    assert record["text"] == max(scores, key=scores.__getitem__)
    total = math.log(sum(map(math.exp, scores.values())))
    assert record["log_prob_given_constraint"] == pytest.approx(scores[record["text"]] - total, abs=1e-5)
    drawn = cli("predict", lm, "-", "--constraint", "(the|a) (dog|cat)", "--sample", 5).out.splitlines()
    assert len(drawn) == 5 and set(drawn) <= set(scores)


def test_a_model_is_described_and_exported(lm: Path, tmp_path: Path, cli: Any) -> None:
    shown = cli("info", lm).out
    assert "n-gram language model over words" in shown and "3-grams" in shown
    assert cli("export", lm, tmp_path / "lm.arpa", "--arpa").status == 0
    model: Any = tw.load(lm)
    assert read_arpa(tmp_path / "lm.arpa").score(["the", "cat"]) == pytest.approx(
        model.machine.score(["the", "cat"]), abs=1e-6
    )
    converted = cli("convert", tmp_path / "lm.arpa", "--out", tmp_path / "again")
    assert converted.status == 0, converted.err
    again: Any = tw.load(tmp_path / "again")
    assert again.predict([["the", "cat"]])[0].value == pytest.approx(model.predict([["the", "cat"]])[0].value, abs=1e-6)
    assert "N-gram language model" in (lm / "MODEL_CARD.md").read_text()


@pytest.mark.parametrize("units", ["characters", "subwords"])
def test_other_units_and_raw_text(tmp_path: Path, cli: Any, monkeypatch: pytest.MonkeyPatch, units: str) -> None:
    (tmp_path / "raw.txt").write_text("One day. It rained!\n\nNext day it rained again.\n")
    more = ["--merges", 5] if units == "subwords" else ["--prune", 1e-4, "--counts-on-disk", tmp_path / "scratch"]
    trained = cli("train", tmp_path / "raw.txt", "--model", "ngram", "--units", units, *more, "--out", tmp_path / "lm")
    assert trained.status == 0, trained.err
    assert "dev: none" in trained.err
    assert "bits per character" in cli("evaluate", tmp_path / "lm", tmp_path / "raw.txt").out
    (line,) = continued(cli, monkeypatch, "It rained\n", tmp_path / "lm", "-", "--beam", 3)
    assert line.startswith("It rained")


@pytest.mark.parametrize(
    ("text", "options", "problem"),
    [
        ("", [], "expected text to learn from, got none"),
        (" \n\n", [], "expected text to learn from, got none"),
        ("a <s> b\n", [], "expected text without <s>"),
        ("a b\n", ["--cutoffs", "2,1"], "must not fall"),
        ("a b\n", ["--cutoffs", "x"], "cutoffs must be whole numbers"),
        ("a b\n", ["--order", "8"], "order must lie in 1..7"),
        ("a b\n", ["--order", "x"], "expected a valid integer"),
        ("a b\n", ["--smoothing", "good"], "smoothing must be one of"),
        ("a b\n", ["--seeds", "2"], "--seeds is for networks"),
        ("a b\n", ["--epochs", "2"], "--epochs is not used by --model ngram"),
    ],
)
def test_what_cannot_be_learned_from_is_a_sentence(
    tmp_path: Path, cli: Any, text: str, options: list[str], problem: str
) -> None:
    (tmp_path / "text.txt").write_text(text)
    answer = cli(
        "train", tmp_path / "text.txt", "--pretokenised", "--model", "ngram", *options, "--out", tmp_path / "lm"
    )
    assert answer.status == 2 and re.search(problem, answer.err) and "Traceback" not in answer.err
    assert not (tmp_path / "lm" / "config.json").exists()


@pytest.mark.parametrize("text", ["word", "a a a a\n"])
def test_little_text_is_enough(tmp_path: Path, cli: Any, text: str) -> None:
    (tmp_path / "text.txt").write_text(text)
    answer = cli("train", tmp_path / "text.txt", "--pretokenised", "--model", "ngram", "--out", tmp_path / "lm")
    assert answer.status == 0 and "not much longer than the order" in answer.err
    assert cli("evaluate", tmp_path / "lm", tmp_path / "text.txt").status == 0


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--sample", 1, "--score"], "--score scores FILE"),
        (["--sample", 1, "--beam", 2], "--sample draws and --beam searches"),
        (["--sample", 1, "--nucleus", 2], "must lie in \\(0, 1\\]"),
        (["--constraint", "("], "cannot be read"),
        (["--constraint", "the", "--nucleus", 0.5], "--constraint is exact"),
        (["--pin", "1=a"], "whose answers can be pinned"),
    ],
)
def test_what_cannot_be_asked_is_a_sentence(lm: Path, cli: Any, monkeypatch: Any, options: list, problem: str) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"the\n")))
    answer = cli("predict", lm, "-", *options)
    assert answer.status == 2 and re.search(problem, answer.err), answer.err


def test_options_of_language_models_are_refused_elsewhere(tmp_path: Path, cli: Any) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text("x\tO\n\n" * 4)
    answer = cli("train", tmp_path / "a", tmp_path / "b", "--model", "crf", "--out", tmp_path / "m")
    assert answer.status == 2 and "expected one file to train on, got 2 files" in answer.err
    answer = cli("train", tmp_path / "a", "--model", "hmm", "--smoothing", "much", "--out", tmp_path / "m")
    assert answer.status == 2 and "--smoothing must be a number; got 'much'" in answer.err


def test_networks_and_mixtures(tmp_path: Path, lm: Path, cli: Any) -> None:
    text = tmp_path / "text.txt"
    common = [text, "--pretokenised", "--dev", text, "--quiet"]
    small = ["--word-dim", 6, "--hidden", 6, "--epochs", 2]
    more, gru = tmp_path / "more.txt", ["--model", "rnn-lm", "--cell", "gru"]
    answers = [
        cli("train", *common, more, *gru, *small, "--out", tmp_path / "a"),
        cli("train", *common, "--model", "lm-mixture", "--parts", f"{tmp_path / 'a'},{lm}", "--cache", 9, "--out",
            tmp_path / "mix"),
        cli("evaluate", tmp_path / "mix", text),
        cli("info", tmp_path / "mix"),
        cli("info", tmp_path / "a"),
        cli("predict", tmp_path / "a", text, "--sample", 1),
        cli("predict", tmp_path / "a", text, "--score"),
        cli("train", text, "--model", "rnn-lm", "--directions", "both", *small, "--out", tmp_path / "both"),
    ]  # fmt: skip
    assert [each.status for each in answers] == [0] * 8, [each.err for each in answers]
    assert "perplexity" in answers[0].out and "perplexity" in answers[2].out
    assert "cache of 9 units" in answers[3].out and "recurrent language model" in answers[4].out
    assert "dev: none" in answers[7].err
    assert len(answers[5].out.splitlines()) == 5 and "# log_prob" in answers[6].out


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--model", "lm-mixture"], "--parts DIR,DIR"),
        (["--model", "rnn-lm", "--directions", "both", "--context", "text"], "--context"),
        (["--model", "rnn-lm", "--directions", "both", "--hidden", 8], "set both alike"),
        (["--model", "transformer-lm", "--word-dim", 9], "multiple of twice the heads"),
    ],
)
def test_networks_that_cannot_be(tmp_path: Path, cli: Any, options: list[Any], problem: str) -> None:
    (tmp_path / "text.txt").write_text(TEXT)
    answer = cli("train", tmp_path / "text.txt", "--pretokenised", *options, "--out", tmp_path / "lm")
    assert answer.status == 2 and problem in answer.err and "Traceback" not in answer.err


@pytest.mark.parametrize("content", [b"", b"\n\n", b"a \xff b\n"])
def test_texts_that_no_network_learns_from(tmp_path: Path, cli: Any, content: bytes) -> None:
    (tmp_path / "text.txt").write_bytes(content)
    answer = cli("train", tmp_path / "text.txt", "--pretokenised", "--model", "rnn-lm", "--out", tmp_path / "lm")
    assert answer.status == 2 and "text.txt" in answer.err and "expected" in answer.err
