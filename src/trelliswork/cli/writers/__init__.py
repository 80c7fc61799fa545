"""Answers as text.

base.py         what a writer is
columns.py      CoNLL columns, CoNLL-U and CSV
json_lines.py   JSON lines, and arrays
kept.py         the file that was read, with only what is predicted replaced
page.py         an HTML page
parquet.py      rows of Parquet; imported when they are asked for
pretty.py       for reading on a terminal; with rich, which is imported when it is asked for

A list of tags is written token by token, the answers of several tasks side by side, and any other value on one line
with its input.
"""

from trelliswork.cli.writers.base import Writer
from trelliswork.cli.writers.columns import (
    BracketWriter,
    ConlluWriter,
    ConllWriter,
    CsvWriter,
    ForeignWriter,
    PairWriter,
)
from trelliswork.cli.writers.json_lines import ArrayWriter, JsonWriter
from trelliswork.cli.writers.kept import KeptColumns, KeptConllu, KeptCsv, KeptRecords
from trelliswork.cli.writers.page import PageWriter

__all__ = [
    "ArrayWriter",
    "BracketWriter",
    "ConllWriter",
    "ConlluWriter",
    "CsvWriter",
    "ForeignWriter",
    "JsonWriter",
    "KeptColumns",
    "KeptConllu",
    "KeptCsv",
    "KeptRecords",
    "PageWriter",
    "PairWriter",
    "Writer",
]
