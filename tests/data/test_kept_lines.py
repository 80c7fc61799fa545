"""A file comes back as it is, but for what is replaced."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trelliswork.data import open_conll
from trelliswork.data.kept_lines import KeptLines, replaced_cell, replaced_column, replaced_last, replaced_member
from trelliswork.reading import numbered_lines


@pytest.mark.parametrize(
    ("line", "delimiter", "column", "expected"),
    [
        ("1\tAnn\t_\tX\t_\n", "\t", 4, "1\tAnn\t_\tNEW\t_\n"),
        ("Ann NNP O \r\n", " ", 3, "Ann NNP NEW \r\n"),
        ("Ann\n", "\t", 2, "Ann\tNEW\n"),
        ("Ann", "\t", 2, "Ann\tNEW"),
        ("  Ann \t NNP   O\n", None, 2, "  Ann \t NEW   O\n"),
        ("Ann   NNP\n", None, 3, "Ann   NNP   NEW\n"),
    ],
)
def test_a_column(line: str, delimiter: str | None, column: int, expected: str) -> None:
    assert replaced_column(line, delimiter, column, "NEW") == expected


CELLS = st.lists(st.text(st.sampled_from('ab",;\n é'), max_size=5), min_size=1, max_size=5)


@given(CELLS, st.data(), st.text(st.sampled_from('xy",'), min_size=1, max_size=4))
def test_a_cell(cells: list[str], data: st.DataObject, value: str) -> None:
    column = data.draw(st.integers(1, len(cells)))
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL).writerow(cells)
    found = next(csv.reader(io.StringIO(replaced_cell(text.getvalue(), ",", column, value), newline="")))
    assert found == [*cells[: column - 1], value, *cells[column:]]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('{"tags": ["a"], "id": 1.00}\n', '{"tags": ["NEW"], "id": 1.00}\n'),
        ('{ "x" : {"tags": [1]} ,"tags":[] }\r\n', '{ "x" : {"tags": [1]} ,"tags":["NEW"] }\r\n'),
        ('{"tokens": ["\\u00e9"]}\n', '{"tokens": ["\\u00e9"], "tags": ["NEW"]}\n'),
        ("{}", '{"tags": ["NEW"]}'),
        ('  {"a\\"}": "}"  }\n', '  {"a\\"}": "}", "tags": ["NEW"]}\n'),
    ],
)
def test_a_member(line: str, expected: str) -> None:
    assert replaced_member(line, "tags", ["NEW"]) == expected
    assert json.loads(expected)["tags"] == ["NEW"]


def test_what_is_not_wanted_is_not_kept() -> None:
    kept = KeptLines()
    kept.keep(b"a\n")
    kept.forget()
    kept.keep(b"b\n")
    assert kept.rest() == ""


LINES = st.lists(st.lists(st.text(st.sampled_from("ab "), min_size=1, max_size=2), min_size=2, max_size=3), min_size=1)


@given(LINES, st.sampled_from(["\t", " "]), st.integers(1, 4), st.sampled_from(["\n", "\r\n", " \n"]))
def test_all_lines_at_once_are_as_one_by_one(rows: list[list[str]], delimiter: str, column: int, newline: str) -> None:
    lines = [delimiter.join(row) + newline for row in rows]
    values = [f"T{i}" for i in range(len(lines))]
    found = replaced_last(lines, delimiter, 3, column, values)
    if found is not None:
        one_by_one = zip(lines, values, strict=True)
        assert found == "".join(replaced_column(line, delimiter, column, value) for line, value in one_by_one)


@pytest.mark.parametrize("ending", ["", "\n", "\n\n\n", "\n# end"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_only_the_tags_of_tokens_change(tmp_path: Path, ending: str, newline: str) -> None:
    rows = ["\ufeff-DOCSTART- -X- O", "", "", "Ann NNP B-PER", "sings VBZ O", "", "Stop VB O"]
    text = newline.join(rows) + ending.replace("\n", newline)
    file = tmp_path / "a.conll"
    file.write_bytes(text.encode())
    kept = KeptLines()
    for _ in numbered_lines(file, kept.keep):
        pass
    format, sentences = open_conll(file)
    out = [
        kept.changed(each, lambda i, line: replaced_column(line, format.delimiter, 3, f"T{i}")) for each in sentences
    ]
    expected = text.replace("B-PER", "T0").replace("VBZ O", "VBZ T1").replace("VB O", "VB T0")
    assert "".join(out) + kept.rest() == expected
