"""Raw text as sentences: places in every unit, paragraphs, lines, and files that are read in parts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from trelliswork import reading as files
from trelliswork.data import Sentence
from trelliswork.errors import DataError
from trelliswork.text import OFFSETS, RuleTokeniser, Token, read_text, reading, sentences_in

HARD = '\ufeff😀 Zoë visited e\u0301vora.\r\nשלום עולם!\r\n \r\nThe 👩\u200d🚀 said: "ok".\rStill'
RULES = RuleTokeniser()


def written(folder: Path, text: str) -> Path:
    path = folder / "new.txt"
    path.write_bytes(text.encode())
    return path


def cut(text: str, place: tuple[int, int], unit: str) -> str:
    """What stands at a place that is counted in a unit."""
    start, end = place
    if unit == "code-points":
        return text[start:end]
    code = "utf-16-le" if unit == "utf-16" else "utf-8"
    width = 2 if unit == "utf-16" else 1
    return text.encode(code)[width * start : width * end].decode(code)


@pytest.mark.parametrize("unit", OFFSETS)
def test_places_are_those_of_the_file(tmp_path: Path, unit: str) -> None:
    text = HARD if unit == "bytes" else HARD.removeprefix("\ufeff")
    found = list(read_text(written(tmp_path, HARD), RULES, unit=unit))
    assert len(found) >= 3 and "👩\u200d🚀" in found[-2].words + found[-1].words
    for sentence in found:
        assert tuple(cut(text, place, unit) for place in sentence.offsets) == sentence.words
        assert sentence.text.startswith(sentence.words[0]) and sentence.text.endswith(sentence.words[-1])
    assert "".join(word for each in found for word in each.words) == "".join(text.removeprefix("\ufeff").split())


@pytest.mark.parametrize("unit", OFFSETS)
def test_places_in_a_text(unit: str) -> None:
    text = "A 😀 e\u0301. שלום!"
    for sentence in sentences_in(text, RULES, unit=unit):
        assert tuple(cut(text, place, unit) for place in sentence.offsets) == sentence.words


def test_a_line_break_is_white_space_and_a_blank_line_ends_a_sentence(tmp_path: Path) -> None:
    path = written(tmp_path, "one\ntwo three\n\n\nfour\n")
    assert [each.words for each in read_text(path, RULES)] == [("one", "two", "three"), ("four",)]
    assert [each.line for each in read_text(path, RULES)] == [1, 5]
    assert [each.words for each in read_text(path, RULES, by_line=True)] == [("one",), ("two", "three"), ("four",)]


def test_a_long_paragraph_is_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "One two three. " * 40 + "\n" + "Four 😀 five. Six\n" * 30
    path = written(tmp_path, text)
    whole = list(read_text(path, RULES, unit="bytes"))
    monkeypatch.setattr(reading._Part, "limit", 25)
    monkeypatch.setattr(reading, "LONG", 25)
    parts = list(read_text(path, RULES, unit="bytes"))
    assert parts == whole and [each.offsets for each in parts] == [each.offsets for each in whole]
    assert [each.line for each in parts] == [each.line for each in whole]


@pytest.mark.thorough
def test_memory_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No more than a few parts are ever tokenised at once, and the file is read as sentences are asked for."""
    monkeypatch.setattr(files, "READ_AT_A_TIME", 1 << 12)
    lengths: list[int] = []

    class Counting:
        def tokenise(self, text: str) -> list[list[Token]]:
            lengths.append(len(text))
            return RULES.tokenise(text)

    path = written(tmp_path, "A sentence without a blank line behind it.\n" * 50_000)
    stream: Iterator[Sentence] = read_text(path, Counting())
    next(stream)
    assert sum(lengths) < 2 * reading.LONG
    assert sum(1 for _ in stream) == 49_999 and max(lengths) < 2 * reading.LONG


@pytest.mark.parametrize("text", ["", "\n\n", "  \n"])
def test_nothing_to_read(tmp_path: Path, text: str) -> None:
    with pytest.raises(DataError, match="expected at least one line of text, got none"):
        list(read_text(written(tmp_path, text), RULES))


class French:
    """A tokeniser that knows words of tokens."""

    def tokenise(self, text: str) -> list[list[Token]]:
        return [[Token("du", 0, 2, ("de", "le")), Token("don't", 3, 8, ("do", "n't")), Token("go", 9, 11)]]


def test_words_of_a_token_have_their_own_place_if_they_are_spelled_like_it() -> None:
    (sentence,) = sentences_in("du don't go", French())
    assert sentence.words == ("de", "le", "do", "n't", "go")
    assert sentence.offsets == ((0, 2), (0, 2), (3, 5), (5, 8), (9, 11))
    assert sentence.multiword == ((0, 2, "du"), (2, 4, "don't"))
    assert sentence == Sentence(sentence.words) and "offsets" not in repr(sentence)
