"""ARPA files: what is written is read back, and what is wrong is named with its line."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import pytest

from trelliswork.errors import DataError, OutputError
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
        ("-0.25 a -0.125", "0.25 a -0.125", r"m.arpa:8: a log probability must not be above 0"),
        ("-0.1 <s> a", "-0.1 <s> z", r"m.arpa:12: 'z' is not among the 1-grams"),
        ("ngram 2=1", "ngram 2=2", r"m.arpa: \\data\\ announces 2 n-grams of order 2; got 1"),
        ("ngram 2=1", "", r"m.arpa:11: a section of order 2"),
        ("\\data\\", "data", r"m.arpa:1: expected \\data\\"),
        ("\\end\\", "", r"m.arpa: the file ends before"),
        ("-0.5 </s>", "-0.5 c", r"m.arpa: the 1-grams must contain </s>"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, old: str, new: str, problem: str) -> None:
    assert old in HAND
    (tmp_path / "m.arpa").write_text(HAND.replace(old, new, 1))
    with pytest.raises(DataError, match=problem):
        read_arpa(tmp_path / "m.arpa")


def test_words_with_blanks_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="'a b' contains one"):
        write_arpa(NGramModel.train([["a b"]], 2), tmp_path / "m.arpa")
    assert not (tmp_path / "m.arpa").exists()
