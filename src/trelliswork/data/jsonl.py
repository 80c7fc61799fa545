"""Sentences as JSON lines: `{"tokens": ["Ann", "sings"], "tags": ["B-PER", "O"]}`, one object a line.

`features`, a list of columns as long as `tokens`, is optional; other keys are kept as they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trelliswork.data.files import name_of, numbered_lines
from trelliswork.data.json_values import BadJSONError, parse_json
from trelliswork.data.sentence import Sentence
from trelliswork.errors import DataError


def read_jsonl(path: str | Path, *, with_tags: bool = True) -> Iterator[Sentence]:
    """The sentences of a JSON-lines file, one by one; `.gz` and "-" (standard input) are accepted.

    With `with_tags=False` the tags may be missing and are not read.
    """
    file = name_of(path)
    n_sentences = 0
    for number, line in numbered_lines(path):
        if line.strip():
            n_sentences += 1
            yield _sentence(_parse(line, file, number), file, number, with_tags)
    if n_sentences == 0:
        raise DataError(file, "expected at least one sentence, got none; the file is empty")


def json_text(sentence: Sentence, **extra: Any) -> str:
    """A sentence as one line of JSON, with further keys such as confidences.

    >>> json_text(Sentence(("Ann", "sings"), ("B-PER", "O")), confidence=0.9)
    '{"tokens": ["Ann", "sings"], "tags": ["B-PER", "O"], "confidence": 0.9}\\n'
    """
    record: dict[str, Any] = {**sentence.extra, "tokens": sentence.words}
    if sentence.features:
        record["features"] = sentence.features
    if sentence.tags is not None:
        record["tags"] = sentence.tags
    return json.dumps(record | extra, ensure_ascii=False) + "\n"


def _parse(line: str, file: str, number: int) -> dict[str, Any]:
    try:
        record = parse_json(line)
    except BadJSONError as error:
        raise DataError(file, f"not valid JSON: {error.problem}", line=number, column=error.column) from error
    if not isinstance(record, dict):
        raise DataError(file, f"expected a JSON object, got {_kind(record)}", line=number)
    return record


def _sentence(record: dict[str, Any], file: str, number: int, with_tags: bool) -> Sentence:
    words = _strings(record, "tokens", file, number)
    if not words:
        raise DataError(file, 'expected at least one token in "tokens", got none', line=number)
    tags = _strings(record, "tags", file, number) if with_tags else None
    if tags is not None and len(tags) != len(words):
        raise DataError(file, f"expected {len(words)} tags, one per token; got {len(tags)}", line=number)
    features, lines = _features(record, len(words), file, number), (number,) * len(words)
    extra = {key: value for key, value in record.items() if key not in ("tokens", "tags", "features")}
    return Sentence(words, tags, features, line=number, file=file, lines=lines, extra=extra)


def _strings(record: dict[str, Any], key: str, file: str, number: int) -> tuple[str, ...]:
    if key not in record:
        raise DataError(file, f'expected the key "{key}", got {", ".join(record) or "no keys"}', line=number)
    return _string_list(record[key], key, file, number)


def _string_list(items: Any, key: str, file: str, number: int) -> tuple[str, ...]:
    if not isinstance(items, list):
        raise DataError(file, f'expected a list of strings in "{key}", got {_kind(items)}', line=number)
    for i, item in enumerate(items):
        if not isinstance(item, str) or not item:
            got = "an empty string" if item == "" else _kind(item)
            raise DataError(file, f'expected a string at "{key}"[{i}], got {got}', line=number)
    return tuple(items)


def _features(record: dict[str, Any], n: int, file: str, number: int) -> tuple[tuple[str, ...], ...]:
    columns = record.get("features", [])
    if not isinstance(columns, list):
        raise DataError(file, f'expected a list of columns in "features", got {_kind(columns)}', line=number)
    read = tuple(_string_list(column, "features", file, number) for column in columns)
    for i, column in enumerate(read):
        if len(column) != n:
            problem = f'expected {n} values at "features"[{i}], one per token; got {len(column)}'
            raise DataError(file, problem, line=number)
    return read


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a truth value", type(None): "null"}
    return names.get(type(value), "a number")
