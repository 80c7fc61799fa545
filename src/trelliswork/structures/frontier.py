"""The frontier of a best-first search: partial hypotheses by an upper bound of all that they can become.

`frontier_kernels.py` has the frontiers of beams and of searches in kernels.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from itertools import count
from typing import Generic, TypeVar

from trelliswork.runtime.arrays import NEG_INF

Part = TypeVar("Part")
Whole = TypeVar("Whole")


class Frontier(Generic[Part, Whole]):
    """Parts of hypotheses that wait for being continued, and the k best whole ones so far.

    Iterating takes the parts, that of the highest bound first, until no bound is above the k-th best whole hypothesis:
    then `best` is certain. Among equals the one that came first is taken and kept.

    Args:
        k: Number of whole hypotheses.

    >>> frontier = Frontier[str, str](k=1)
    >>> frontier.offer(0.0, "")
    >>> for string in frontier:                          # a costs 1, b costs 2, any string of two symbols is whole
    ...     score = -string.count("a") - 2 * string.count("b")
    ...     if len(string) == 2:
    ...         frontier.finish(score, string)
    ...     else:
    ...         frontier.offer(score - 1, string + "a")
    ...         frontier.offer(score - 2, string + "b")
    >>> frontier.best
    [(-2, 'aa')]
    """

    def __init__(self, k: int) -> None:
        self.k, self.best = k, list[tuple[float, Whole]]()
        self.floor = NEG_INF  # what the score of another whole hypothesis has to exceed
        self._waiting, self._tickets = list[tuple[float, int, Part]](), count()

    def offer(self, bound: float, part: Part) -> None:
        """Have a part continued of which nothing better than `bound` can come, unless that is not enough."""
        if bound > self.floor:
            heappush(self._waiting, (-bound, next(self._tickets), part))

    def finish(self, score: float, whole: Whole) -> None:
        """Keep a whole hypothesis if it is among the k best."""
        if score > self.floor:
            insort(self.best, (score, whole), key=lambda entry: -entry[0])
            del self.best[self.k :]
            if len(self.best) == self.k:
                self.floor = self.best[-1][0]

    def __iter__(self) -> Iterator[Part]:
        waiting = self._waiting
        while waiting and -waiting[0][0] > self.floor:
            yield heappop(waiting)[2]


def path_to(node: int, parents: Sequence[int]) -> list[int]:
    """Return the nodes of a tree from below the root to `node`; the root has the parent -1."""
    nodes = []
    while parents[node] >= 0:
        nodes.append(node)
        node = parents[node]
    return nodes[::-1]
