"""Attributes of the tokens of many sentences as flat arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from trelliswork.data.attributes.conjunction_kernels import Partners, extend_rows
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

    def without_zeros(self) -> AttributeRows:
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


# Attributes that a token has when it has two others: "U01:the & U11:NN".


@dataclass(frozen=True)
class Conjunctions:
    """Attribute n_atomic + k stands for "both of pairs[k]": an atomic attribute (below n_atomic), and a later one.

    The later one may be a conjunction itself, one before k; so there are conjunctions of three and more.
    """

    n_atomic: int
    pairs: Array  # [conjunctions, 2] int32, pairs[:, 0] < pairs[:, 1]

    @classmethod
    def none(cls, n_atomic: int) -> Conjunctions:
        return cls(n_atomic, np.empty((0, 2), np.int32))

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def n_attributes(self) -> int:
        """Atomic ones and conjunctions."""
        return self.n_atomic + len(self.pairs)

    def check(self) -> None:
        """Raise `ValueError` unless each stands for attributes before it."""
        if self.pairs.dtype != np.int32 or self.pairs.shape[1:] != (2,):
            raise ValueError("conjunctions must be pairs of whole numbers of 32 bits")
        first, second = self.pairs[:, 0], self.pairs[:, 1]
        known = self.n_atomic + np.arange(len(self))
        if not ((first >= 0) & (first < np.minimum(second, self.n_atomic)) & (second < known)).all():
            raise ValueError("a conjunction must stand for an atomic attribute and one between that and itself")

    def joined(self, pairs: Array) -> Conjunctions:
        """Return the conjunctions with further pairs."""
        return Conjunctions(self.n_atomic, np.concatenate([self.pairs, pairs.astype(np.int32)]))

    def extended(self, rows: AttributeRows) -> AttributeRows:
        """Return each token with the conjunctions that it has, valued by the product; `rows` has atomic attributes."""
        if not len(self):
            return rows
        given = rows.arrays, self._partners, self.n_attributes
        counts, nothing = np.empty(rows.n_tokens, np.int64), np.empty(0, np.int32)
        extend_rows(*given, np.empty(0, np.int64), counts, nothing, np.empty(0))
        offsets = offsets_of(counts)
        ids, products = np.empty(offsets[-1], np.int32), np.empty(0 if rows.values is None else offsets[-1])
        extend_rows(*given, offsets, counts, ids, products)
        return AttributeRows(rows.lengths, offsets, ids, None if rows.values is None else products)

    @cached_property
    def _partners(self) -> Partners:
        order = np.argsort(self.pairs[:, 1], kind="stable")
        counts = np.bincount(self.pairs[:, 1], minlength=self.n_attributes)
        return Partners(offsets_of(counts), self.pairs[order, 0], (self.n_atomic + order).astype(np.int32))

    def widened(self, flags: Array | None) -> Array | None:
        """Return flags of the atomic attributes as flags of all, False for conjunctions."""
        return None if flags is None else np.concatenate([flags, np.zeros(len(self), np.bool_)])

    def names(self, atomic: Sequence[str]) -> list[str]:
        """Return names of all attributes, given those of the atomic ones."""
        return [*atomic, *(" & ".join(sorted(atomic[i] for i in parts)) for parts in self.parts())]

    def parts(self) -> list[list[int]]:
        """Return the atomic attributes of each conjunction, in order."""
        atoms: list[list[int]] = []
        for first, second in self.pairs.tolist():
            others = [second] if second < self.n_atomic else atoms[second - self.n_atomic]
            atoms.append(sorted([first, *others]))
        return atoms

    def needed(self, wanted: Array) -> Array:
        """Return flags of the attributes that those `wanted` [attributes] need."""
        keep = wanted.copy()
        for k in range(len(self) - 1, -1, -1):
            if keep[self.n_atomic + k]:
                keep[self.pairs[k]] = True
        return keep

    def kept(self, keep: Array) -> Conjunctions:
        """Return only those that are kept, in the numbers that the attributes then have."""
        numbers = np.cumsum(keep) - 1
        pairs = numbers[self.pairs[keep[self.n_atomic :]]].astype(np.int32)
        return Conjunctions(int(keep[: self.n_atomic].sum()), pairs.reshape(-1, 2))
