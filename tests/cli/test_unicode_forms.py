"""What a transducer writes is spelt as its training targets are: `evaluate` and a comparison byte by byte agree."""

from __future__ import annotations

import json
import unicodedata
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import trelliswork as tw
from trelliswork.data.unicode_forms import Spelling, clusters, form_of

NFC, NFD = "NFC", "NFD"
# Sources in ASCII and targets with marks of several scripts: Vietnamese (stacked marks), Hangul, Devanagari with a
# nukta (whose composed letter is no NFC), Hebrew (dagesh and vowel, in the order in which they are typed), a ligature
# and a Kelvin sign, which are only compatible or equivalent with other characters, and a Turkish capital I with a dot.
LETTERS = {"e": "\u1ec7", "a": "\u00e1", "h": "\ud55c", "q": "\u0958", "b": "\u05d1\u05bc\u05b8", "f": "\ufb01",
           "k": "\u212a", "i": "\u0130", "n": "\u00f1", "z": "z"}  # fmt: skip
WORDS = ["ea", "ha", "qa", "ba", "fi", "ki", "na", "ze", "nehe", "bafi", "kiqa", "zaza", "eha", "ifna", "aqi", "bene"]
SPELLINGS = {
    "NFC": lambda text: text if text in "\u0958\u212a" else _in(NFC, text),
    "NFD": lambda text: text if text in "\u0958\u212a" else _in(NFD, text),
    "mixed": lambda text: _in(NFD, text) if text in "\u1ec7\u00f1\ud55c" else text,
}
SMALL = {
    "pair-ngram": [],
    "edit": ["--epochs", "40", "--hidden", "24", "--symbol-dim", "16", "--batch-tokens", "100", "--dropout", "0"],
    "seq2seq": ["--epochs", "60", "--hidden", "48", "--dim", "24", "--batch-tokens", "60", "--lr", "0.01"],
    "transformer": ["--epochs", "60", "--hidden", "48", "--dim", "48", "--layers", "1", "--batch-tokens", "60",
                    "--lr", "0.003"],
}  # fmt: skip


ATTENTION = ("seq2seq", "transformer")


def _in(form: Any, text: str) -> str:
    return unicodedata.normalize(form, text)


def pairs(spelling: str) -> str:
    spelt = {letter: SPELLINGS[spelling](target) for letter, target in LETTERS.items()}
    return "".join(f"{word}\t{''.join(spelt[letter] for letter in word)}\n" for word in WORDS)


def column(text: str, number: int) -> list[str]:
    return [line.split("\t")[number] for line in text.splitlines()]


def of_every_model() -> list[Any]:
    """All spellings by each model; attention learns for seconds, and one spelling shows that it takes part."""
    return [
        pytest.param(name, spelling, marks=pytest.mark.thorough if name in ATTENTION and spelling != "mixed" else ())
        for name, spelling in product(SMALL, SPELLINGS)
    ]


@pytest.mark.parametrize(("name", "spelling"), of_every_model())
def test_answers_are_spelt_as_the_training_targets_byte_by_byte(
    cli: Any, tmp_path: Path, name: str, spelling: str
) -> None:
    gold, model, scores = tmp_path / "gold.tsv", tmp_path / "model", tmp_path / "scores.json"
    gold.write_text(pairs(spelling), encoding="utf-8")
    trained = cli("train", gold, "--dev", gold, "--model", name, "--out", model, "--target-units", "characters",
                  "--quiet", *SMALL[name])  # fmt: skip
    assert trained.status == 0, trained.err
    written = cli("predict", model, gold, "--lexicon").out
    right = column(gold.read_text(encoding="utf-8"), 1)
    same = [a == b for a, b in zip(column(written, 1), right, strict=True)]
    assert sum(same) >= 12, written
    judged = cli("evaluate", model, gold, "--json", scores)
    record = json.loads(scores.read_text())
    assert record["word_error_rate"] == record["different_byte_by_byte"] == pytest.approx(1 - sum(same) / len(same))
    assert "byte by byte" not in judged.out
    known = set(right)
    alternatives = [line.split("\t")[1] for line in cli("predict", model, gold, "--top-k", "2").out.splitlines()]
    assert sum(each in known for each in alternatives) >= sum(same), "alternatives are spelt alike"
    for answer in tw.load(model).predict(WORDS[:3], top_k=2):
        assert answer.value == answer.alternatives[0].value
    if name == "pair-ngram":
        shown = cli("explain", model, gold, "--limit", "16").out
        assert sum(f"%  {each}\n" in f"{shown}\n" for each in known) >= sum(same), shown


def test_several_models_that_answer_together_spell_alike(cli: Any, tmp_path: Path) -> None:
    gold, model = tmp_path / "gold.tsv", tmp_path / "model"
    gold.write_text(pairs("mixed"), encoding="utf-8")
    trained = cli("train", gold, "--dev", gold, "--model", "edit", "--out", model, "--seeds", "2", "--target-units",
                  "characters", "--quiet", *SMALL["edit"])  # fmt: skip
    assert trained.status == 0, trained.err
    written = cli("predict", model, gold, "--lexicon").out
    right = column(gold.read_text(encoding="utf-8"), 1)
    assert sum(a == b for a, b in zip(column(written, 1), right, strict=True)) >= 12


@pytest.mark.parametrize(("trained_in", "asked_in"), [(NFC, NFD), (NFD, NFC)])
@pytest.mark.parametrize("name", ["pair-ngram", "edit"])
def test_sources_in_the_other_form_have_the_same_answers(
    cli: Any, tmp_path: Path, name: str, trained_in: str, asked_in: str
) -> None:
    train, other, model = tmp_path / "train.tsv", tmp_path / "other.tsv", tmp_path / "model"
    back = "".join(f"{target}\t{target}\n" for target in column(pairs("NFC"), 1))
    train.write_text(_in(trained_in, back), encoding="utf-8")
    other.write_text(_in(asked_in, back), encoding="utf-8")
    run = ("train", train, "--dev", train, "--model", name, "--source-units", "characters", "--target-units",
           "characters", "--out", model)  # fmt: skip
    trained = cli(*run, *SMALL[name])
    assert trained.status == 0, trained.err
    assert f"Unicode form {trained_in}" in trained.err
    answers = [column(cli("predict", model, file, "--lexicon").out, 1) for file in (train, other)]
    assert answers[0] == answers[1]
    right = column(train.read_text(encoding="utf-8"), 1)
    assert sum(a == b for a, b in zip(answers[1], right, strict=True)) >= 12
    judged = cli("evaluate", model, other)
    assert (
        f"other.tsv: pairs, 2 columns: source = 1 (characters), target = 2 (characters); Unicode form {asked_in}"
        in (judged.err.replace(str(tmp_path) + "/", ""))
    )
    assert "different byte by byte" in judged.out, "what a comparison of the files would say is said too"


def test_train_and_evaluate_say_the_same_of_the_same_file(cli: Any, tmp_path: Path) -> None:
    for spelling, shown in (("NFC", "NFC"), ("NFD", "NFD"), ("mixed", "mixed")):
        file, model = tmp_path / f"{spelling}.tsv", tmp_path / spelling
        lines = pairs(spelling).splitlines()
        file.write_text("\n".join(each for each in lines if not {"q", "k"} & set(each)) + "\n", encoding="utf-8")
        trained = cli("train", file, "--dev", file, "--model", "pair-ngram", "--out", model)
        judged = cli("evaluate", model, file)
        said = [line for answer in (trained, judged) for line in answer.err.splitlines() if "Unicode form " in line]
        assert len(said) == 2 and said[0] == said[1] and said[0].endswith(f"Unicode form {shown}"), said


def test_compatibility_characters_are_not_folded() -> None:
    spelling = Spelling.learn(["\u00e9", "\ufb01", "\uff21"])
    assert spelling is not None
    assert spelling.of("\ufb01\uff21\u2126e\u0301") == "\ufb01\uff21\u03a9\u00e9"


def test_a_cluster_that_was_never_seen_is_in_the_usual_form() -> None:
    spelling = Spelling.learn(["e\u0301", "o\u0301", "\u00e0"])
    assert spelling is not None and spelling.form == NFD
    assert spelling.of("\u00fc\u00e0\u00e9") == "u\u0308\u00e0e\u0301"


def test_spelling_is_exact_for_every_text_in_one_form() -> None:
    """A text of every composed character comes back in both forms, and clusters are normalised one by one."""
    every = [chr(i) for i in range(0x110000) if unicodedata.decomposition(chr(i)) and not 0xD800 <= i < 0xE000]
    text = "".join(every[:3000]) + "".join(map(chr, range(0xAC00, 0xAD00)))
    for form in (NFC, NFD):
        normal = _in(form, text)
        assert "".join(_in(form, each) for each in clusters(text)) == normal
        spelling = Spelling.learn([normal])
        assert spelling is not None and spelling.of(text) == normal == spelling.of(normal)


def test_the_form_of_texts() -> None:
    assert [form_of(texts) for texts in (["a"], ["\u00e9", "a"], ["e\u0301"], ["\u00e9", "e\u0301"])] == [
        "", "NFC", "NFD", "mixed",
    ]  # fmt: skip


def test_marks_in_the_order_of_typing_are_so_behind_other_letters_too() -> None:
    """Hebrew: dagesh before the vowel, where canonical order has the vowel first; Arabic: shadda before fatha."""
    hebrew = Spelling.learn(["\u05d1\u05bc\u05b8", "\u05d2\u05bc\u05b8", "\u05d3\u05bc\u05b8"])
    arabic = Spelling.learn(["\u0628\u0651\u064e", "\u062a\u0651\u064e"])
    assert hebrew is not None and arabic is not None
    assert (
        hebrew.of("\u05db\u05b8\u05bc") == "\u05db\u05bc\u05b8"
        and arabic.of("\u0633\u064e\u0651") == "\u0633\u0651\u064e"
    )
    assert Spelling(**vars(hebrew)) == hebrew
