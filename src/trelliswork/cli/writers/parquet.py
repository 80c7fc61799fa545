"""Answers as rows of Parquet: a row for each sentence, in columns whose types depend on the kind of model alone.

So all files of a job have the same columns, and a folder of them is one dataset. What was not asked for is null.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from trelliswork.cli.writers.base import Writer, in_a_line
from trelliswork.cli.writers.json_lines import JsonWriter
from trelliswork.data import Sentence
from trelliswork.data.jsonl import json_record
from trelliswork.data.parquet import ROWS, opened_parquet, pa, pq
from trelliswork.errors import TrellisworkError
from trelliswork.models.base import Answer, Model

NUMBER, TEXT, SHARE, FLAG = pa.int64(), pa.string(), pa.float64(), pa.bool_()
NUMBERS, TEXTS, SHARES = pa.list_(NUMBER), pa.list_(TEXT), pa.list_(SHARE)
EXTRA = "extra"  # the column of what else records of JSON say, as JSON
Types = Mapping[str, pa.DataType]


def rows_of(**members: pa.DataType) -> pa.DataType:
    """Return the type of a list of structs."""
    return pa.list_(pa.struct(list(members.items())))


PART = {"start": NUMBER, "end": NUMBER, "label": TEXT, "probability": SHARE}
READ: Types = {"text": TEXT, "tokens": TEXTS, "offsets": pa.list_(NUMBERS), "features": pa.list_(TEXTS)}
TAGS: Types = {
    "tags": TEXTS, "lemmas": TEXTS, "confidences": SHARES,
    "spans": rows_of(**PART, text=TEXT, start_char=NUMBER, end_char=NUMBER),
    "analyses": rows_of(probability=SHARE, tags=TEXTS),
}  # fmt: skip
VALUE: Types = {"value": TEXT, "probability": SHARE, "alternatives": rows_of(probability=SHARE, value=TEXT)}
ANSWERS: Mapping[str, Types] = {  # by what models learn from
    "tags": TAGS,
    "heads": {
        "heads": NUMBERS, "labels": TEXTS, "lemmas": TEXTS, "upos": TEXTS, "xpos": TEXTS, "feats": TEXTS,
        "head_probabilities": SHARES, "arc_probabilities": SHARES, "probability": SHARE,
        "analyses": rows_of(probability=SHARE, heads=NUMBERS, labels=TEXTS),
    },
    "brackets": {
        "tree": TEXT, "tags": TEXTS, "confidences": SHARES, "brackets": rows_of(**PART), "probability": SHARE,
        "analyses": rows_of(probability=SHARE, tree=TEXT),
    },
    "pairs": {
        **VALUE, "certain": FLAG, "unknown": TEXTS,
        "symbols": rows_of(symbol=TEXT, start=NUMBER, end=NUMBER, probability=SHARE),
    },
    "events": {
        **VALUE, "search": TEXT, "spans": rows_of(**PART, head=NUMBER), "parts": rows_of(**PART, head=NUMBER),
    },
}  # fmt: skip


def answer_types(model: Model) -> dict[str, pa.DataType]:
    """Return the columns that the answers of a model fill."""
    if any(model.heads):
        tasks = pa.struct([(name, pa.struct(list(TAGS.items()))) for name in model.heads])
        return {**READ, "tags": TEXTS, "tasks": tasks}
    return {**READ, **ANSWERS.get(model.learns_from, VALUE)}


class ParquetWriter(Writer):
    """Rows with all columns of the Parquet file `source`, if it was one, and those of the answers behind them.

    A column of answers replaces one of the same name. Without `source`, what else records of JSON say is in `extra`.

    Args:
        model: The model that answers.
        lines: The writer that makes the members of each record.
        source: The file that was read; None if it was not Parquet.
    """

    def __init__(self, model: Model, lines: JsonWriter, source: str | None) -> None:
        self.name, self.lines = type(model).__name__, lines
        self.types = answer_types(model)
        self.others = {EXTRA: TEXT} if source is None else _other_types(source, self.types)
        self.is_copied = source is not None
        self.waiting: list[dict[str, object]] = []
        self.chunks = _Chunks()
        self.schema = pa.schema(list({**self.others, **self.types}.items()))

    def begin(self) -> bytes:
        self.file = pq.ParquetWriter(self.chunks, self.schema)
        return self.chunks.taken()

    def write(self, sentence: Sentence, answer: Answer) -> bytes:
        self.waiting.append(self._row(sentence, answer))
        if len(self.waiting) == ROWS:
            self._flush()
        return self.chunks.taken()

    def end(self) -> bytes:
        self._flush()
        self.file.close()
        return self.chunks.taken()

    def _row(self, sentence: Sentence, answer: Answer) -> dict[str, object]:
        written, about = self.lines.members(replace(sentence, extra={}), answer)
        row = json_record(written, **about)
        for name in sorted(row.keys() - self.types.keys()):
            raise TrellisworkError(f"Parquet has no column for {name!r} of a {self.name}; add --format jsonl")
        if "value" in row:
            row["value"] = in_a_line(row["value"])
            others = row.get("alternatives", ())
            row["alternatives"] = [{**each, "value": in_a_line(each["value"])} for each in others] or None
        if self.is_copied:
            return {**{name: sentence.extra.get(name) for name in self.others}, **row}
        return {EXTRA: json.dumps(sentence.extra, ensure_ascii=False) if sentence.extra else None, **row}

    def _flush(self) -> None:
        columns = [pa.array([row.get(field.name) for row in self.waiting], field.type) for field in self.schema]
        self.waiting = []
        self.file.write_table(pa.Table.from_arrays(columns, schema=self.schema))


def _other_types(source: str, answers: Types) -> dict[str, pa.DataType]:
    with opened_parquet(source) as file:
        return {field.name: field.type for field in file.schema_arrow if field.name not in answers}


class _Chunks(io.RawIOBase):
    """Bytes that Arrow writes, until they are taken."""

    def __init__(self) -> None:
        self._bytes: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        self._bytes.append(bytes(content))
        return len(self._bytes[-1])

    def taken(self) -> bytes:
        content, self._bytes = b"".join(self._bytes), []
        return content
