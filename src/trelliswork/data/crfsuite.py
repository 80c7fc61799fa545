"""CRFsuite's data files: for each token a line with its label and its attributes, tabs between them.

    B-NP\tw[0]=He\tpos=PRP\tlength:2.0
    B-VP\tw[0]=sings\tpos=VBZ

An attribute is a name or name:value; a colon or backslash in a name is written \\: or \\\\. A blank line ends a
sentence.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path

from trelliswork.data.sentence import Sentence
from trelliswork.errors import DataError
from trelliswork.reading import name_of, numbered_lines

ATTRIBUTES = "attributes"  # the key of `Sentence.extra` with a dict (or list of names) for each token
NAMELESS = "_"

_SUFFIXES = (".crfsuite", ".crfsuite.gz")
_FIELD = re.compile(r"((?:[^\\:]|\\.)*)(?::(.*))?", re.S)
_ESCAPED = re.compile(r"\\(.)", re.S)

NumberedFields = tuple[int, list[str]]


def is_crfsuite(path: str | Path) -> bool:
    """Return whether a name ends as those of CRFsuite's data files do."""
    return str(path).lower().endswith(_SUFFIXES)


def read_crfsuite(path: str | Path, *, with_tags: bool = True) -> Iterator[Sentence]:
    """Yield the sentences of a CRFsuite data file, one by one; `.gz` and "-" (standard input) are accepted.

    The attributes are dicts under `extra["attributes"]`; a token goes by the name of its first attribute. The column of
    labels is there also with `with_tags=False`, as CRFsuite has it, but may be empty and is not read.
    """
    file = name_of(path)
    block: list[NumberedFields] = []
    n_sentences = 0
    for number, line in numbered_lines(path):
        if line.strip():
            block.append((number, line.split("\t")))
        elif block:
            n_sentences += 1
            yield _sentence(block, file, with_tags)
            block = []
    if block:
        yield _sentence(block, file, with_tags)
    elif n_sentences == 0:
        raise DataError(file, "expected at least one sentence, got none; the file is empty")


def _sentence(block: list[NumberedFields], file: str, with_tags: bool) -> Sentence:
    attributes = [_attributes(fields, file, number) for number, fields in block]
    tags = tuple(_label(fields[0], file, number) for number, fields in block) if with_tags else None
    words = tuple(next(iter(each), NAMELESS) or NAMELESS for each in attributes)
    return Sentence(words, tags, line=block[0][0], file=file, extra={ATTRIBUTES: attributes})


def _label(field: str, file: str, number: int) -> str:
    if field.startswith("@"):
        problem = f"expected a label, got the declaration {field!r}; weights of sentences are not read, delete the line"
        raise DataError(file, problem, line=number, column=1)
    name, value = _split(field, file, number, 1)
    if not name or value is not None:
        got = "nothing" if not field else repr(field)
        raise DataError(file, f"expected a label in front of the first tab, got {got}", line=number, column=1)
    return name


def _attributes(fields: list[str], file: str, number: int) -> dict[str, float]:
    """Return values by name; a name that comes twice has the sum, which scores the same."""
    values: dict[str, float] = {}
    for column, field in enumerate(fields[1:], 2):
        if not field:
            continue  # a tab at the end of the line
        name, text = _split(field, file, number, column)
        value = 1.0 if text is None else _number(text, name, file, number, column)
        values[name] = values.get(name, 0.0) + value
    return values


def _split(field: str, file: str, number: int, column: int) -> tuple[str, str | None]:
    """Return name and value of a field, the name without its escapes."""
    if "\\" not in field and ":" not in field:
        return field, None
    match = _FIELD.fullmatch(field)
    if match is None:
        problem = f"expected \\\\ or \\: where a backslash is, got {field!r}, which ends in one"
        raise DataError(file, problem, line=number, column=column)
    return _ESCAPED.sub(r"\1", match[1]), match[2]


def _number(text: str, name: str, file: str, number: int, column: int) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        problem = f"expected a finite number after {name!r} and a colon, got {text!r}; write \\: for a colon in a name"
        raise DataError(file, problem, line=number, column=column)
    return value
