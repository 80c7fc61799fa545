"""Parsing JSON from outside: all that is wrong with it is a `BadJSONError`.

Every JSON text that the package reads goes through `parse_json`. Besides text that is not JSON it refuses what Python
parses or trips over but nothing later can use: NaN and infinite numbers, halves of surrogate pairs (which cannot be
printed or written), thousands of digits, and nesting deeper than the interpreter's stack.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, TypeAlias

from trelliswork.errors import DataError

Json: TypeAlias = Any  # a value of JSON, whose members are checked where they are used
JsonObject: TypeAlias = dict[str, Json]

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")  # an escape that may be one half of a pair


class BadJSONError(ValueError):
    """A JSON text that cannot be read: the problem and, where known, its line and column (from 1).

    Args:
        problem: What is wrong.
        line: Number of the line, counted from 1.
        column: Number of the column, counted from 1.
    """

    def __init__(self, problem: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(problem)
        self.problem, self.line, self.column = problem, line, column


def parse_json(text: str) -> Json:
    """Return the value of a JSON text.

    >>> parse_json('{"tokens": ["Ann"]}')
    {'tokens': ['Ann']}
    >>> parse_json("[1e999]")
    Traceback (most recent call last):
    trelliswork.data.json_values.BadJSONError: the number 1e999 is too large
    """
    try:
        value = _DECODER.decode(text)
        if _SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except json.JSONDecodeError as error:
        raise BadJSONError(error.msg, error.lineno, error.colno) from error
    except UnicodeEncodeError as error:
        half = error.object[error.start].encode("ascii", "backslashreplace").decode()
        raise BadJSONError(f"{half} is half of a surrogate pair, not a character") from error
    except RecursionError as error:
        raise BadJSONError("nested too deeply") from error
    return value


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:  # Python's limit on the digits of a number
        raise BadJSONError(f"a number of {len(text):,} digits is too large") from error


def _real(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise BadJSONError(f"the number {text if len(text) <= 20 else text[:17] + '...'} is too large")
    return value


def _constant(name: str) -> float:
    raise BadJSONError(f"{name} is not a number in JSON")


_DECODER = json.JSONDecoder(parse_int=_whole, parse_float=_real, parse_constant=_constant)


# Checks of what the members of JSON records hold.


def strings(record: Mapping[str, Json], key: str, file: str, line: int) -> tuple[str, ...]:
    """Return the texts in the list under a key.

    Args:
        record: A JSON object.
        key: The member that holds a list of texts.
        file: The file, for messages.
        line: The line, for messages.

    Returns:
        The texts.
    """
    if key not in record:
        raise DataError(file, f'expected the key "{key}", got {", ".join(record) or "no keys"}', line=line)
    return string_list(record[key], key, file, line)


def string_list(items: Json, key: str, file: str, line: int) -> tuple[str, ...]:
    """Return a list that holds texts alone, none of them empty.

    Args:
        items: The value of a member.
        key: The name of the member.
        file: The file, for messages.
        line: The line, for messages.

    Returns:
        The texts in the list.
    """
    if not isinstance(items, list):
        raise DataError(file, f'expected a list of strings in "{key}", got {kind_of(items)}', line=line)
    for i, item in enumerate(items):
        if not isinstance(item, str) or not item:
            got = "an empty string" if item == "" else kind_of(item)
            raise DataError(file, f'expected a string at "{key}"[{i}], got {got}', line=line)
    return tuple(items)


def require_list(items: Json, key: str, file: str, line: int) -> list[Json]:
    """Return the value under a key, which must be a list.

    Args:
        items: The value of a member.
        key: The name of the member.
        file: The file, for messages.
        line: The line, for messages.

    Returns:
        The value, which is a list.
    """
    if not isinstance(items, list):
        raise DataError(file, f'expected a list in "{key}", got {kind_of(items)}', line=line)
    return items


def kind_of(value: object) -> str:
    """Return the type of a JSON value in words."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "a truth value", type(None): "null"}
    return names.get(type(value), "a number")
