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
        ("a 1 2\nb 1\n", r"v\.txt:2: expected a word and 2 numbers, got 1 values; mend or drop the line"),
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
