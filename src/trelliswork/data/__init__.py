"""Readers and writers of tagged text, vocabularies and batching.

sentence.py, vector_sequence.py, events.py, arcs.py    what is read: words with tags, vectors, events, trees
readers.py, choices.py, files.py    the reader that fits a file
columns.py, conll.py, csv_files.py, csv_header.py    tokens as lines: CoNLL columns, CSV
treebank.py, brackets.py    trees: CoNLL-U, brackets
jsonl.py, json_*.py         JSON records of several shapes
crfsuite.py, crfsuite_*.py  CRFsuite's data and models
plain_text.py               plain text told from columns
raw_sentences.py, cutting.py, kept_lines.py    raw text; tokens cut smaller; a file given back with one column replaced
vocabulary.py, vectors.py, batching.py, baseline.py    for taggers
spilled.py                  sentences in a temporary file, for data larger than memory
settings.py, folder_files.py, weight_files.py    settings as fields of dataclasses; folders of models
attributes/, corpus/        attributes of tokens by templates; the built-in corpora
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trelliswork.lazy import lazy_names
from trelliswork.writing import atomic_write

if TYPE_CHECKING:
    from trelliswork.data.baseline import MajorityBaseline
    from trelliswork.data.batching import token_budget_batches
    from trelliswork.data.brackets import read_brackets
    from trelliswork.data.brat import read_brat
    from trelliswork.data.choices import Choices
    from trelliswork.data.columns import ColumnFormat, conll_text
    from trelliswork.data.conll import infer_format, open_conll, read_conll
    from trelliswork.data.crfsuite import read_crfsuite
    from trelliswork.data.csv_files import CsvFormat, open_csv, read_csv
    from trelliswork.data.cutting import FINE_TOKENS, cut_tokens
    from trelliswork.data.files import open_text
    from trelliswork.data.formats import FileFormat
    from trelliswork.data.json_fields import JsonFields
    from trelliswork.data.jsonl import json_text, read_jsonl
    from trelliswork.data.pairs import PairFormat, open_pairs, read_pairs
    from trelliswork.data.readers import FileKind, file_kind, is_jsonl, reader_for
    from trelliswork.data.sentence import Sentence
    from trelliswork.data.treebank import read_treebank
    from trelliswork.data.vector_sequence import VectorSequence
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
    "columns": "ColumnFormat conll_text",
    "conll": "infer_format open_conll read_conll",
    "crfsuite": "read_crfsuite",
    "csv_files": "CsvFormat open_csv read_csv",
    "cutting": "FINE_TOKENS cut_tokens",
    "files": "open_text",
    "formats": "FileFormat",
    "json_fields": "JsonFields",
    "jsonl": "json_text read_jsonl",
    "pairs": "PairFormat open_pairs read_pairs",
    "readers": "FileKind file_kind is_jsonl reader_for",
    "sentence": "Sentence",
    "treebank": "read_treebank",
    "vector_sequence": "VectorSequence",
    "vectors": "WordVectors read_vectors",
    "vocabulary": "Vocabulary",
}
__getattr__ = lazy_names(__name__, _HOMES)
