"""The processes that learn one model without a network. Needs no torch: a single process does everything by itself.

`process_arrays.py` has those that torchrun starts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from trelliswork.runtime.arrays import Array
from trelliswork.runtime.scratch import Scratch

T = TypeVar("T")
Input = TypeVar("Input")
Part = tuple[Array | slice, Array]  # places in a vector, and what is added there


class OneProcess:
    """The only process; the methods say what several of them do together. All must call them in the same order."""

    rank, size = 0, 1

    @property
    def alone(self) -> bool:
        """True if there is no other process."""
        return self.size == 1

    def any(self, flag: bool) -> bool:
        """Return whether the flag is set in any process."""
        return flag

    def from_first(self, value: T) -> T:
        """Return the value of the first process, in all of them."""
        return value

    def to_first(self, value: T) -> list[T]:
        """Return the value of each process in the first one; nothing in the others."""
        return [value]

    def gathered(self, compute: Callable[[], T]) -> list[T]:
        """Return what `compute` returns in each process. If it fails in one, it fails in all, with the same message."""
        return [compute()]

    def summed(self, compute: Callable[[], float]) -> float:
        """Return the sum of what `compute` returns in each process. If it fails in one, it fails in all, as in
        `gathered`.
        """
        return compute()

    def in_shares(self, answer: Callable[[Sequence[Input]], Sequence[T]], inputs: Sequence[Input]) -> list[T]:
        """Return `answer(inputs)`, an answer for each input, every process answering its share."""
        return list(answer(inputs))

    def total(self, number: float) -> float:
        """Return the sum over all processes."""
        return number

    def sums(self, numbers: Array) -> Array:
        """Return the sum over all processes of each number."""
        return numbers

    def each(self, numbers: Array) -> list[Array]:
        """Return the numbers of each process, which may be more in one than in another."""
        return [numbers]

    def union(self, numbers: Array) -> Array:
        """Return the numbers that any process has, sorted; given sorted and without repetition."""
        by_process = self.each(numbers)
        if len(by_process) == 1:
            return by_process[0]
        every = np.concatenate(by_process)
        every.sort(kind="stable")  # which merges parts that are sorted
        return every[np.concatenate([[True], every[1:] != every[:-1]])] if len(every) else every

    def own(self, vector: Array) -> Array:
        """Return the part of a vector that this process looks after."""
        return vector

    def own_sum(self, vector: Array) -> Array:
        """Return the own part of the sum over all processes."""
        return vector

    def joined(self, part: Array, n: int) -> Array:
        """Return the vector of n numbers, of which each process has its own part."""
        return part

    def parts(self, places: Array, amounts: Array, n: int) -> list[Part]:
        """Return what each process adds to a vector of n numbers at its places; as one part if that is smaller.

        Args:
            places: Places in the vector that this process adds to.
            amounts: What it adds there.
            n: Length of the vector.

        Returns:
            (places, amounts) of each process, or the whole sum.
        """
        return [(places, amounts)]


class Where(NamedTuple):
    """Processes that learn together, and where they keep their share of the data."""

    together: OneProcess = OneProcess()
    scratch: Scratch = Scratch()


ALONE = Where()
