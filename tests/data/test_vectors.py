"""Word vectors from text files."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from trelliswork.data import read_vectors
from trelliswork.errors import DataError


def write(path: Path, text: str) -> Path:
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.mark.parametrize("name", ["v.txt", "v.gz"])
@pytest.mark.parametrize("header", ["", "3 2\n"])
def test_glove_word2vec_and_fasttext(tmp_path: Path, name: str, header: str) -> None:
    found = read_vectors(write(tmp_path / name, f"{header}the 1 -2.5\n. . 0.5 1e-3 \nthe 9 9\nÜ 0 1\n"))
    assert found.words == ("the", ". .", "Ü")
    np.testing.assert_array_equal(found.matrix, np.array([[1, -2.5], [0.5, 1e-3], [0, 1]], np.float32))
    assert found.dim == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a 1 2\nb 1\n", r"v\.txt:2: expected a word and 2 numbers, got 1 values; correct or drop the line"),
        ("a 1 2\nb 1 2 3\n", r"v\.txt:2: expected a word and 2 numbers, got 3 values"),
        ("a 1 2\nb 1 x\n", r"v\.txt:2: expected a word and 2 numbers, got 'x'"),
        ("a 1 2\nb 1 nan\n", r"v\.txt:2: expected a word and 2 numbers, got 'nan'"),
        ("2 3\na 1 2 3\nb 1 2\n", r"v\.txt:3: expected a word and 3 numbers, got 2 values"),
        ("\n", r"v\.txt: expected word vectors, .* got none"),
    ],
)
def test_bad_lines_are_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_vectors(write(tmp_path / "v.txt", text))


def test_the_first_word_may_have_spaces(tmp_path: Path) -> None:
    found = read_vectors(write(tmp_path / "v.txt", "New York 1 2\n1990 3 4\n"))
    assert (found.words, found.dim) == (("New York", "1990"), 2)
    assert read_vectors(write(tmp_path / "n.txt", "1990 3 4\n. 1 2\n")).words == ("1990", ".")


def test_a_header_promises_a_number_of_vectors(tmp_path: Path) -> None:
    assert read_vectors(write(tmp_path / "v.txt", "3 2\na 1 2\n")).n_announced == 3
    assert read_vectors(write(tmp_path / "w.txt", "a 1 2\n")).n_announced is None


@pytest.mark.parametrize(("text", "line"), [("the\nof\n", 1), ("\nKim NNP B-NP\n", 2)])
def test_a_file_without_numbers_is_refused(tmp_path: Path, text: str, line: int) -> None:
    with pytest.raises(DataError, match=rf"v\.txt:{line}: expected a word and its numbers, got '.*'; give vectors as"):
        read_vectors(write(tmp_path / "v.txt", text))


def test_gzip_is_known_by_its_first_bytes_and_damage_is_told(tmp_path: Path) -> None:
    packed = gzip.compress("".join(f"w{i} {i} 2\n" for i in range(5000)).encode())
    (tmp_path / "v.vec").write_bytes(packed)
    assert len(read_vectors(tmp_path / "v.vec").words) == 5000
    for damaged in (packed[: len(packed) // 2], packed[:2000] + b"\xff" * 100 + packed[2100:]):
        (tmp_path / "v.gz").write_bytes(damaged)
        with pytest.raises(DataError, match="not a whole gzip file; copy or compress it again"):
            read_vectors(tmp_path / "v.gz")
