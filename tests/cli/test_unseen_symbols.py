"""Symbols that a transducer never saw: said once, marked in the answers, and read as their twins where it has some."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import trelliswork as tw

LOWER = "abcdenyrgzáíé"
WORDS = ["nyár", "zene", "gabi", "béna", "cér", "dége", "ágy", "nyíreg", "gyáz", "abrán", "reng", "zída", "ecet"]
WORDS = [word for word in WORDS if set(word) <= set(LOWER)]
SMALL = ["--epochs", "40", "--hidden", "24", "--symbol-dim", "16", "--batch-tokens", "100", "--dropout", "0", "--quiet"]


def learned(cli: Any, folder: Path, name: str, pairs: list[tuple[str, str]], *options: str) -> Path:
    file, model = folder / f"{name}.tsv", folder / name
    file.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    trained = cli("train", file, "--dev", file, "--model", name, "--out", model, *options)
    assert trained.status == 0, trained.err
    return model


@pytest.fixture
def spoken(cli: Any, tmp_path: Path) -> Path:
    """From letters to sounds, which have another alphabet; no capitals, and no o."""
    return learned(cli, tmp_path, "pair-ngram", [(word, " ".join(f"{ord(c):x}" for c in word)) for word in WORDS])


def test_a_capital_that_was_never_seen_is_read_in_lower_case(cli: Any, tmp_path: Path, spoken: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("Nyár\nnyár\nNyár\nǹyár\n€\n", encoding="utf-8")
    answer = cli("predict", spoken, words, "--lexicon")
    said = [line.split("\t")[1] for line in answer.out.splitlines()]
    assert said[0] == said[1] == said[2] == said[3] == "6e 79 e1 72" and said[4] == ""
    notes = [line for line in answer.err.splitlines() if "never seen" in line]
    assert len(notes) == 1 and "4 of 5 sources" in notes[0] and "words.txt:1: 'N' (read as 'n')" in notes[0]
    assert "'ǹ' (read as 'n')" in notes[0] and "'€' (passed over)" in notes[0]


def test_answers_are_marked_in_json_and_from_python(cli: Any, tmp_path: Path, spoken: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("Nyár\nnyár\n", encoding="utf-8")
    first, second = map(json.loads, cli("predict", spoken, words, "--format", "jsonl").out.splitlines())
    assert first["unknown"] == ["N"] and "unknown" not in second
    answer = tw.load(spoken).predict("Nyár")[0]
    assert answer.unknown == ("N",) and answer.inputs == tuple("Nyár")
    assert answer.parts[0].start == 0 and answer.parts[0].label == "6e"


def test_explain_and_evaluate_say_it_too(cli: Any, tmp_path: Path, spoken: Path) -> None:
    gold = tmp_path / "gold.tsv"
    gold.write_text("Nyár€\t6e 79 e1 72\n", encoding="utf-8")
    shown = cli("explain", spoken, gold)
    assert "'N' was never seen and is read as 'n'; '€' was never seen and is passed over" in shown.out
    assert "N" in shown.out.splitlines()[1], "the source is shown as it is"
    assert "1 of 1 sources have symbols that the model has never seen" in shown.err
    judged = cli("evaluate", spoken, gold)
    assert "1 of 1 sources have symbols that the model has never seen" in judged.err
    assert "word error rate           0.00" in judged.out


def test_a_model_of_one_alphabet_copies_what_it_never_saw(cli: Any, tmp_path: Path) -> None:
    """`Nyíregyháza` keeps its N where sources and targets have the same letters."""
    pairs = [(f"{word}{ending}", word) for word in WORDS for ending in ("", "nak")]
    pairs = [(source.replace("k", "r"), target) for source, target in pairs]
    model = learned(cli, tmp_path, "edit", pairs, *SMALL)
    answer = tw.load(model).predict("Nyár")[0]
    assert answer.value == "Nyár" and answer.unknown == ("N",)
    words = tmp_path / "words.txt"
    words.write_text("Nyár\n", encoding="utf-8")
    assert "'N' (copied)" in cli("predict", model, words).err


def test_a_network_of_two_alphabets_reads_the_twin(cli: Any, tmp_path: Path) -> None:
    pairs = [(word, " ".join(f"{ord(c):x}" for c in word)) for word in WORDS]
    model = tw.load(learned(cli, tmp_path, "edit", pairs, *SMALL))
    upper, lower = model.predict(["NYÁR", "nyár"])
    assert upper.value == lower.value and upper.probability == pytest.approx(lower.probability)
    assert upper.unknown == ("N", "Y", "Á", "R")


def test_words_of_sentences_are_read_in_lower_case(cli: Any, tmp_path: Path) -> None:
    pairs = [("ein hund läuft", "a dog runs"), ("zwei hunde laufen", "two dogs run"), ("ein mann läuft", "a man runs")]
    small = ["--epochs", "3", "--hidden", "16", "--dim", "16", "--quiet"]
    model = tw.load(learned(cli, tmp_path, "seq2seq", pairs * 4, *small))
    first, second = model.predict(["Ein Hund läuft", "ein hund läuft"])
    assert first.value == second.value and first.unknown == ("Ein", "Hund")


# Sources in lower case or without accents


def test_lower_and_strip_marks_are_kept_with_the_model(cli: Any, tmp_path: Path) -> None:
    pairs = [(word.title(), " ".join(word)) for word in WORDS]
    model = learned(cli, tmp_path, "pair-ngram", pairs, "--lower", "--strip-marks")
    words = tmp_path / "words.txt"
    words.write_text("NYÁR\nnyar\nNyár\n", encoding="utf-8")
    answer = cli("predict", model, words, "--lexicon")
    sources, targets = zip(*(line.split("\t") for line in answer.out.splitlines()), strict=True)
    assert sources == ("NYÁR", "nyar", "Nyár"), "the source is written as it came"
    assert len(set(targets)) == 1 and "never seen" not in answer.err
    settings = (model / "config.toml").read_text()
    assert "lower = true" in settings and "strip_marks = true" in settings
    assert tw.load(model).format.lower and tw.load(model).format.strip_marks


@pytest.mark.parametrize(
    ("given", "read"),
    [("İZMİR", "izmir"), ("I\u0307zmir", "izmir"), ("ISPARTA", "isparta"), ("ŁÓDŹ", "łodz"), ("हिन्दी", "हिन्दी"),
     ("שָׁלוֹם", "שלום"), ("مُحَمَّد", "محمد"), ("ＡＢ", "ａｂ"), ("한글", "한글"), ("がぎ", "がぎ")],
)  # fmt: skip
def test_lower_case_and_marks_of_several_scripts(given: str, read: str) -> None:
    for form in ("auto", "NFD"):
        format = tw.data.PairFormat("characters", "characters", form, lower=True, strip_marks=True)  # type: ignore[arg-type]
        assert "".join(format.cut_source(given)) == format.normalised(read)


# Raw sentences


@pytest.mark.parametrize(
    "text",
    ["Two dogs run.", "“Yes,” she said (at 3.30): it's 10-12 %!", "C'est l'été, n'est-ce pas ?", "¿Qué? ¡Sí!",
     "私は学生です。", "e.g. a/b -- c...", "x = {1: 'a'}", "\uffed alone\uffed", "नमस्ते, दुनिया!", "U.S.A. (1,000.50)"],
)  # fmt: skip
def test_words_and_punctuation_come_back_as_they_were(text: str) -> None:
    format = tw.data.PairFormat("words", "words", "NFC")
    assert format.join_target(format.cut_target(text)) == text
    assert format.join_target(format.cut_target(f"  {text.replace(' ', '  ')} ")) == text


def test_raw_sentences_are_tokenised_and_detokenised(cli: Any, tmp_path: Path) -> None:
    pairs = [
        ("Ein Hund läuft.", "A dog runs."),
        ("Zwei Hunde laufen!", "Two dogs run!"),
        ("Ja, ein Mann.", "Yes, a man."),
    ]
    small = ["--epochs", "20", "--hidden", "32", "--dim", "32", "--lr", "0.01", "--batch-tokens", "60",
             "--dropout", "0", "--quiet"]  # fmt: skip
    units = ["--source-units", "words", "--target-units", "words"]
    model = learned(cli, tmp_path, "seq2seq", pairs * 20, *units, *small)
    assert tw.load(model).predict("Ein Hund läuft.")[0].value == "A dog runs."
    gold = tmp_path / "gold.tsv"
    gold.write_text("Ein Hund läuft.\tA dog runs .\n", encoding="utf-8")
    judged = cli("evaluate", model, gold)
    assert "bleu                    100.00" in judged.out, "BLEU counts words, whatever touches what"


def test_punctuation_on_words_is_noted_where_sentences_are_cut_at_blanks(cli: Any, tmp_path: Path) -> None:
    file = tmp_path / "pairs.tsv"
    file.write_text("Ein Hund läuft.\tA dog runs.\nZwei Hunde laufen!\tTwo dogs run!\n" * 4, encoding="utf-8")
    run = ("train", file, "--dev", file, "--model", "seq2seq", "--out", tmp_path / "model", "--epochs", "1", "--quiet")
    told = "in 8 of 8 pairs punctuation is part of the last word; --source-units words --target-units words"
    assert told in cli(*run).err
    assert told not in cli(*run, "--force", "--source-units", "words", "--target-units", "words").err


def test_sources_that_are_read_alike_are_judged_by_their_own_targets(cli: Any, tmp_path: Path) -> None:
    """As a comparison line by line would: in lower case both are one source, and only one of them is right."""
    model = learned(cli, tmp_path, "pair-ngram", [(word, " ".join(word)) for word in WORDS], "--lower")
    gold = tmp_path / "gold.tsv"
    gold.write_text("nyár\tn y á r\nNYÁR\tN Y Á R\n", encoding="utf-8")
    assert "word error rate          50.00" in cli("evaluate", model, gold).out
