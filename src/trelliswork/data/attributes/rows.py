"""Attributes of the tokens of many sentences as flat arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from trelliswork.runtime.arrays import Array

ENTRIES_AT_A_TIME = 1 << 22
IDS_AT_A_TIME = 1 << 16


def offsets_of(counts: Array) -> Array:
    """Return where the items of each owner begin, given their numbers: [n + 1]."""
    return np.concatenate([[0], np.cumsum(counts)])


def owners_of(offsets: Array) -> Array:
    """Return the owner of each item: the inverse of `offsets_of`, spelled out."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def first_entries_of(ids: Array, n: int) -> Array:
    """Return the entry at which each of the ids 0..n - 1 is met first; those that no entry has are undefined."""
    first = np.empty(n, np.int64)
    for begin in reversed(range(0, len(ids), IDS_AT_A_TIME)):
        part = ids[begin : begin + IDS_AT_A_TIME][::-1]
        first[part] = np.arange(begin + len(part) - 1, begin - 1, -1)  # of entries with one id, the last stays
    return first


class RowArrays(NamedTuple):
    """Arrays of `AttributeRows` as kernels read them."""

    lengths: Array  # [sentences]
    starts: Array  # [sentences + 1]
    offsets: Array  # [tokens + 1]
    ids: Array  # [entries]
    values: Array  # [entries], or empty: all 1


@dataclass(frozen=True)
class AttributeRows:
    """Token t has the attributes ids[offsets[t]:offsets[t+1]] with those values; values None are all 1.

    Sentence s has lengths[s] tokens; sentences lie behind one another.
    """

    lengths: Array  # [sentences] int64
    offsets: Array  # [tokens + 1] int64
    ids: Array  # [entries] int32
    values: Array | None = None  # [entries] float64

    @property
    def n_tokens(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def starts(self) -> Array:
        """The first token of each sentence, and the number of tokens: [sentences + 1]."""
        return offsets_of(self.lengths)

    @cached_property
    def arrays(self) -> RowArrays:
        """The same for kernels."""
        values = np.empty(0) if self.values is None else self.values.astype(np.float64, copy=False)
        return RowArrays(self.lengths, self.starts, self.offsets, self.ids, values)

    def tokens(self) -> Array:
        """Return the token of each entry."""
        return owners_of(self.offsets)

    def counts(self, n_attributes: int) -> Array:
        """Return the number of entries of each attribute."""
        counts = np.zeros(n_attributes, np.int64)
        for first in range(0, len(self.ids), ENTRIES_AT_A_TIME):
            counts += np.bincount(self.ids[first : first + ENTRIES_AT_A_TIME], minlength=n_attributes)
        return counts

    def pieces(self) -> Iterator[tuple[slice, Array]]:
        """Yield entries that follow one another, and the token of each: not all at once, as they may not fit into
        memory.
        """
        first = 0
        while first < self.n_tokens:
            end = int(np.searchsorted(self.offsets, self.offsets[first] + ENTRIES_AT_A_TIME, side="right")) - 1
            last = min(max(first + 1, end), self.n_tokens)
            counts = np.diff(self.offsets[first : last + 1])
            yield slice(int(self.offsets[first]), int(self.offsets[last])), np.repeat(np.arange(first, last), counts)
            first = last

    def first(self, n: int) -> AttributeRows:
        """Return the first n sentences."""
        offsets = self.offsets[: int(self.lengths[:n].sum()) + 1]
        values = None if self.values is None else self.values[: offsets[-1]]
        return AttributeRows(self.lengths[:n], offsets, self.ids[: offsets[-1]], values)

    def kept(self, keep: Array, numbers: Array) -> AttributeRows:
        """Return only the entries where `keep`, their ids replaced by numbers[id]."""
        counts = np.bincount(self.tokens()[keep], minlength=self.n_tokens)
        values = None if self.values is None else self.values[keep]
        return AttributeRows(self.lengths, offsets_of(counts), numbers[self.ids[keep]].astype(np.int32), values)

    def heard(self) -> AttributeRows:
        """Return the rows without the entries of value 0, which change no score; values None if all others are 1."""
        if self.values is None:
            return self
        rows = self
        if not self.values.all():
            keep = self.values != 0
            rows = AttributeRows(self.lengths, offsets_of(keep)[self.offsets], self.ids[keep], self.values[keep])
        assert rows.values is not None
        return replace(rows, values=None) if (rows.values == 1.0).all() else rows

    def known(self) -> AttributeRows:
        """Return the rows without the entries whose id is -1."""
        keep = self.ids >= 0
        if keep.all():
            return self
        offsets = offsets_of(keep)[self.offsets]
        values = None if self.values is None else self.values[keep]
        return AttributeRows(self.lengths, offsets, self.ids[keep], values)
