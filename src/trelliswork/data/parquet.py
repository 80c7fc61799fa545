"""Sentences as rows of Parquet files, through Apache Arrow (extra `[arrow]`).

A row is read like a record of JSON lines: its columns are the members, see `json_shapes`. Columns that JSON has no type
for, such as dates, stay Arrow scalars. Rows are counted from 1; in messages, the number after the name of a file is
that of a row.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from trelliswork.data.json_shapes import JsonFields, Reading
from trelliswork.data.json_values import JsonObject
from trelliswork.data.jsonl import sentences_of_records
from trelliswork.data.raw_sentences import Tokeniser
from trelliswork.data.sentence import Sentence
from trelliswork.errors import DataError, MissingExtraError
from trelliswork.reading import name_of, open_bytes

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError as error:
    raise MissingExtraError("reading Parquet", "arrow", error) from error

__all__ = ["ROWS", "opened_parquet", "pa", "pq", "read_parquet"]

ROWS = 1024  # in memory at a time
_SIMPLE = (
    pa.types.is_string, pa.types.is_large_string, pa.types.is_integer, pa.types.is_boolean, pa.types.is_null,
)  # fmt: skip


def read_parquet(
    path: str | Path, *, with_tags: bool = True, fields: JsonFields | None = None, tokeniser: Tokeniser | None = None
) -> Iterator[Sentence]:
    """Yield the sentences of a Parquet file, one by one; the arguments are those of `read_jsonl`.

    All columns of the row are in `extra`.

    Args:
        path: A Parquet file.
        with_tags: Whether rows must have tags.
        fields: The names of the columns.
        tokeniser: Finds the words of rows that hold text.

    Yields:
        Sentences, in the order of the rows.
    """
    reading = Reading(fields or JsonFields(), tokeniser)
    yield from sentences_of_records(numbered_rows(path), name_of(path), reading, with_tags=with_tags, whole=True)


def numbered_rows(path: str | Path) -> Iterator[tuple[int, JsonObject]]:
    """Yield the rows as dicts, numbered from 1, without their empty cells; read as they are asked for."""
    number = 0
    with opened_parquet(path) as file:
        for batch in file.iter_batches(ROWS):
            kinds = {field.name: is_plain(field.type) for field in batch.schema}
            columns = [column.to_pylist() if kinds[name] else column
                       for name, column in zip(kinds, batch.columns, strict=True)]  # fmt: skip
            for cells in zip(*columns, strict=True):
                number += 1
                yield number, {name: cell for name, cell in zip(kinds, cells, strict=True) if _is_full(cell)}


def _is_full(cell: object) -> bool:
    return cell is not None and getattr(cell, "is_valid", True)


def is_plain(kind: pa.DataType) -> bool:
    """Return whether values are texts, whole numbers, or lists or structs of such: words, tags or spans."""
    types = pa.types
    if types.is_list(kind) or types.is_large_list(kind) or types.is_dictionary(kind):
        return is_plain(kind.value_type)
    if types.is_struct(kind):
        return all(is_plain(field.type) or types.is_floating(field.type) for field in kind)
    return any(check(kind) for check in _SIMPLE)


@contextlib.contextmanager
def opened_parquet(path: str | Path) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file for reading; problems are a `DataError`."""
    if str(path) == "-":
        raise DataError(name_of(path), "expected a file, as Parquet is read from its end, got a stream; save it first")
    try:
        with open_bytes(path) as raw, pq.ParquetFile(raw) as file:
            names = file.schema_arrow.names
            if twice := [name for name in names if names.count(name) > 1]:
                raise DataError(name_of(path), f"expected columns of different names, got two called {twice[0]!r}")
            yield file
    except (pa.ArrowException, OSError) as error:
        problem = " ".join(str(error).split())
        raise DataError(name_of(path), f"cannot be read as Parquet: {problem}; is the file whole?") from error
