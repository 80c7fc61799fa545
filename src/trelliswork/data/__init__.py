"""Readers and writers of tagged text, vocabularies and batching.

sentence.py, events.py, event_frames.py        what is read: words with tags, vectors, events and their frames
readers.py, choices.py                         the reader that fits a file, formats of other packages
columns.py, conll.py, csv_files.py, pairs.py   tokens as lines: CoNLL columns, CSV; pairs of strings
treebank.py, brackets.py                       trees: CoNLL-U, brackets
jsonl.py, json_shapes.py, json_values.py       JSON records of several shapes
brat.py, parquet.py, database.py               BRAT folders, Parquet, the databases of questions
crfsuite.py                                    CRFsuite's data and models
raw_sentences.py, kept_lines.py                raw text, tokens cut smaller; a file given back with one column replaced
vocabulary.py, vectors.py, batching.py, baseline.py, subwords.py    for models
spilled.py                                     sentences in a temporary file, for data larger than memory
settings.py, folder_files.py, weight_files.py  settings as fields of dataclasses; folders of models
attributes/, corpus/                           attributes of tokens by templates; the built-in corpora
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trelliswork.lazy import lazy_names
from trelliswork.reading import open_text
from trelliswork.writing import atomic_write

if TYPE_CHECKING:
    from trelliswork.data.baseline import MajorityBaseline
    from trelliswork.data.batching import token_budget_batches
    from trelliswork.data.brackets import read_brackets
    from trelliswork.data.brat import read_brat
    from trelliswork.data.choices import Choices
    from trelliswork.data.conll import ColumnFormat, conll_text, infer_format, open_conll, read_conll
    from trelliswork.data.crfsuite import read_crfsuite
    from trelliswork.data.csv_files import CsvFormat, open_csv, read_csv
    from trelliswork.data.json_shapes import JsonFields
    from trelliswork.data.jsonl import json_text, read_jsonl
    from trelliswork.data.pairs import PairFormat, open_pairs, read_pairs
    from trelliswork.data.raw_sentences import FINE_TOKENS, cut_tokens
    from trelliswork.data.readers import FileFormat, FileKind, file_kind, is_jsonl, reader_for
    from trelliswork.data.sentence import Sentence, VectorSequence
    from trelliswork.data.treebank import read_treebank
    from trelliswork.data.vectors import WordVectors, read_vectors
    from trelliswork.data.vocabulary import Vocabulary

__all__ = [
    "FINE_TOKENS",
    "Choices",
    "ColumnFormat",
    "CsvFormat",
    "FileFormat",
    "FileKind",
    "JsonFields",
    "MajorityBaseline",
    "PairFormat",
    "Sentence",
    "VectorSequence",
    "Vocabulary",
    "WordVectors",
    "atomic_write",
    "conll_text",
    "cut_tokens",
    "file_kind",
    "infer_format",
    "is_jsonl",
    "json_text",
    "open_conll",
    "open_csv",
    "open_pairs",
    "open_text",
    "read_brackets",
    "read_brat",
    "read_conll",
    "read_crfsuite",
    "read_csv",
    "read_jsonl",
    "read_pairs",
    "read_treebank",
    "read_vectors",
    "reader_for",
    "token_budget_batches",
]

# Help and the first checks of a command do without NumPy.
_HOMES = {
    "baseline": "MajorityBaseline",
    "batching": "token_budget_batches",
    "brackets": "read_brackets",
    "brat": "read_brat",
    "choices": "Choices",
    "conll": "ColumnFormat conll_text infer_format open_conll read_conll",
    "crfsuite": "read_crfsuite",
    "csv_files": "CsvFormat open_csv read_csv",
    "json_shapes": "JsonFields",
    "jsonl": "json_text read_jsonl",
    "pairs": "PairFormat open_pairs read_pairs",
    "raw_sentences": "FINE_TOKENS cut_tokens",
    "readers": "FileFormat FileKind file_kind is_jsonl reader_for",
    "sentence": "Sentence VectorSequence",
    "treebank": "read_treebank",
    "vectors": "WordVectors read_vectors",
    "vocabulary": "Vocabulary",
}
__getattr__ = lazy_names(__name__, _HOMES)
