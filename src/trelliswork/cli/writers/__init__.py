"""Answers as text.

base.py         what a writer is
brackets.py     constituency trees
columns.py      CoNLL columns, CoNLL-U and CSV
foreign.py      a format that another package brings
json_lines.py   JSON lines, and arrays
kept.py         the file that was read, with only what is predicted replaced
page.py         an HTML page
parquet.py      rows of Parquet; imported when they are asked for
pairs.py        TSV of pairs: source, target, probability
pretty.py       for reading on a terminal; with rich, which is imported when it is asked for

A list of tags is written token by token, the answers of several tasks side by side, and any other value on one line
with its input.
"""

from trelliswork.cli.writers.base import Writer
from trelliswork.cli.writers.brackets import BracketWriter
from trelliswork.cli.writers.columns import ConlluWriter, ConllWriter, CsvWriter
from trelliswork.cli.writers.foreign import ForeignWriter
from trelliswork.cli.writers.json_lines import ArrayWriter, JsonWriter
from trelliswork.cli.writers.kept import KeptColumns, KeptConllu, KeptCsv, KeptRecords
from trelliswork.cli.writers.page import PageWriter
from trelliswork.cli.writers.pairs import PairWriter

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
