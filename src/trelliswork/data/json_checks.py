"""Checks of what the members of JSON records hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trelliswork.errors import DataError


def strings(record: Mapping[str, Any], key: str, file: str, line: int) -> tuple[str, ...]:
    """The texts in the list under a key."""
    if key not in record:
        raise DataError(file, f'expected the key "{key}", got {", ".join(record) or "no keys"}', line=line)
    return string_list(record[key], key, file, line)


def string_list(items: Any, key: str, file: str, line: int) -> tuple[str, ...]:
    """A list that holds texts alone, none of them empty."""
    if not isinstance(items, list):
        raise DataError(file, f'expected a list of strings in "{key}", got {kind_of(items)}', line=line)
    for i, item in enumerate(items):
        if not isinstance(item, str) or not item:
            got = "an empty string" if item == "" else kind_of(item)
            raise DataError(file, f'expected a string at "{key}"[{i}], got {got}', line=line)
    return tuple(items)


def require_list(items: Any, key: str, file: str, line: int) -> list[Any]:
    """What is under a key, if it is a list."""
    if not isinstance(items, list):
        raise DataError(file, f'expected a list in "{key}", got {kind_of(items)}', line=line)
    return items


def kind_of(value: Any) -> str:
    """What a JSON value is, in words."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "a truth value", type(None): "null"}
    return names.get(type(value), "a number")
