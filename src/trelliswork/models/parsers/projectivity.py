"""Whether the arcs of a tree cross."""

from __future__ import annotations

from collections.abc import Sequence


def crosses(heads: Sequence[int]) -> bool:
    """Whether two arcs cross; the root stands to the left of all words.

    Arcs are gone through from left to right, and those that are open are a stack: one that ends must be the last.

    >>> crosses([2, 0, 2]), crosses([3, 4, 0, 3])
    (False, True)
    """
    opened: list[list[int]] = [[] for _ in range(len(heads) + 1)]
    for word, head in enumerate(heads, 1):
        opened[min(word, head)].append(max(word, head))
    ends: list[int] = []
    for place, new in enumerate(opened):
        while ends and ends[-1] == place:
            ends.pop()
        if place in ends:
            return True
        ends += sorted(new, reverse=True)
    return False
