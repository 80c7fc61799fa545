"""Pair n-grams through the commands: train, predict, evaluate, check, info, explain, tune, export; and bad input."""

from __future__ import annotations

import io
import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest

import trelliswork as tw
from trelliswork.fst import read_arpa
from trelliswork.models.transducers.pair_ngram import source_lattice

VOWELS = {"a": "A", "e": "E", "o": "O"}
CONSONANTS = {"b": "B", "h": "H", "k": "K", "sh": "S", "t": "T", "x": "K S"}


def word(i: int) -> tuple[str, str]:
    """A made-up word and how it is said: sh is one sound, x is two."""
    names, letters = sorted(CONSONANTS), sorted(VOWELS)
    parts = [names[i % 6], letters[i % 5 % 3], names[(i // 6 + i) % 6], letters[(i // 7) % 3]][: 2 + i % 3]
    return "".join(parts), " ".join({**VOWELS, **CONSONANTS}[each] for each in parts)


LINES = [f"{x}\t{y}" for x, y in dict.fromkeys(word(i) for i in range(200))]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pairs")
    (folder / "train.tsv").write_text("\n".join(LINES[8:]) + "\n", encoding="utf-8")
    (folder / "dev.tsv").write_text("\n".join(LINES[:8]) + "\n", encoding="utf-8")
    return folder


@pytest.fixture
def model(files: Path, cli: Any) -> Path:
    folder = files / "model"
    if not folder.exists():
        answer = cli("train", files / "train.tsv", "--dev", files / "dev.tsv", "--model", "pair-ngram", "--out", folder)
        assert answer.status == 0, answer.err
        assert "aligned and counted in" in answer.out and "word error rate           0.00" in answer.out
    return folder


def write(folder: Path, text: str, name: str = "new.tsv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_word_list_a_column_and_a_pipe(
    model: Path, tmp_path: Path, cli: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = write(tmp_path, "shaxo\n\nbat\n", "words.txt")
    lines = [line.split("\t") for line in cli("predict", model, words).out.splitlines()]
    assert [line[:2] for line in lines] == [["shaxo", "S A K S O"], ["bat", "B A T"]]
    assert all(0.5 < float(line[2]) <= 1 for line in lines)
    table = write(tmp_path, "1\tshaxo\tnoun\n2\tbat\tnoun\n")
    again = cli("predict", model, table, "--word-column", 2).out.splitlines()
    assert [line.split("\t") for line in again] == lines
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"bat\n"), encoding="utf-8"))
    assert cli("predict", model, "-").out == "\t".join(lines[1]) + "\n"


def test_the_k_best_are_lines_and_a_lexicon_has_no_probabilities(model: Path, tmp_path: Path, cli: Any) -> None:
    words = write(tmp_path, "bat\nshe\n", "words.txt")
    best = [line.split("\t") for line in cli("predict", model, words, "--top-k", 3).out.splitlines()]
    assert [line[0] for line in best] == ["bat"] * 3 + ["she"] * 3
    assert len({tuple(line[:2]) for line in best}) == 6
    assert [float(line[2]) for line in best[:3]] == sorted((float(line[2]) for line in best[:3]), reverse=True)
    one = [line.split("\t") for line in cli("predict", model, words).out.splitlines()]
    assert [best[0], best[3]] == one, "the same first answer whatever K"
    assert cli("predict", model, "--lexicon", words).out == "bat\tB A T\nshe\tS E\n"
    several = cli("predict", model, "--lexicon", words, "--top-k", 3).out.splitlines()
    assert several == ["\t".join(line[:2]) for line in best]


def test_json_html_and_pretty(model: Path, tmp_path: Path, cli: Any) -> None:
    words = write(tmp_path, "xe\n", "words.txt")
    record = json.loads(cli("predict", model, words, "--format", "jsonl", "--confidence", "--top-k", 2).out)
    assert record["text"] == "xe" and record["tokens"] == ["x", "e"] and record["value"] == "K S E"
    assert [(each["symbol"], each["start"], each["end"]) for each in record["symbols"]] == [
        ("K", 0, 1), ("S", 0, 1), ("E", 1, 2),
    ]  # fmt: skip
    assert record["alternatives"][0] == {"probability": record["probability"], "value": "K S E"}
    page = cli("predict", model, words, "--format", "html", "--confidence").out
    assert "<svg" in page and "K S E" in page
    assert cli("predict", model, words, "--format", "pretty").out == "xe\tK S E\n"


def test_evaluate_info_and_explain(model: Path, files: Path, tmp_path: Path, cli: Any) -> None:
    scores = tmp_path / "scores.json"
    answer = cli("evaluate", model, files / "dev.tsv", "--json", scores)
    assert "word error rate           0.00" in answer.out and "symbol error rate         0.00" in answer.out
    assert json.loads(scores.read_text(encoding="utf-8"))["word_error_rate"] == 0.0
    told = cli("info", model).out
    assert "a pair n-gram" in told and "x -> K S" in told and "chunk pairs" in told
    shown = cli("explain", model, write(tmp_path, "shax\n", "words.txt")).out
    assert shown.startswith("shax\n  ") and "  x  K S        100.0%\n  1. " in shown and "%  S A K S" in shown
    record = json.loads(cli("explain", model, tmp_path / "words.txt", "--json").out)
    assert record["tokens"] == list("shax") and record["chunks"][-1]["target"] == "K S"
    html = tmp_path / "page.html"
    cli("explain", model, tmp_path / "words.txt", "--html", html)
    assert "<b>x</b></td><td>K S</td>" in html.read_text(encoding="utf-8")


def test_an_answer_draws_its_alignment(model: Path) -> None:
    drawing = tw.load(model).predict("shax")[0].draw()
    assert "Alignment of s h a x and S A K S" in drawing.svg


def test_check_looks_at_pairs(files: Path, tmp_path: Path, cli: Any) -> None:
    text = "\n".join([*LINES[20:45], LINES[20], "ab\tA B B B B B B B B B B B B B", "b\u200be\tB E"]) + "\n"
    answer = cli("check", write(tmp_path, text), files / "dev.tsv", "--pairs")
    assert answer.status == 0
    assert "28 pairs of 27 sources" in answer.out
    assert "repeated pairs: 1" in answer.out and "new.tsv:26: the same pair as line 1" in answer.out
    assert "lengths unlike the others: 1" in answer.out and "new.tsv:27: 2 source and 14 target symbols" in answer.out
    assert "odd symbols: 1" in answer.out and "ZERO WIDTH SPACE" in answer.out
    assert "pairs in both      0 of 8" in answer.out and "new source symbols none" in answer.out


def test_mixed_normal_forms_are_told_and_made_alike(tmp_path: Path, cli: Any) -> None:
    forms = [unicodedata.normalize(form, "é\tE") for form in ("NFC", "NFD")]
    lines = [line.replace("e", "é") for line in LINES[:30]]
    mixed = write(tmp_path, "\n".join([*lines, *(forms * 3)]) + "\n", "mixed.tsv")
    checked = cli("check", mixed, "--pairs").out
    assert "lines in both Unicode normal forms, or neither: 3" in checked and "mixed.tsv:32: not in NFC" in checked
    answer = cli("train", mixed, "--dev", mixed, "--model", "pair-ngram", "--out", tmp_path / "model")
    assert answer.status == 0 and "Unicode form mixed" in answer.err
    assert "symbols in NFC, the better form on the dev data" in answer.err
    for form in ("NFC", "NFD"):
        words = write(tmp_path, unicodedata.normalize(form, "bét\n"), "words.txt")
        assert cli("predict", tmp_path / "model", "--lexicon", words).out.split("\t")[1] == "B E T\n"


def test_the_normal_form_that_is_better_on_dev_is_kept_and_reported(tmp_path: Path, cli: Any) -> None:
    """Accents of letters that were never seen together are known in NFD alone."""
    lines = [line for letter in "aeo" for line in (f"{letter}\t{letter.upper()}", f"b{letter}b\tB {letter.upper()} B")]
    lines += [f"b{letter}\u0301\tB {letter.upper()} 1" for letter in "ae"] * 2
    train = write(tmp_path, "\n".join(lines) + "\n", "train.tsv")
    dev = write(tmp_path, "bo\u0301\tB O 1\n", "dev.tsv")
    answer = cli("train", train, "--dev", dev, "--model", "pair-ngram", "--out", tmp_path / "model")
    assert answer.status == 0, answer.err
    assert "symbols in NFD, the better form on the dev data (NFC 0.00, NFD 100.00 exact match)" in answer.err
    assert "word error rate           0.00" in answer.out, "judged by the same pairs"
    assert cli("predict", tmp_path / "model", "--lexicon", write(tmp_path, "\u00f3\n", "w.txt")).out == "\u00f3\tO 1\n"


def test_settings_are_options_and_can_be_searched(files: Path, tmp_path: Path, cli: Any) -> None:
    given = ["--order", 2, "--source-chunk", 1, "--target-chunk", 1, "--many-to-many", "--unalignable", "skip"]
    run = ["train", files / "train.tsv", "--dev", files / "dev.tsv", "--model", "pair-ngram", *given]
    answer = cli(*run, "--out", tmp_path / "model")
    assert answer.status == 0 and "that target chunks of 1 cannot align: skipped" in answer.err
    assert tw.load(tmp_path / "model").config.order == 2  # type: ignore[union-attr]
    tuned = tmp_path / "tuned"
    found = cli("tune", files / "train.tsv", "--dev", files / "dev.tsv", "--model", "pair-ngram", "--trials", 2,
                "--out", tuned)  # fmt: skip
    assert found.status == 0, found.err


# Bad input


def refused(answer: Any, *told: str) -> None:
    assert answer.status == 2, answer.out
    for each in told:
        assert each in answer.err, answer.err


def test_bad_pairs_are_told_with_file_and_line(files: Path, tmp_path: Path, cli: Any) -> None:
    def run(text: str, *more: object) -> Any:
        out = tmp_path / "bad"
        bad = write(tmp_path, text, "bad.tsv")
        answer = cli("train", bad, "--dev", files / "dev.tsv", "--model", "pair-ngram", "--out", out, *more)
        assert not out.exists(), "nothing half-written"
        return answer

    refused(run("ab\tA B\nba\n"), "bad.tsv:2: expected at least 2 columns", "write source, tab, target")
    refused(run("ab\tA B\n\tB A\n"), "bad.tsv:2: expected a source, got nothing")
    refused(run("ab\tA B\nba\t \n"), "bad.tsv:2: expected a target, got nothing")
    refused(run("b\tB A B A B\n", "--unalignable", "error"), "bad.tsv:1: expected a pair that target chunks of")
    long = "a" * 10_000
    refused(run(f"ab\tA B\n{long}\t{' '.join(long)}\n"), "bad.tsv:2:", "cut it into shorter ones")
    refused(run(LINES[0], "--seeds", 3), "--seeds is for networks")
    refused(run(LINES[0], "--order", 0), "order must lie in 1..16; got 0")


def test_pairs_that_need_longer_chunks_are_counted(files: Path, tmp_path: Path, cli: Any) -> None:
    data = write(tmp_path, "\n".join([*LINES, "b\tB E B E B E B"]) + "\n", "train.tsv")
    answer = cli("train", data, "--dev", files / "dev.tsv", "--model", "pair-ngram", "--out", tmp_path / "model")
    assert "1 pair that target chunks of" in answer.err and "aligned with chunks of up to 7" in answer.err
    assert f"train.tsv:{len(LINES) + 1} has a target of 7 symbols for a source of 1" in answer.err


def test_symbols_never_seen_are_said_and_passed_over(model: Path, tmp_path: Path, cli: Any) -> None:
    answer = cli("predict", model, "--lexicon", write(tmp_path, "bat\nb!at\n!\n", "words.txt"))
    assert answer.out == "bat\tB A T\nb!at\tB A T\n!\t\n"
    assert "note: 2 of 3 sources have symbols that the model has never seen, the first in" in answer.err
    assert "words.txt:2: '!' (passed over)" in answer.err


def test_long_sources_are_answered(model: Path, tmp_path: Path, cli: Any) -> None:
    """Longer ones: tests/models/test_pair_ngram.py."""
    answer = cli("predict", model, "--lexicon", write(tmp_path, "ba" * 50 + "\n", "words.txt"))
    symbols = answer.out.split("\t")[1].split()
    assert answer.status == 0 and symbols == ["B", "A"] * (len(symbols) // 2)
    assert 90 < len(symbols) <= 100  # over all alignments, some letters may be silent


def test_pins(model: Path, tmp_path: Path, cli: Any) -> None:
    words = write(tmp_path, "bat\nshaxo\n", "words.txt")
    pins = ("--pin", "1:3=(nothing)", "--pin", "2:1-2=S", "--pin", "2:4=(nothing)")
    answer = cli("predict", model, words, "--lexicon", *pins)
    assert (answer.status, answer.out) == (0, "bat\tB A\nshaxo\tS A O\n"), answer.err
    pinned = cli("predict", model, words, "--pin", "2:4=K S").out.splitlines()[1].split("\t")
    plain = cli("predict", model, words).out.splitlines()[1].split("\t")
    assert pinned[1] == plain[1] == "S A K S O" and float(pinned[2]) > float(plain[2])


def test_a_search_that_was_given_up_is_said(
    model: Path, tmp_path: Path, cli: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_lattice, "MOST_EXPANSIONS", 1)
    monkeypatch.setattr(source_lattice, "LEAST_WIDTH", 1)
    words = write(tmp_path, "bat\n" + "shaxoxb" * 3 + "\n", "words.txt")
    answer = cli("predict", model, words, "--format", "jsonl")
    certain = [json.loads(line).get("certain", True) for line in answer.out.splitlines()]
    assert certain == [True, False]
    assert "note: 1 of 2 answers are the best that was found, and others may be more probable" in answer.err
    assert "words.txt:2" in answer.err


def test_an_arpa_file(model: Path, tmp_path: Path, cli: Any) -> None:
    out = tmp_path / "model.arpa"
    assert cli("export", model, out, "--arpa").status == 0
    assert "x}K|S" in list(read_arpa(out).symbols)
    refused(cli("export", model, out, "--arpa"), "there is a file already")
    assert cli("export", model, out, "--arpa", "--force").status == 0


def test_what_does_not_fit_is_refused(model: Path, files: Path, tmp_path: Path, cli: Any) -> None:
    words = write(tmp_path, "bat\n", "words.txt")
    refused(cli("predict", model, words, "--lexicon", "--format", "jsonl"), "are two formats; leave one out")
    refused(cli("predict", model, words, "--pin", "3-2=B"), "the first and the last of several, such as 2-3=F")
    refused(cli("predict", model, words, "--pin", "2-4=B"), "names token 4, the sentence has 3")
    refused(cli("predict", model, words, "--pin", "1=Q"), "words.txt:1: no analysis agrees with the pins 1=Q")
    refused(cli("predict", model, words, "--threshold", 0.2), "--threshold")
    refused(cli("export", model, "--onnx"), "PairNgram")
    refused(cli("export", model, "--python"), "PairNgram")
    refused(cli("export", model, "--crfsuite"), "PairNgram")
