"""The reader that fits a file's name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

from trelliswork.data.conll import read_conll
from trelliswork.data.crfsuite import is_crfsuite, read_crfsuite
from trelliswork.data.csv_files import is_csv, read_csv
from trelliswork.data.jsonl import read_jsonl
from trelliswork.data.sentence import Sentence

FileKind = Literal["conll", "jsonl", "csv", "crfsuite"]
_JSON_SUFFIXES = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
_READERS: dict[FileKind, Callable[..., Iterator[Sentence]]] = {
    "conll": read_conll, "jsonl": read_jsonl, "csv": read_csv, "crfsuite": read_crfsuite,
}  # fmt: skip


def is_jsonl(path: str | Path) -> bool:
    """Whether the name says JSON lines."""
    return str(path).lower().endswith(_JSON_SUFFIXES)


def file_kind(path: str | Path) -> FileKind:
    """What a file is by its suffix; CoNLL columns if that says nothing."""
    if is_jsonl(path):
        return "jsonl"
    return "csv" if is_csv(path) else "crfsuite" if is_crfsuite(path) else "conll"


def reader_for(path: str | Path) -> Callable[..., Iterator[Sentence]]:
    """`read_jsonl`, `read_csv`, `read_crfsuite` or `read_conll`, by suffix.

    >>> reader_for("dev.jsonl.gz").__name__, reader_for("dev.csv").__name__, reader_for("dev.txt").__name__
    ('read_jsonl', 'read_csv', 'read_conll')
    """
    return _READERS[file_kind(path)]
