"""Checks of what a caller may pass: tensors, arrays or lists, turned into checked lists."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from trelliswork.errors import ScoreError

Table = list[list[float]]
ROUNDING = 1e-3  # how far outside 0..1 a probability may lie and still be one


def as_list(values: object, name: str) -> list[Any]:
    """Return a list from a tensor, an array or any sequence."""
    if hasattr(values, "tolist"):
        values = values.tolist()
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise ScoreError(f"{name} must be a list, an array or a tensor; got {type(values).__name__}")
    return list(values)


def as_texts(values: object, name: str) -> list[str]:
    """Return a list of texts that is not empty."""
    texts = [str(each) for each in as_list(values, name)]
    if not texts:
        raise ScoreError(f"{name} must not be empty; give one for each row or column of the picture")
    return texts


def as_probability(value: Any, where: str) -> float:
    """Return a number in 0..1, rounding forgiven."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ScoreError(f"probabilities must be numbers; got {value!r} {where}") from None
    if math.isnan(number) or not -ROUNDING <= number <= 1 + ROUNDING:
        raise ScoreError(f"probabilities must lie in 0..1; got {number:g} {where}; pass marginals, not scores")
    return min(max(number, 0.0), 1.0)


def as_probabilities(values: object, n: int, item: str) -> list[float]:
    """Return one probability for each of n items.

    Args:
        values: A tensor, an array or a list.
        n: Number of items.
        item: What an item is, for the sentence of an error.

    Returns:
        Numbers in 0..1.
    """
    given = as_list(values, "probabilities")
    if len(given) != n:
        raise ScoreError(f"probabilities must be {n}, one for each {item}; got {len(given)}")
    return [as_probability(each, f"at {item} {i}") for i, each in enumerate(given)]


def as_table(values: object, n: int, c: int, row: str, column: str) -> Table:
    """Return probabilities [n, c]; `row` and `column` say what the two sizes come from.

    Args:
        values: A tensor, an array or lists [n][c].
        n: Number of rows.
        c: Number of columns.
        row: What the rows come from, for the sentence of an error.
        column: What the columns come from.

    Returns:
        Rows of numbers in 0..1.
    """
    rows = as_list(values, "probabilities")
    shape = _shape(rows)
    if shape != (n, c):
        batched = "; pick one row of the batch, as in probabilities[0]" if len(shape) == 3 else ""
        raise ScoreError(
            f"probabilities must be [{n}, {c}], one row for each {row} and one column for each {column}; "
            f"got {list(shape)}{batched}"
        )
    if any(len(each) != c for each in rows):
        raise ScoreError(f"probabilities must have {c} numbers in every row; got rows of different lengths")
    return [[as_probability(p, f"at {row} {i}, {column} {j}") for j, p in enumerate(r)] for i, r in enumerate(rows)]


def _shape(values: object) -> tuple[int, ...]:
    return (len(values), *(_shape(values[0]) if values else ())) if isinstance(values, (list, tuple)) else ()


def as_path(values: object, names: Sequence[str], n: int, what: str, step: str) -> list[int]:
    """Return one index for each step; names are taken for their indices.

    Args:
        values: Indices or names, one for each step.
        names: The names to choose from.
        n: Number of steps.
        what: What is chosen, for the sentence of an error.
        step: What a step is.

    Returns:
        An index into `names` for each step.
    """
    given = as_list(values, what)
    if len(given) != n:
        raise ScoreError(f"{what} must have {n} entries, one for each {step}; got {len(given)}")
    places = {name: i for i, name in enumerate(names)}
    path = []
    for t, each in enumerate(given):
        index = places.get(each, -1) if isinstance(each, str) else as_index(each, f"{what} at {step} {t}")
        if not 0 <= index < len(names):
            raise ScoreError(f"{what} must lie in 0..{len(names) - 1}; got {each!r} at {step} {t}")
        path.append(index)
    return path


def as_index(value: Any, what: str) -> int:
    """Return a whole number."""
    if isinstance(value, float) and not value.is_integer():
        raise ScoreError(f"{what} must be a whole number; got {value!r}")
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        raise ScoreError(f"{what} must be a whole number; got {value!r}") from None
