"""Numbers for attribute names: a hash table in two arrays, which a model maps from disk without reading it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from trelliswork.data.attributes.key_kernels import EMPTY, add_keys, find_keys, hash_texts
from trelliswork.data.attributes.rows import Conjunctions
from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import Array


def encoded(texts: Sequence[str]) -> tuple[Array, Array]:
    """Return texts as UTF-8 bytes behind one another, and where each begins: [sum of bytes], [n + 1]."""
    parts = [text.encode(errors="surrogatepass") for text in texts]
    offsets = np.zeros(len(parts) + 1, np.int64)
    np.cumsum([len(part) for part in parts], out=offsets[1:])
    return np.frombuffer(b"".join(parts), np.uint8), offsets


def keys_of(names: Sequence[str]) -> Array:
    """Return the key of each name."""
    keys = np.empty(len(names), np.uint64)
    hash_texts(*encoded(names), keys)
    return keys


class KeyIndex:
    """Keys in the order in which they were first added: 0, 1, 2, ...

    >>> index = KeyIndex()
    >>> index.add(keys_of(["w=the", "w=dog", "w=the"])).tolist(), index.find(keys_of(["w=cat", "w=dog"])).tolist()
    ([0, 1, 0], [-1, 1])

    Args:
        table: Keys by open addressing, uint64 [2^k].
        numbers: Number of each key in the table, int32 [2^k].
        n_known: How many keys the table has.
    """

    def __init__(self, table: Array | None = None, numbers: Array | None = None, n_known: int = 0) -> None:
        self.table = np.zeros(1024, np.uint64) if table is None else table
        self.numbers = np.zeros(1024, np.int32) if numbers is None else numbers
        self._n_known = n_known

    def check(self) -> None:
        """Raise `ValueError` unless a search in this table ends, and ends at a number that is known."""
        size = len(self.table)
        if self.table.dtype != np.uint64 or self.numbers.dtype != np.int32 or self.numbers.shape != (size,):
            raise ValueError("keys and numbers are not those of one table")
        used = self.table != EMPTY
        if size == 0 or size & (size - 1) or used.all():
            raise ValueError(f"a table of {size} keys is not one that was saved")
        numbers = self.numbers.take(np.flatnonzero(used)).view(np.uint32)  # where negative ones are too large
        seen = np.zeros(len(numbers), np.bool_)
        fit = len(numbers) == self._n_known and numbers.max(initial=0) < max(len(seen), 1)
        if fit:
            seen[numbers] = True
        if not (fit and seen.all()):
            raise ValueError(f"the keys are not numbered 0..{self._n_known - 1}")

    @classmethod
    def of(cls, keys: Array) -> KeyIndex:
        """Return the index of keys that all differ."""
        index = cls()
        index.add(keys)
        return index

    def __len__(self) -> int:
        return self._n_known

    def __reduce__(self) -> tuple[object, ...]:
        return KeyIndex.of, (self.keys(),)  # most of the table is empty

    def add(self, keys: Array) -> Array:
        """Return the number of each key; unknown keys get new ones."""
        ids, done = np.empty(len(keys), np.int32), 0
        while True:
            done, self._n_known = add_keys(self.table, self.numbers, self._n_known, keys, done, ids)
            if done == len(keys):
                return ids
            self._grow()

    def find(self, keys: Array) -> Array:
        """Return the number of each key; -1 for unknown keys."""
        ids = np.empty(len(keys), np.int32)
        find_keys(self.table, self.numbers, keys, ids)
        return ids

    def keys(self) -> Array:
        """Return all keys, by number."""
        used = self.table != EMPTY
        keys = np.empty(self._n_known, np.uint64)
        keys[self.numbers[used]] = self.table[used]
        return keys

    def _grow(self) -> None:
        keys = self.keys()
        size = 4 * len(self.table)
        self.table, self.numbers, self._n_known = np.zeros(size, np.uint64), np.zeros(size, np.int32), 0
        add_keys(self.table, self.numbers, 0, keys, 0, np.empty(len(keys), np.int32))
        self._n_known = len(keys)


# Numbers for attribute names without a table: the hash of the name, cut to some bits.

MAX_BITS = 28
HINT = "#N is the number of hashed attributes, whose names are not kept; train without hash_bits to see names"


@dataclass(frozen=True)
class HashedIndex:
    """Every key has a number below 2^bits; attributes that share one share their weights.

    >>> from trelliswork.data.attributes.key_index import keys_of
    >>> index = HashedIndex(10)
    >>> len(index), (index.find(keys_of(["w=the", "never seen"])) < 1024).all()
    (1024, np.True_)
    """

    bits: int

    def __post_init__(self) -> None:
        if not 1 <= self.bits <= MAX_BITS:
            raise ScoreError(f"hash_bits must lie in 1..{MAX_BITS}; got {self.bits}; 18 to 22 suit most data")

    def __len__(self) -> int:
        return 1 << self.bits

    def find(self, keys: Array) -> Array:
        """Return the number of each key."""
        return (mixed(keys) >> np.uint64(64 - self.bits)).astype(np.int32)

    add = find


def mixed(keys: Array) -> Array:
    """Return keys whose high bits depend on all of theirs (MurmurHash3's finaliser, one to one).

    The last letter of a name barely reaches the high bits of its FNV-1a hash.
    """
    keys = keys ^ (keys >> np.uint64(33))
    keys = keys * np.uint64(0xFF51AFD7ED558CCD)
    keys = keys ^ (keys >> np.uint64(33))
    keys = keys * np.uint64(0xC4CEB9FE1A85EC53)
    return keys ^ (keys >> np.uint64(33))


def new_index(hash_bits: int | None) -> KeyIndex | HashedIndex:
    """Return an index that learns names, or one that hashes them."""
    return KeyIndex() if hash_bits is None else HashedIndex(hash_bits)


class HashedNames(Sequence[str]):
    """Names of attributes whose own were not kept: #0, #1, ...; then conjunctions of these."""

    def __init__(self, conjunctions: Conjunctions) -> None:
        self._n_hashed, self._parts = conjunctions.n_atomic, conjunctions.parts()

    def __len__(self) -> int:
        return self._n_hashed + len(self._parts)

    @overload
    def __getitem__(self, i: int) -> str: ...

    @overload
    def __getitem__(self, i: slice) -> list[str]: ...

    def __getitem__(self, i: int | slice) -> str | list[str]:
        if isinstance(i, slice):
            return [self[k] for k in range(*i.indices(len(self)))]
        if not 0 <= i < len(self):
            raise IndexError(i)
        if i < self._n_hashed:
            return f"#{i}"
        return " & ".join(f"#{part}" for part in self._parts[i - self._n_hashed])
