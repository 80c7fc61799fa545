"""The names of the attributes of a model in a file: one a line, read when somebody asks for them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import overload

import numpy as np

from trelliswork.data.folder_files import read_regular
from trelliswork.errors import ModelError

NAMES = "attributes.txt"


def names_text(names: Sequence[str]) -> str:
    """Names as the lines of a file."""
    return "".join(f"{_one_line(name)}\n" for name in names)


def _one_line(name: str) -> str:
    """Return a name as one line of a file; halves of surrogate pairs, which UTF-8 lacks, are spelled out."""
    return name.replace("\r", "\\r").replace("\n", "\\n").encode("utf-8", "backslashreplace").decode()


def read_names(folder: str | Path, n_attributes: int) -> Sequence[str]:
    """Return the names of the attributes, one a line; counted now, taken apart when one is asked for."""
    path = Path(folder) / NAMES
    text = read_regular(path)
    n_names = np.count_nonzero(np.frombuffer(text, np.uint8) == ord("\n"))  # a quarter of the time of `text.count`
    if n_names != n_attributes or (text and not text.endswith(b"\n")):
        raise ModelError(f"{path}: expected {n_attributes} names, got {n_names}; copy the model again")
    return NamesInLines(text, n_attributes)


class NamesInLines(Sequence[str]):
    """Names in UTF-8, one a line: the list is made when it is first needed, since tagging never does."""

    def __init__(self, text: bytes, n: int) -> None:
        self._text, self._n = text, n

    @cached_property
    def _names(self) -> list[str]:
        return self._text.decode("utf-8", errors="replace").split("\n")[:-1]

    @overload
    def __getitem__(self, i: int) -> str: ...
    @overload
    def __getitem__(self, i: slice) -> list[str]: ...
    def __getitem__(self, i: int | slice) -> str | list[str]:
        return self._names[i]

    def __len__(self) -> int:
        return self._n
