"""Pairs of strings through the protocol of models: reading, training, storage, answers, scores, commands."""

from __future__ import annotations

import pytest

import trelliswork as tw
from tests.models.symbol_mapper import ENTRY, SymbolMapper
from trelliswork.data import PairFormat, Sentence, open_pairs, read_pairs
from trelliswork.data.choices import Choices
from trelliswork.errors import DataError
from trelliswork.models.catalogue import ENTRIES
from trelliswork.training import TrainingConfig, train

LINES = "ab\tA B\nba\tB A\nbb\tB B\naab\tA A B\n"


@pytest.fixture(autouse=True)
def catalogued(monkeypatch):
    monkeypatch.setitem(ENTRIES, ENTRY.name, ENTRY)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text(LINES, encoding="utf-8")
    return path


@pytest.fixture
def model(file, tmp_path):
    columns, pairs = open_pairs(file, Choices())
    made = SymbolMapper.from_data(pairs, format=columns.pairs)
    train(made, pairs, pairs, TrainingConfig(epochs=40, lr=0.2), out=tmp_path / "model")
    return made


def test_sides_are_cut_as_the_file_has_them(file):
    pairs = read_pairs(file)
    assert pairs[0] == Sentence(("a", "b"), target=("A", "B"), line=1, file=str(file))
    assert read_pairs(file, PairFormat("characters", "characters"))[0].target == ("A", " ", "B")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("ab\n", ":1: expected at least 2 columns"),
        ("ab\tA\n\tB\n", ":2: expected a source"),
        ("ab\tA\nb\t \n", ":2: expected a target"),
        ("", "the file is empty"),
    ],
)
def test_bad_files_are_told_with_their_line(tmp_path, text, told):
    path = tmp_path / "bad.tsv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=told):
        read_pairs(path)


def test_composed_characters_are_one_symbol_in_nfc_and_two_in_nfd(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("e\u0301\tx\n", encoding="utf-8")
    assert [len(read_pairs(path, PairFormat(normal_form=form))[0]) for form in ("auto", "NFC", "NFD", "none")] == [
        1, 1, 2, 2,
    ]  # fmt: skip


def test_several_targets_of_a_source_are_all_right(model):
    gold = [Sentence(("a", "b"), target=("B", "B")), Sentence(("a", "b"), target=("A", "B"))]
    scores = model.evaluate(gold)
    assert scores["word_error_rate"] == 0 and scores["symbol_error_rate"] == 0
    assert model.evaluate(gold[:1])["symbol_error_rate"] == 0.5


def test_a_stored_model_answers_the_same(model, tmp_path):
    again = tw.load(tmp_path / "model")
    answer = again.predict(["abba"], top_k=1)[0]
    assert answer.value == "A B B A" == model.predict("abba")[0].value
    assert answer.probability == pytest.approx(model.predict("abba")[0].probability)
    assert [(part.start, part.label) for part in answer.parts] == [(0, "A"), (1, "B"), (2, "B"), (3, "A")]
    assert again.format == model.format == PairFormat("characters", "blanks", "auto")


def test_the_commands_read_and_write_pairs(model, tmp_path, file, cli):
    words = tmp_path / "words.txt"
    words.write_text("ab\n\nbaa\n", encoding="utf-8")
    answer = cli("predict", tmp_path / "model", words)
    assert [line.split("\t")[:2] for line in answer.out.splitlines()] == [["ab", "A B"], ["baa", "B A A"]]
    scores = cli("evaluate", tmp_path / "model", file)
    assert "word error rate           0.00" in scores.out


def test_one_entry_of_the_catalogue_makes_it_a_name_of_every_command(cli, file, tmp_path):
    """Help, training, loading, the search for settings and the file that makes it again."""
    assert f"{ENTRY.name}: {ENTRY.phrase}" in cli("train", "--model", ENTRY.name, "--help").out
    assert ENTRY.name in cli("train", "--help").out
    out = tmp_path / "named"
    trained = cli("train", file, "--dev", file, "--model", ENTRY.name, "--out", out)
    assert trained.status == 0, trained.err
    assert isinstance(tw.load(out), SymbolMapper) and 'name = "symbol-mapper"' in (out / "config.toml").read_text()
    assert "A B" in cli("predict", out, file).out
    again = cli("train", out / "config.toml", "--out", tmp_path / "again")
    assert again.status == 0, again.err
    refused = cli("train", file, "--model", ENTRY.name, "--hidden", 8, "--out", tmp_path / "no")
    assert refused.status == 2 and "--hidden is not used by --model symbol-mapper" in refused.err
