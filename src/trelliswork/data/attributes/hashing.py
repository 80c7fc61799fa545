"""Numbers for attribute names without a table: the hash of the name, cut to some bits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from trelliswork.data.attributes.conjunctions import Conjunctions
from trelliswork.data.attributes.key_index import KeyIndex
from trelliswork.errors import ScoreError

Array = np.ndarray[Any, Any]
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
        """The number of each key."""
        return (mixed(keys) >> np.uint64(64 - self.bits)).astype(np.int32)

    add = find


def mixed(keys: Array) -> Array:
    """Keys whose high bits depend on all of theirs (MurmurHash3's finaliser, one to one).

    The last letter of a name hardly reaches the high bits of its FNV-1a hash.
    """
    keys = keys ^ (keys >> np.uint64(33))
    keys = keys * np.uint64(0xFF51AFD7ED558CCD)
    keys = keys ^ (keys >> np.uint64(33))
    keys = keys * np.uint64(0xC4CEB9FE1A85EC53)
    return keys ^ (keys >> np.uint64(33))


def new_index(hash_bits: int | None) -> KeyIndex | HashedIndex:
    """An index that learns names, or one that hashes them."""
    return KeyIndex() if hash_bits is None else HashedIndex(hash_bits)


class HashedNames(Sequence[str]):
    """What attributes are called whose names were not kept: #0, #1, ...; then conjunctions of these."""

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
