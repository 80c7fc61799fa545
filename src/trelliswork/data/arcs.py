"""Heads of words as trees: what is wrong with them, and whether they are projective. Words count from 1."""

from __future__ import annotations

from collections.abc import Sequence

Heads = Sequence[int]


def tree_problem(heads: Heads, words: Sequence[str]) -> tuple[int, str] | None:
    """Why heads are no tree with one root: the word to look at, from 0, and what is wrong; None if they are one.

    >>> tree_problem((2, 0), ("She", "sings")) is None
    True
    >>> tree_problem((2, 1, 0), ("a", "b", "c"))
    (0, "expected a tree, got a cycle: 1 'a' -> 2 'b' -> 1 'a'")
    """
    n = len(heads)
    if max(heads, default=0) > n:
        at = next(i for i, head in enumerate(heads) if head > n)
        return at, f"expected heads in 0..{n}, as there are {n} words, got {heads[at]} for {words[at]!r}"
    roots = [i for i, head in enumerate(heads) if head == 0]
    if len(roots) > 1:
        shown = ", ".join(f"{i + 1} {words[i]!r}" for i in roots)
        return roots[1], f"expected one word with head 0, got {len(roots)}: {shown}"
    circle = _circle(heads)
    if circle:
        shown = " -> ".join(f"{m} {words[m - 1]!r}" for m in (*circle, circle[0]))
        return circle[0] - 1, f"expected a tree, got a cycle: {shown}"
    return None


def _circle(heads: Heads) -> list[int]:
    """The first words that lead to one another and never to the root, each before its head; empty if there are none."""
    seen = [0] * (len(heads) + 1)  # by which walk
    seen[0] = -1
    for start in range(1, len(heads) + 1):
        m = start
        while not seen[m]:
            seen[m] = start
            m = heads[m - 1]
        if seen[m] == start:
            circle = [m]
            while heads[circle[-1] - 1] != m:
                circle.append(heads[circle[-1] - 1])
            low = circle.index(min(circle))
            return circle[low:] + circle[:low]
    return []


def is_projective(heads: Heads) -> bool:
    """Whether no two arcs of a tree cross, that of the root included.

    If two arcs cross, one of all crossing arcs has a dependent between the ends of another and its head outside.

    >>> is_projective((2, 0, 2)), is_projective((3, 0, 2))
    (True, False)
    """
    for m, head in enumerate(heads, 1):
        low, high = (head, m) if head < m else (m, head)
        if high - low > 1:
            inside = heads[low : high - 1]
            if min(inside) < low or max(inside) > high:
                return False
    return True
