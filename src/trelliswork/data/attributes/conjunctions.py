"""Attributes that a token has when it has two others: "U01:the & U11:NN"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from trelliswork.data.attributes.conjunction_kernels import Partners, extend_rows
from trelliswork.data.attributes.rows import AttributeRows, offsets_of
from trelliswork.runtime.arrays import Array


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
