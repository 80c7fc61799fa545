"""ARPA files: what is written is read back, and what is wrong is named with its line."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import pytest

from trelliswork.errors import DataError, OutputError, ScoreError
from trelliswork.fst import NGramModel, read_arpa, write_arpa

CORPUS = ["abab", "abc", "aab", "cab", "b", "bca"]


@pytest.mark.parametrize("method", ["witten-bell", "kneser-ney"])
@pytest.mark.parametrize("order", [1, 3])
def test_a_model_comes_back(tmp_path: Path, method: str, order: int) -> None:
    model = NGramModel.train(CORPUS, order, method=method, unknown="<unk>")
    write_arpa(model, tmp_path / "m.arpa")
    back = read_arpa(tmp_path / "m.arpa")
    assert back.order == order and back.unknown == "<unk>"
    for sentence in map("".join, itertools.chain(*(itertools.product("abcz", repeat=n) for n in range(4)))):
        assert back.score(sentence) == pytest.approx(model.score(sentence), abs=1e-6)


HAND = """\\data\\
ngram 1=4
ngram 2=1

\\1-grams:
-99 <s> -0.5
-0.5 </s>
-0.25 a -0.125
-1 b

\\2-grams:
-0.1 <s> a

\\end\\
"""


def test_probabilities_of_a_file_written_by_hand(tmp_path: Path) -> None:
    (tmp_path / "m.arpa").write_text(HAND)
    model = read_arpa(tmp_path / "m.arpa")
    ten = math.log(10)
    assert model.score("a") == pytest.approx((-0.1 - 0.125 - 0.5) * ten)  # a was seen at the start; its end backs off
    assert model.score("b") == pytest.approx((-0.5 - 1 - 0.5) * ten)
    assert model.score("ba") == pytest.approx((-0.5 - 1 - 0.25 - 0.125 - 0.5) * ten)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("-0.5 </s>", "-0.5 </s> x y z", r"m.arpa:7: expected a logarithm, 1 words"),
        ("-0.25 a -0.125", "much a -0.125", r"m.arpa:8: expected numbers"),
        ("-0.25 a -0.125", "0.25 a -0.125", r"m.arpa:8: log probabilities must be at most 0"),
        ("-0.1 <s> a", "-0.1 <s> z", r"m.arpa:12: 'z' is not among the 1-grams"),
        ("ngram 2=1", "ngram 2=2", r"m.arpa: \\data\\ announces 2 n-grams of order 2; got 1"),
        ("ngram 2=1", "", r"m.arpa:11: a section of order 2"),
        ("\\data\\", "data", r"m.arpa:1: expected \\data\\"),
        ("\\end\\", "", r"m.arpa: expected .* before the end of the file"),
        ("-0.5 </s>", "-0.5 c", r"m.arpa: the 1-grams must contain </s>"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, old: str, new: str, problem: str) -> None:
    assert old in HAND
    (tmp_path / "m.arpa").write_text(HAND.replace(old, new, 1))
    with pytest.raises(DataError, match=problem):
        read_arpa(tmp_path / "m.arpa")


def test_words_with_blanks_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="must not contain spaces; got 'a b'"):
        write_arpa(NGramModel.train([["a b"]], 2), tmp_path / "m.arpa")
    assert not (tmp_path / "m.arpa").exists()


@pytest.mark.parametrize(
    ("grams", "problem"),
    [
        ("-1 a\n-2 a\n-1 </s>\n", "m.arpa:5: the n-gram 'a' is listed twice; remove one"),
        ("-1 a\n-2 b\n-1 </s>\n\\1-grams:\n", "m.arpa:7: a second section of order 1"),
    ],
)
def test_what_is_there_twice_is_named_with_its_line(tmp_path: Path, grams: str, problem: str) -> None:
    (tmp_path / "m.arpa").write_text(f"\\data\\\nngram 1=3\n\\1-grams:\n{grams}\\end\\\n")
    with pytest.raises(DataError, match=problem):
        read_arpa(tmp_path / "m.arpa")


def test_a_model_says_what_it_is() -> None:
    model = NGramModel.train(CORPUS, 2)
    assert repr(model).startswith("NGramModel(order=2, words=3, histories=")
    with pytest.raises(ScoreError, match="perplexity needs at least one sentence"):
        model.perplexity([])
    with pytest.raises(ScoreError, match=r"order at least 1; got 'witten-bell' and 1\.5"):
        NGramModel.train(CORPUS, 1.5)  # type: ignore[arg-type]


@pytest.mark.parametrize(("word", "unknown"), [("<s>", None), ("</s>", None), ("<unk>", "other")])
def test_words_that_the_format_takes_for_itself_are_not_written(tmp_path: Path, word: str, unknown: str | None) -> None:
    model = NGramModel.train([["a", word], ["a"]], 2, unknown=unknown)
    with pytest.raises(OutputError, match=f"{word} is reserved in ARPA files"):
        write_arpa(model, tmp_path / "m.arpa")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("word", ["", "<eps>"])
def test_the_empty_symbol_is_no_word(word: str) -> None:
    with pytest.raises(ScoreError, match="the names of the empty symbol"):
        NGramModel.train([["a", word]])


def test_sections_may_come_in_any_order_and_back_offs_may_be_missing(tmp_path: Path) -> None:
    ones, twos = HAND.split("\\2-grams:\n")[0].split("\\1-grams:\n")[1], "-0.1 <s> a\n"
    text = f"\\data\\\nngram 2=1\nngram 1=4\n\n\\2-grams:\n{twos}\n\\1-grams:\n{ones}\\end\\\n"
    (tmp_path / "m.arpa").write_text(text.replace("\t", " "))
    (tmp_path / "hand.arpa").write_text(HAND)
    ours, hand = read_arpa(tmp_path / "m.arpa"), read_arpa(tmp_path / "hand.arpa")
    assert [ours.score(each) for each in ("a", "b", "ba")] == [hand.score(each) for each in ("a", "b", "ba")]
    (tmp_path / "bare.arpa").write_text(HAND.replace(" -0.5\n", "\n", 1).replace(" -0.125", ""))
    assert read_arpa(tmp_path / "bare.arpa").score("b") == pytest.approx((-1 - 0.5) * math.log(10))
    with pytest.raises(ScoreError, match="'z' is not in the symbol table"):
        hand.score("z")
