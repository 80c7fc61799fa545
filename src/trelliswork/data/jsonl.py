"""Sentences as JSON lines: `{"tokens": ["Ann", "sings"], "tags": ["B-PER", "O"]}`, one object a line.

`features`, a list of columns as long as `tokens`, is optional; other keys are kept as they are. Records may also be
text with spans; `json_shapes` has all that is read. A file called .json may be an array of such records.
"""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from trelliswork.data.json_shapes import JsonFields, Place, Reading, shape_of
from trelliswork.data.json_values import BadJSONError, Json, JsonObject, kind_of, parse_json
from trelliswork.data.raw_sentences import Tokeniser
from trelliswork.data.sentence import Sentence
from trelliswork.errors import DataError, TrellisworkWarning
from trelliswork.reading import name_of, numbered_lines, read_bytes

SHOWN = 3  # spans that do not fall on tokens
_BEGINNING = 1000  # bytes that tell an array
_BOM = b"\xef\xbb\xbf"
_BETWEEN = re.compile(r"[\s,]*")
_LINE_END = re.compile(r"\s*[\r\n]\s*")
_DECODER = json.JSONDecoder()


def read_jsonl(
    path: str | Path,
    *,
    with_tags: bool = True,
    fields: JsonFields | None = None,
    tokeniser: Tokeniser | None = None,
    keep: Callable[[bytes], None] | None = None,
) -> Iterator[Sentence]:
    """Yield the sentences of a JSON-lines file, one by one; `.gz` and "-" (standard input) are accepted.

    With `with_tags=False` the tags may be missing and are not read. `fields` says how members are called, `tokeniser`
    (see `trelliswork.text`) finds the words of records that are text. Spans that do not begin and end with a token are
    left out, with a warning in the end that names them. `keep` is given all bytes that are read.

    Args:
        path: A file, or "-" for standard input.
        with_tags: Whether records must have tags; without, they are not read.
        fields: The names of the members.
        tokeniser: Finds the words of records that hold text.
        keep: Called with all bytes that are read.

    Yields:
        Sentences, in the order of the file.
    """
    file, reading = name_of(path), Reading(fields or JsonFields(), tokeniser)
    lines = array_records(path, keep) if is_array(path) else numbered_lines(path, keep)
    records = ((number, parse_record(line, file, number)) for number, line in lines if line.strip())
    yield from sentences_of_records(records, file, reading, with_tags=with_tags)


def sentences_of_records(
    records: Iterable[tuple[int, Mapping[str, Json]]],
    file: str,
    reading: Reading,
    *,
    with_tags: bool,
    whole: bool = False,
) -> Iterator[Sentence]:
    """Yield the sentences of numbered records, with warnings in the end about what could not be read of them.

    Args:
        records: (number, object) of each record.
        file: Name of the file, for the sentence of an error.
        reading: Which member is what.
        with_tags: Whether there are tags to read.
        whole: Whether all members of a record are in `extra` of its sentences, those that were read too.

    Returns:
        An iterator over the sentences.
    """
    n_sentences = 0
    for number, record in records:
        place = Place(file, number)
        for sentence in shape_of(record, place, reading).sentences(record, with_tags):
            n_sentences += 1
            yield replace(sentence, extra=record) if whole else sentence
    if n_sentences == 0:
        raise DataError(file, "expected at least one sentence, got none; the file is empty")
    for text in notes_on(reading, file):
        warnings.warn(text, TrellisworkWarning, stacklevel=3)


def is_array(path: str | Path) -> bool:
    """Return whether a file called .json is an array of records; others are lines."""
    if not str(path).lower().endswith((".json", ".json.gz")):
        return False
    return read_bytes(path, _BEGINNING).removeprefix(_BOM).lstrip().startswith(b"[")


def array_records(path: str | Path, keep: Callable[[bytes], None] | None = None) -> Iterator[tuple[int, str]]:
    """Yield the records of an array as lines, numbered from 1; `keep` is given these."""
    file = name_of(path)
    try:
        text = read_bytes(path).removeprefix(_BOM).decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(file, f"expected UTF-8 text, got the byte 0x{error.object[error.start]:02x}") from error
    try:
        records = parse_json(text)
    except BadJSONError as error:
        raise DataError(file, f"not valid JSON: {error.problem}", line=error.line, column=error.column) from error
    place = text.index("[") + 1
    for number, _ in enumerate(records, 1):
        start = _BETWEEN.match(text, place).end()  # type: ignore[union-attr]  # it may match nothing
        _, place = _DECODER.raw_decode(text, start)
        line = _LINE_END.sub(" ", text[start:place])  # texts in JSON have no line ends
        if keep is not None:
            keep(f"{line}\n".encode())
        yield number, line


def notes_on(reading: Reading, file: str) -> Iterator[str]:
    """Return sentences about what could not be read of records."""
    if n := len(reading.astray):
        shown = "; ".join(reading.astray[:SHOWN])
        more = f"; and {n - SHOWN:,} more" if n > SHOWN else ""
        yield (
            f"{n:,} of {reading.n_spans:,} spans overlap others or do not begin and end with a token, and are left "
            f"out: {shown}{more}"
        )
    if reading.n_skipped:
        yield f"{file}: {reading.n_skipped:,} records with the answer reject or ignore left out"


def json_text(sentence: Sentence, **extra: Json) -> str:
    """Return a sentence as one line of JSON, with further keys such as confidences.

    >>> json_text(Sentence(("Ann", "sings"), ("B-PER", "O")), confidence=0.9)
    '{"tokens": ["Ann", "sings"], "tags": ["B-PER", "O"], "confidence": 0.9}\\n'
    """
    return json.dumps(json_record(sentence, **extra), ensure_ascii=False, default=_in_json) + "\n"


def json_record(sentence: Sentence, **extra: Json) -> JsonObject:
    """Return the members of `json_text`."""
    record: JsonObject = {**sentence.extra}
    record |= {"text": sentence.text} if sentence.text else {}
    record["tokens"] = sentence.words
    if sentence.offsets:
        record["offsets"] = sentence.offsets
    if sentence.features:
        record["features"] = sentence.features
    if sentence.tags is not None:
        record["tags"] = sentence.tags
    return record | extra


def _in_json(value: Json) -> Json:
    """Return the JSON value for one of another type in `Sentence.extra`: an Arrow scalar, such as a date or a NaN."""
    if not hasattr(value, "as_py"):
        raise TypeError(f"expected a value of JSON, got {kind_of(value)} {value!r}")
    return _plain(value.as_py())


def _plain(value: Json) -> Json:
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int) else str(value)


def parse_record(line: str, file: str, number: int) -> JsonObject:
    """Return the JSON object on a line; spaCy's pair of a text and its annotations is one that has the text as a
    member.

    Args:
        line: A line of text.
        file: Name of the file, for the sentence of an error.
        number: Number of the line.

    Returns:
        The object.
    """
    try:
        record = parse_json(line)
    except BadJSONError as error:
        raise DataError(file, f"not valid JSON: {error.problem}", line=number, column=error.column) from error
    if isinstance(record, list) and list(map(type, record)) == [str, dict]:
        return record[1] | {"text": record[0]}
    if not isinstance(record, dict):
        raise DataError(file, f"expected a JSON object, got {kind_of(record)}", line=number)
    return record


def pair_parts(line: str) -> tuple[str, str, str]:
    """Return a line as what comes before its JSON object, the object, and what comes behind it: of spaCy's pairs, the
    text and the closing bracket.

    >>> pair_parts('["Ann {1}", {"entities": []}]')
    ('["Ann {1}", ', '{"entities": []}', ']')
    """
    if not line.lstrip("\ufeff \t").startswith("["):
        return "", line, ""
    _, behind_text = _DECODER.raw_decode(line, line.index('"'))
    start = line.index("{", behind_text)
    _, end = _DECODER.raw_decode(line, start)
    return line[:start], line[start:end], line[end:]
