"""The kinds of values that settings may have, by the annotations of the dataclass that they belong to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from trelliswork.errors import TrellisworkError

LONGEST_SHOWN = 80  # characters of a value in a sentence
_WHOLE = (-(2**63), 2**64)  # what torch, numpy and their seeds can take


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and _WHOLE[0] <= value < _WHOLE[1]


def _is_number(value: Any) -> bool:
    return isinstance(value, float) or _is_whole(value)


def _list_of(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list | tuple) and all(map(fits, value))


_CHECKS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "int": ("a whole number", _is_whole),
    "float": ("a number", _is_number),
    "bool": ("true or false", lambda value: isinstance(value, bool)),
    "tuple[int, ...]": ("a list of whole numbers", _list_of(_is_whole)),
    "tuple[str, ...]": ("a list of texts", _list_of(lambda value: isinstance(value, str))),
}
_TEXT: tuple[str, Callable[[Any], bool]] = ("a text in quotes", lambda value: isinstance(value, str))


def kinds_of(config: type) -> dict[str, str]:
    """The kind of each setting of a dataclass."""
    return {field.name: str(field.type).removesuffix(" | None") for field in fields(config)}


def misfit(name: str, value: Any, kind: str) -> str:
    """What is wrong with the value of a setting; empty if it is of its kind.

    >>> misfit("layers", 3, "int"), misfit("causal", 3, "bool")
    ('', 'expected true or false for causal, got 3')
    """
    expected, fits = _CHECKS.get(kind, _TEXT)
    if fits(value):
        return ""
    limit = " of at most 64 bits" if type(value) is int and kind in ("int", "float") else ""
    return f"expected {expected}{limit} for {name}, got {_shown(value)}"


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # more digits than Python writes, deeper lists than its stack
        return f"a huge {type(value).__name__}"
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 3]}..."


def check_settings(config: type, settings: Mapping[str, Any]) -> None:
    """Refuse stored settings that nobody knows, or of another kind than the dataclass says."""
    unknown = sorted(set(settings) - set(kinds_of(config)))
    if unknown:
        raise TrellisworkError(f"expected settings of {config.__name__}; got {', '.join(unknown)}; remove them")
    optional = {field.name for field in fields(config) if str(field.type).endswith(" | None")}
    for name, value in settings.items():
        if value is None and name in optional:
            continue
        if problem := misfit(name, value, kinds_of(config)[name]):
            raise TrellisworkError(problem)
