"""The reader that fits a file's name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from trelliswork.data.conll import read_conll
from trelliswork.data.jsonl import read_jsonl
from trelliswork.data.sentence import Sentence

_JSON_SUFFIXES = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")


def is_jsonl(path: str | Path) -> bool:
    """Whether the name says JSON lines; everything else is read as CoNLL columns."""
    return str(path).lower().endswith(_JSON_SUFFIXES)


def reader_for(path: str | Path) -> Callable[..., Iterator[Sentence]]:
    """`read_jsonl` or `read_conll`, by suffix.

    >>> reader_for("dev.jsonl.gz").__name__, reader_for("dev.txt").__name__
    ('read_jsonl', 'read_conll')
    """
    return read_jsonl if is_jsonl(path) else read_conll
