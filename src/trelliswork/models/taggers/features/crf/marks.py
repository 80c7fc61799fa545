"""Marks: attributes that no text has, which carry the constants of a model learned by counting."""

from __future__ import annotations

from functools import cache

import numpy as np

from trelliswork.data.attributes import AttributeRows
from trelliswork.data.attributes.key_index import keys_of
from trelliswork.data.attributes.rows import offsets_of
from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import Array

MARKS = ("(unknown attribute)", "(each attribute)", "(first token)", "(each token)")
UNKNOWN, EACH_ATTRIBUTE, FIRST_TOKEN, EACH_TOKEN = range(len(MARKS))


@cache
def mark_keys() -> Array:
    """Return the keys of `MARKS`."""
    return keys_of(MARKS)


def with_marks(rows: AttributeRows, marks: Array) -> AttributeRows:
    """Return rows with marks[UNKNOWN] for every id of -1, and for each token the marks of its attributes and its place.

    `marks` are the ids of `MARKS`. The value of (each attribute) is how many attributes the token has.
    """
    n, values = rows.n_tokens, values_of(rows)
    sizes = np.bincount(rows.tokens(), values, minlength=n)
    firsts = first_tokens(rows)
    tokens = np.concatenate([rows.tokens(), np.arange(n), np.arange(n), firsts])
    added = np.repeat(marks[[EACH_ATTRIBUTE, EACH_TOKEN, FIRST_TOKEN]], [n, n, len(firsts)])
    ids = np.concatenate([np.where(rows.ids < 0, marks[UNKNOWN], rows.ids), added])
    values = np.concatenate([values, sizes, np.ones(n + len(firsts))])
    order = np.argsort(tokens, kind="stable")
    offsets = offsets_of(np.bincount(tokens, minlength=n))
    return AttributeRows(rows.lengths, offsets, ids[order].astype(np.int32), values[order])


def values_of(rows: AttributeRows) -> Array:
    if rows.values is None:
        return np.ones(len(rows.ids))
    if len(rows.values) and rows.values.min() < 0:
        raise ScoreError(f"attributes that are counted need values of at least 0; got {rows.values.min():g}")
    return rows.values


def first_tokens(rows: AttributeRows) -> Array:
    """Return the first token of every sentence that has one."""
    return rows.starts[:-1][rows.lengths > 0]
