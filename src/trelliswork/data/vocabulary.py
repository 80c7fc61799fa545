"""A frozen list of items, each known by its index."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from trelliswork.errors import TrellisworkError


class Vocabulary:
    """Items in a fixed order; with an `unknown` item every lookup succeeds, else other items are an error.

    >>> words = Vocabulary.from_counts({"the": 3, "a": 3, "plan": 1}, min_count=2, unknown="<unk>")
    >>> words.to_list(), words.index("the"), words.index("plan")
    (['<unk>', 'a', 'the'], 2, 0)
    """

    __slots__ = ("_index", "_items", "unknown")

    def __init__(self, items: Iterable[str], *, unknown: str | None = None):
        self._items = tuple(items)
        self._index = {item: i for i, item in enumerate(self._items)}
        self.unknown = unknown
        strange = [item for item in self._items if not isinstance(item, str)]
        if strange:
            raise TrellisworkError(f"items of a vocabulary must be texts; got {strange[0]!r}")
        if len(self._index) < len(self._items):
            twice = next(item for item, n in Counter(self._items).items() if n > 1)
            raise TrellisworkError(f"items of a vocabulary must differ; got {twice!r} more than once")
        if unknown is not None and unknown not in self._index:
            raise TrellisworkError(f"the unknown item must be one of the items; {unknown!r} is not")

    @classmethod
    def from_counts(
        cls,
        counts: Mapping[str, int],
        *,
        min_count: int = 1,
        unknown: str | None = None,
        first: Iterable[str] = (),
    ) -> Vocabulary:
        """Make a vocabulary of items seen at least `min_count` times, by falling count and then alphabetically.

        `unknown` and the items of `first` (padding, borders, ...) come before them.

        Args:
            counts: How often each item was seen.
            min_count: Rarer items are left out.
            unknown: The item that all others are mapped to; None refuses them.
            first: Items that come before all others.

        Returns:
            The vocabulary.
        """
        head = list(dict.fromkeys([*([unknown] if unknown is not None else []), *first]))
        kept = sorted((-n, item) for item, n in counts.items() if n >= min_count and item not in head)
        return cls([*head, *(item for _, item in kept)], unknown=unknown)

    @classmethod
    def from_items(
        cls,
        items: Iterable[str],
        *,
        min_count: int = 1,
        unknown: str | None = None,
        first: Iterable[str] = (),
    ) -> Vocabulary:
        """Count a stream of items and make their vocabulary.

        Args:
            items: A stream of items.
            min_count: Rarer items are left out.
            unknown: The item that all others are mapped to; None refuses them.
            first: Items that come before all others.

        Returns:
            The vocabulary.
        """
        return cls.from_counts(Counter(items), min_count=min_count, unknown=unknown, first=first)

    @classmethod
    def from_list(cls, items: Iterable[str], *, unknown: str | None = None) -> Vocabulary:
        """Make a vocabulary of what `to_list` gave."""
        return cls(items, unknown=unknown)

    def to_list(self) -> list[str]:
        """Return the items in index order, fit for JSON."""
        return list(self._items)

    def index(self, item: str) -> int:
        """Return the index of `item`, or that of the unknown item."""
        i = self._index.get(item)
        if i is not None:
            return i
        if self.unknown is None:
            known = ", ".join(self._items[:12]) + (", ..." if len(self) > 12 else "")
            raise TrellisworkError(f"expected one of the {len(self)} known items ({known}); got {item!r}")
        return self._index[self.unknown]

    def indices(self, items: Iterable[str]) -> list[int]:
        """Return the index of each item."""
        return [self.index(item) for item in items]

    def __getitem__(self, i: int) -> str:
        return self._items[i]

    def __contains__(self, item: object) -> bool:
        return item in self._index

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented
        return self._items == other._items and self.unknown == other.unknown

    def __hash__(self) -> int:
        return hash((self._items, self.unknown))

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} items, unknown={self.unknown!r})"
