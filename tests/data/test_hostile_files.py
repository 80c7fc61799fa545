"""Files made to hang, crash or fill the memory of their reader get a sentence, soon."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.soon import soon
from trelliswork import reading as files
from trelliswork.data import read_jsonl, read_vectors
from trelliswork.data.attributes import Templates
from trelliswork.data.crfsuite import is_crfsuite_model, read_crfsuite_model
from trelliswork.data.json_values import BadJSONError, parse_json
from trelliswork.errors import DataError
from trelliswork.fst.arpa import read_arpa
from trelliswork.fst.att import read_symbols

JSON_TEXTS = {
    "deep": ("[" * 100_000, "nested too deeply"),
    "digits": ("1" * 5_000, "a number of 5,000 digits is too large"),
    "infinite": ("[1e999]", "the number 1e999 is too large"),
    "constant": ("[-Infinity]", "-Infinity is not a number in JSON"),
    "nan": ('{"a": NaN}', "NaN is not a number in JSON"),
    "surrogate": ('{"a": ["\\uD800"]}', r"\ud800 is half of a surrogate pair, not a character"),
    "surrogate key": ('{"\\udfff": 1}', r"\udfff is half of a surrogate pair, not a character"),
    "not JSON": ("[1,", "Expecting value"),
}


@pytest.mark.parametrize("case", JSON_TEXTS)
def test_json_that_nothing_can_use(case: str) -> None:
    text, problem = JSON_TEXTS[case]
    with pytest.raises(BadJSONError) as raised:
        parse_json(text)
    assert raised.value.problem == problem


def test_json_that_is_unusual_and_fine() -> None:
    assert parse_json('["\\ud83d\\ude00", 1e308, 12345678901234567890]') == ["😀", 1e308, 12345678901234567890]


@pytest.mark.parametrize("case", [name for name in JSON_TEXTS if name != "not JSON"])
def test_lines_of_json(case: str, tmp_path: Path) -> None:
    value, problem = JSON_TEXTS[case]
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"tokens": ["Ann"], "tags": ["O"]}}\n{{"tokens": ["Ann"], "tags": ["O"], "x": {value}}}\n')
    with pytest.raises(DataError) as raised:
        list(read_jsonl(path))
    assert str(raised.value) == f"{path}:2: not valid JSON: {problem}"


@pytest.mark.parametrize("first", ["² 3", "٣ ²", f"{'9' * 5_000} 3"])
def test_the_first_line_of_vectors_is_a_header_only_with_plain_numbers(first: str, tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text(f"{first}\nthe 0.1 0.2 0.3\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"vectors\.txt:[12]: expected a word and"):
        read_vectors(path)


@pytest.mark.parametrize("number", ["-1000000000", "1001", "9" * 5_000])
def test_references_of_templates_are_bounded(number: str, tmp_path: Path) -> None:
    path = tmp_path / "template"
    path.write_text(f"U0:%x[0,0]\nU1:%x[{number},0]\n")
    with pytest.raises(DataError) as raised:
        Templates.read(path)
    assert str(raised.value).startswith(f"{path}:2: expected rows and columns of at most 1000 in %x[row,column], got ")
    assert len(str(raised.value)) < 300
    path.write_text("U1:%x[-1000,0]\n")
    assert Templates.read(path).templates[0].references[0].shift == -1000


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (f"ngram 1={'1' * 5_000}", ":2: expected "),
        (f"\\{'1' * 5_000}-grams:", ":2: expected "),
        (
            "ngram 900000000=0\n\\900000000-grams:\n\\end\\",
            ": \\data\\ must announce the orders",
        ),
    ],
)
def test_numbers_of_arpa_files_are_bounded(line: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "a.arpa"
    path.write_text(f"\\data\\\n{line}\n")
    with pytest.raises(DataError) as raised:
        read_arpa(path)
    assert str(raised.value).startswith(f"{path}{problem}") and len(str(raised.value)) < 300


def test_a_large_symbol_table_takes_linear_time(tmp_path: Path) -> None:
    path = tmp_path / "symbols"
    path.write_text("".join(f"s{i} {i}\n" for i in range(1, 100_000)))
    with soon():  # a minute, if each name is compared with all others
        assert len(read_symbols(path)) == 100_000
    path.write_text("a 1\na 2\n")
    with pytest.raises(DataError, match="occurs twice"):
        read_symbols(path)


class _CountingFile(gzip.GzipFile):
    """Counts what is unpacked."""

    n_read = 0

    def read(self, size: int | None = -1) -> bytes:
        found = super().read(size)
        _CountingFile.n_read += len(found)
        return found


def test_a_look_at_the_first_bytes_unpacks_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bomb"
    path.write_bytes(gzip.compress(b"a" * (8 << 20)))
    monkeypatch.setattr(files.gzip, "GzipFile", _CountingFile)
    assert not is_crfsuite_model(path)
    with pytest.raises(ValueError, match="line 1: expected the dump of a CRFsuite model"):
        read_crfsuite_model(path)
    assert 0 < _CountingFile.n_read <= 1 << 14


@pytest.mark.parametrize("letter", [b"\0", b"a"])
def test_a_line_without_end_is_not_unpacked_to_its_end(
    letter: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "LONGEST_LINE", 1 << 18)
    monkeypatch.setattr(files.gzip, "GzipFile", _CountingFile)
    path = tmp_path / "bomb.conll.gz"
    path.write_bytes(gzip.compress(b"one\n" + letter * (8 << 20)))
    _CountingFile.n_read = 0
    with pytest.raises(DataError, match=r"bomb\.conll\.gz:2: expected (UTF-8 text|lines of at most 262,144 bytes)"):
        list(files.numbered_lines(path))
    assert _CountingFile.n_read <= 1 << 19


@pytest.mark.parametrize("place", [12, 300, -6, -2])
def test_a_damaged_gzip_file_of_a_model(place: int, tmp_path: Path) -> None:
    path = tmp_path / "model.gz"
    content = bytearray(gzip.compress(bytes(range(256)) * 40, mtime=0))
    content[place] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"model\.gz: (not a whole gzip file|expected a CRFsuite model)"):
        read_crfsuite_model(path)
    path.write_bytes(content[:40])
    with pytest.raises(DataError, match="not a whole gzip file; copy or compress it again"):
        read_crfsuite_model(path)
