"""BRAT standoff: texts with annotations in files of their own."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from trelliswork.data import Sentence, file_kind, read_brat, reader_for
from trelliswork.errors import DataError, TrellisworkWarning
from trelliswork.text import RuleTokeniser

TEXT = "😀 Ann Lee left.\nShe likes Gent!\n"
ANNOTATIONS = "T1\tPER 2 9\tAnn Lee\nT2\tLOC 26 30\tGent\n"


def document(folder: Path, name: str = "a", text: str = TEXT, annotations: str | None = ANNOTATIONS) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.txt").write_bytes(text.encode())
    if annotations is not None:
        (folder / f"{name}.ann").write_bytes(annotations.encode())
    return folder / f"{name}.ann"


def read(path: object, with_tags: bool = True) -> list[Sentence]:
    return list(read_brat(str(path), with_tags=with_tags, tokeniser=RuleTokeniser()))


def tags_of(sentences: list[Sentence]) -> list[Any]:
    return [sentence.tags for sentence in sentences]


def test_annotations_become_tags(tmp_path: Path) -> None:
    path = document(tmp_path)
    first, second = read(path)
    assert first.words == ("😀", "Ann", "Lee", "left", ".") and first.tags == ("O", "B-PER", "I-PER", "O", "O")
    assert second.tags == ("O", "O", "B-LOC", "O") and second.extra == {"document": "a"}
    assert (second.file, second.line, second.lines) == (str(tmp_path / "a.txt"), 2, (2, 2, 2, 2))
    assert [TEXT[start:end] for start, end in second.offsets] == list(second.words)


def test_a_folder_a_pattern_and_either_file_are_read(tmp_path: Path) -> None:
    document(tmp_path / "c", "b", "Bob.", "T1\tPER 0 3\tBob")
    document(tmp_path / "c", "a")
    for path in (tmp_path / "c", tmp_path / "c" / "*.ann"):
        assert [sentence.words[0] for sentence in read(path)] == ["😀", "She", "Bob"]
        assert file_kind(path) == "brat" and reader_for(path) is read_brat
    assert len(read(tmp_path / "c" / "b.txt")) == len(read(tmp_path / "c" / "b.ann")) == 1
    assert file_kind(tmp_path / "c" / "a.txt") == "brat" and file_kind(tmp_path / "c" / "z.txt") == "conll"


def test_texts_without_annotations_are_read_where_tags_do_not_matter(tmp_path: Path) -> None:
    document(tmp_path / "c")
    document(tmp_path / "c", "b", "Bob.", None)
    with pytest.warns(TrellisworkWarning, match=r"not used: 1 text without an \.ann file"):
        assert len(read(tmp_path / "c")) == 2
    assert tags_of(read(tmp_path / "c", with_tags=False)) == [None] * 3


@pytest.mark.parametrize(
    "text",
    [TEXT, TEXT.replace("\n", "\r\n"), f"\ufeff{TEXT}", "\ufeff" + TEXT.replace("\n", "\r\n")],
    ids=["as it was", "CRLF", "byte order mark", "both"],
)
def test_line_ends_and_marks_that_changed_since_do_not_matter(tmp_path: Path, text: str) -> None:
    assert tags_of(read(document(tmp_path, text=text)))[1] == ("O", "O", "B-LOC", "O")


def test_carriage_returns_that_were_counted_count(tmp_path: Path) -> None:
    counted = ANNOTATIONS.replace("26 30", "27 31")
    for text in (TEXT.replace("\n", "\r\n"), TEXT):  # the second has lost them since
        assert tags_of(read(document(tmp_path, text=text, annotations=counted)))[1] == ("O", "O", "B-LOC", "O")


def test_what_is_not_used_is_counted(tmp_path: Path) -> None:
    more = (
        "T3\tORG 2 5;6 9\tAnn Lee\nR1\tLikes Arg1:T1 Arg2:T2\nE1\tT2 Who:T1\nA1\tSure T1\nM1\tSure T2\n"
        "N1\tReference T1 Wiki:1\tAnn\n#1\tAnnotatorNotes T1\thm\n*\tEquiv T1 T2\n\n"
    )
    with pytest.warns(TrellisworkWarning) as caught:
        assert tags_of(read(document(tmp_path, annotations=ANNOTATIONS + more)))[1] == ("O", "O", "B-LOC", "O")
    (note,) = [str(each.message) for each in caught]
    assert note.endswith(
        "not used: 1 annotation of several pieces, 1 relation, 1 event, 2 attributes, 1 normalisation, 1 note, "
        "1 equivalence"
    )


def test_overlapping_and_loose_annotations_are_named_with_their_lines(tmp_path: Path) -> None:
    more = "T3\tORG 6 14\tLee left\nT4\tPER 3 9\tnn Lee\nT5\tPER 2 9\tAnn Lee\nT6\tX 9 15\t left.\n"
    path = document(tmp_path, annotations=ANNOTATIONS + more)
    with pytest.warns(TrellisworkWarning) as caught:
        assert tags_of(read(path))[0] == ("O", "B-PER", "I-PER", "B-X", "I-X")
    (note,) = [str(each.message) for each in caught]
    assert note.startswith("3 of 6 spans overlap others or do not begin and end with a token")
    assert all(f"{path}:{line}: " in note for line in (3, 4, 5)), note


@pytest.mark.parametrize(
    ("annotations", "line", "problem"),
    [
        ("T1\tPER 0 7\tAnn Lee\n", 1, "expected 'Ann Lee' (PER) at 0 to 7 of a.txt, got '😀 Ann L'"),
        ("\nT1\tPER 3 10\tAnn Lee\n", 2, "(it counts UTF-16 units); offsets must count code points from 0"),
        ("T1\tPER 5 12\tAnn Lee\n", 1, "(it counts bytes); offsets must count code points from 0"),
        ("T1\tPER 2 900\tAnn Lee\n", 1, f"got a text of {len(TEXT)} characters"),
        ("T1\tPER 9 2\tAnn\n", 1, "expected a start before the end, got 9 and 2"),
        ("T1\tPER\n", 1, "expected an annotation such as T1, a tab, a label, start and end"),
        ("Ann\tB-PER\n", 1, "expected an annotation such as T1"),
    ],
)
def test_wrong_annotations_are_one_sentence(tmp_path: Path, annotations: str, line: int, problem: str) -> None:
    with pytest.raises(DataError) as caught:
        read(document(tmp_path, annotations=annotations))
    assert str(caught.value).startswith(f"{tmp_path}/a.ann:{line}: ") and problem in str(caught.value)


def test_missing_files_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = document(tmp_path)
    (tmp_path / "a.txt").write_bytes(b"Ann\n\xff Lee")
    with pytest.raises(DataError, match=r"a\.txt:2: expected UTF-8 text, got the byte 0xff"):
        read(path)
    (tmp_path / "a.txt").unlink()
    with pytest.raises(DataError, match=r"a\.txt: no such file"):
        read(path)
    with pytest.raises(DataError, match=r"expected \.ann files, got none that match"):
        read(tmp_path / "z*.ann")
    with pytest.raises(DataError, match="expected at least one sentence"):
        read(document(tmp_path, text=" \n", annotations=""))


def test_nothing_is_said_of_clean_documents(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(read(document(tmp_path))) == 2


def test_a_long_document_takes_time_in_proportion_to_its_length(tmp_path: Path) -> None:
    def comparisons(n: int) -> int:
        text = "Ann left. " * n
        lines = [f"T{i}\tPER {10 * i} {10 * i + 3}\tAnn" for i in range(n)]
        path, n_calls = document(tmp_path, text=text, annotations="\n".join(lines)), 0

        def count(frame: Any, event: str, _: Any) -> None:
            nonlocal n_calls
            n_calls += 1

        sys.setprofile(count)
        try:
            assert len(read(path)) == n
        finally:
            sys.setprofile(None)
        return n_calls

    assert comparisons(800) < 5 * comparisons(200)
