"""CSV files: what the columns are, where sentences end, and errors that name row and column."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from trelliswork.data import Choices, Sentence, open_csv, read_csv, reader_for
from trelliswork.errors import DataError

NER = """Sentence #,Word,POS,Tag
Sentence: 1,Ann,NNP,B-PER
,sings,VBZ,O
Sentence: 2,Bob,NNP,B-PER
,"says ""no"", twice",VBZ,O
"""
WANTED = [
    Sentence(("Ann", "sings"), ("B-PER", "O"), (("NNP", "VBZ"),), line=2),
    Sentence(("Bob", 'says "no", twice'), ("B-PER", "O"), (("NNP", "VBZ"),), line=4),
]


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "data.csv"
    path.write_text(text, encoding="utf-8")
    return path


def values(sentences: list[Sentence]) -> list[tuple[object, ...]]:
    return [(each.words, each.tags, each.features, each.line) for each in sentences]


@pytest.mark.parametrize(
    "text",
    [
        NER,
        NER.replace("\n,", "\nSentence: 1,", 1),  # an id on each row
        "\ufeff" + NER.replace("\n", "\r\n"),
        NER.replace('says ""no"", twice', 'says ""no"", twice').replace("Sentence #", "sent_id"),
        NER.replace("Word", "Token").replace("Tag", "label"),
    ],
    ids=["first row", "each row", "windows", "sent_id", "token"],
)
def test_sentences_by_id(tmp_path: Path, text: str) -> None:
    assert values(list(read_csv(written(tmp_path, text)))) == values(WANTED)


def test_sentences_by_blank_rows(tmp_path: Path) -> None:
    text = 'word;pos;tag\nAnn;NNP;B-PER\nsings;VBZ;O\n;;\n\nBob;NNP;B-PER\n"says ""no"", twice";VBZ;O\n'
    format, sentences = open_csv(written(tmp_path, text))
    assert [each.words for each in sentences] == [each.words for each in WANTED]
    assert (
        format.describe()
        == "CSV, 3 columns: sentences by blank rows, word = 1 (word), tag = 3 (tag, IOB2), features = 2 (pos)"
    )


def test_a_cell_may_hold_lines_and_lines_are_counted(tmp_path: Path) -> None:
    text = 'word,tag\n"two\nlines",O\nb,X\n\nc\n'
    with pytest.raises(DataError, match=r"data\.csv:6:1: expected 2 columns, got 1"):
        list(read_csv(written(tmp_path, text)))


def test_names_of_columns(tmp_path: Path) -> None:
    text = ",Sentence #,Word,POS,chunk,NER\n0,1,Ann,NNP,B-NP,B-PER\n1,1,sings,VBZ,B-VP,O\n"
    format, sentences = open_csv(written(tmp_path, text))
    assert (format.sentence_column, format.word_column, format.tag_column, format.feature_columns) == (2, 3, 6, (4, 5))
    assert next(sentences).tags == ("B-PER", "O")
    format, _ = open_csv(written(tmp_path, text), Choices(tag_column=5, feature_columns=()))
    assert (format.tag_column, format.feature_columns) == (5, ())


def test_another_file_by_name(tmp_path: Path) -> None:
    format, _ = open_csv(written(tmp_path, NER))
    other = "Tag,POS,Word\nO,VBZ,sings\n"
    (sentence,) = open_csv(written(tmp_path, other), format.choices())[1]
    assert (sentence.words, sentence.tags, sentence.features) == (("sings",), ("O",), (("VBZ",),))
    (sentence,) = open_csv(written(tmp_path, "pos,word\nVBZ,sings\n"), format.choices(), with_tags=False)[1]
    assert (sentence.words, sentence.tags, sentence.features) == (("sings",), None, (("VBZ",),))
    with pytest.raises(DataError, match=r"data.csv:1: expected a column 'POS' for the feature, got word, tag"):
        open_csv(written(tmp_path, "word,tag\na,b\n"), format.choices())


def test_without_tags(tmp_path: Path) -> None:
    format, (sentence,) = open_csv(written(tmp_path, "word,pos\nAnn,NNP\n"), with_tags=False)
    assert format.tag_column is None and sentence.features == (("NNP",),)


def test_packed_files_by_suffix(tmp_path: Path) -> None:
    path = tmp_path / "data.csv.gz"
    path.write_bytes(gzip.compress(NER.encode()))
    assert reader_for(path) is read_csv
    assert len(list(read_csv(path))) == 2


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", ": expected a header such as word,tag and at least one sentence, got an empty file"),
        ("word,tag\n", ": expected at least one sentence below the header, got none"),
        ("a,b\nx,y\n", ":1: expected a header with a column called word or token, got a, b"),
        ("word\nx\n", ":1: expected a column of tags in addition to the words, got word"),
        ("word,tag\nAnn,O\nBob\n", ":3:1: expected 2 columns, got 1"),
        ("word,tag\nAnn,O\nBob,O,x\n", ":3:3: expected 2 columns, got 3"),
        ("word,tag\nAnn,O\n,O\n", ":3:1: expected a word, got an empty column"),
        ("word,tag\nAnn,O\nBob,\n", ":3:2: expected a value, got an empty column"),
        ('word,tag\nAnn,O\n"Bob,O\nx,O\n', ":3: expected cells in quotes"),
        ('word,tag\n"Ann"x,O\n', ":2: expected cells in quotes"),
        ("word,tag\nA\0nn,O\n", ":2: expected UTF-8 text, got a binary"),
    ],
)
def test_bad_rows_are_named(tmp_path: Path, text: str, problem: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(DataError) as caught:
        list(read_csv(path))
    assert str(caught.value).startswith(f"{path}{problem}")


@pytest.mark.parametrize(
    ("choices", "problem"),
    [
        (Choices(word_column=9), "expected the word column in 1..4, got 9"),
        (Choices(word_column=1), "expected words in column 1, got the ids of sentences"),
        (Choices(tag_column=7), "expected the tag column in 1..4, got 7"),
        (Choices(feature_columns=(3, 8)), "expected the feature column in 1..4, got 8"),
        (Choices(delimiter="||"), "expected one character between the columns"),
    ],
)
def test_bad_choices_are_named(tmp_path: Path, choices: Choices, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        open_csv(written(tmp_path, NER), choices)
