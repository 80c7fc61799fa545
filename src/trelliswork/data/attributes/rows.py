"""Attributes of the tokens of many sentences as flat arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from trelliswork.data.attributes.key_kernels import first_entries

Array = np.ndarray[Any, Any]


def offsets_of(counts: Array) -> Array:
    """Where the items of each owner begin, given how many it has: [n + 1]."""
    return np.concatenate([[0], np.cumsum(counts)])


def owners_of(offsets: Array) -> Array:
    """The owner of each item: the inverse of `offsets_of`, spelled out."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


class RowArrays(NamedTuple):
    """What kernels read of `AttributeRows`."""

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
        """The token of each entry."""
        return owners_of(self.offsets)

    def first_entries(self, n_attributes: int) -> Array:
        """Where each attribute occurs first among the entries; their number for one that does not."""
        first = np.full(n_attributes, len(self.ids), np.int64)
        first_entries(self.ids, first)
        return first

    def first(self, n: int) -> AttributeRows:
        """The first n sentences."""
        offsets = self.offsets[: int(self.lengths[:n].sum()) + 1]
        values = None if self.values is None else self.values[: offsets[-1]]
        return AttributeRows(self.lengths[:n], offsets, self.ids[: offsets[-1]], values)

    def kept(self, keep: Array, numbers: Array) -> AttributeRows:
        """Only the entries where `keep`, their ids replaced by numbers[id]."""
        counts = np.bincount(self.tokens()[keep], minlength=self.n_tokens)
        values = None if self.values is None else self.values[keep]
        return AttributeRows(self.lengths, offsets_of(counts), numbers[self.ids[keep]].astype(np.int32), values)

    def heard(self) -> AttributeRows:
        """Without the entries of value 0, which change no score; values None if all others are 1."""
        if self.values is None:
            return self
        found = self
        if not self.values.all():
            keep = self.values != 0
            found = AttributeRows(self.lengths, offsets_of(keep)[self.offsets], self.ids[keep], self.values[keep])
        assert found.values is not None
        return replace(found, values=None) if (found.values == 1.0).all() else found

    def known(self) -> AttributeRows:
        """Without the entries whose id is -1."""
        keep = self.ids >= 0
        if keep.all():
            return self
        offsets = offsets_of(keep)[self.offsets]
        values = None if self.values is None else self.values[keep]
        return AttributeRows(self.lengths, offsets, self.ids[keep], values)
