"""Checks of metrics.json: what commands read from it must be there in the form in which it was written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_NUMBERS = ("n_columns", "word_column", "tag_column", "sentence_column")


def check_metrics(metrics: Mapping[str, Any]) -> None:
    """Raise `ValueError` unless data, its format, training and its settings, and dev are what they were."""
    data = _section(metrics, "data")
    _section(metrics, "dev")
    _section(_section(metrics, "training"), "settings")
    _items(data, "fields", str)
    _items(data, "examples", str)
    format = _section(data, "format")
    names = _items(format, "names", str)
    columns = _items(format, "feature_columns", int)
    columns += [format[name] for name in _NUMBERS if format.get(name) is not None]
    for column in columns:
        if not _is_of(column, int) or column < 1 or (names and column > len(names)):
            raise ValueError(f"expected the number of a column in the format of the data, got {column!r}")


def _section(holder: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = holder.get(name)
    if found is not None and not isinstance(found, dict):
        raise ValueError(f"expected an object under {name!r}, got {type(found).__name__}")
    return found or {}


def _items(holder: Mapping[str, Any], name: str, kind: type) -> list[Any]:
    found = holder.get(name)
    if found is not None and not (isinstance(found, list) and all(_is_of(each, kind) for each in found)):
        raise ValueError(f"expected a list under {name!r}, got {found!r}")
    return list(found or ())


def _is_of(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)
