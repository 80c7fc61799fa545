"""Arrays between the processes of a training run: sums, parts of vectors, and what one process alone knows.

A vector of weights is divided: each process looks after its own part, so that an optimizer that holds several vectors
of this size holds a share of each (as Rajbhandari et al. 2020, ZeRO: memory optimizations toward training trillion
parameter models). Processes of one machine exchange these vectors through memory that they share, others through gloo.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar, cast

import numpy as np
import torch
import torch.distributed as dist

from trelliswork.runtime.arrays import Array
from trelliswork.training.processes import Processes, join
from trelliswork.training.together import OneProcess, Part

T = TypeVar("T")
Input = TypeVar("Input")


class ManyProcesses(OneProcess):
    """The operations of `OneProcess` for all processes of a run."""

    def __init__(self, processes: Processes) -> None:
        self.rank, self.size, self._processes = processes.rank, processes.size, processes

    def any(self, flag: bool) -> bool:
        return self._processes.any(flag)

    def from_first(self, value: T) -> T:
        return self._processes.from_first(value)

    def to_first(self, value: T) -> list[T]:
        values: list[T | None] | None = [None] * self.size if self.rank == 0 else None
        dist.gather_object(value, values)
        return cast(list[T], values or [])

    def gathered(self, compute: Callable[[], T]) -> list[T]:
        return self._processes.gathered(compute)

    def summed(self, compute: Callable[[], float]) -> float:
        return self._processes.summed(compute)

    def in_shares(self, answer: Callable[[Sequence[Input]], Sequence[T]], inputs: Sequence[Input]) -> list[T]:
        return self._processes.in_shares(answer, inputs)

    def total(self, number: float) -> float:
        return float(self.sums(np.array([number], np.float64))[0])

    def sums(self, numbers: Array) -> Array:
        return self._processes.sums(numbers)

    def each(self, numbers: Array) -> list[Array]:
        sizes = self._sizes(len(numbers))
        return self._each(numbers, sizes)

    def _sizes(self, n: int) -> list[int]:
        counts = np.zeros(self.size, np.int64)
        counts[self.rank] = n
        return self.sums(counts).tolist()

    def _each(self, numbers: Array, sizes: list[int]) -> list[Array]:
        if not any(sizes):
            return [numbers for _ in sizes]
        own = torch.zeros(max(sizes) * numbers.itemsize, dtype=torch.uint8)  # bytes: torch lacks some kinds of numbers
        own[: numbers.nbytes] = torch.from_numpy(np.ascontiguousarray(numbers).view(np.uint8))
        gathered = [torch.empty_like(own) for _ in sizes]
        dist.all_gather(gathered, own)
        return [each.numpy().view(numbers.dtype)[:n] for each, n in zip(gathered, sizes, strict=True)]

    def own(self, vector: Array) -> Array:
        return self._padded(vector)[self.rank].copy()

    def own_sum(self, vector: Array) -> Array:
        padded = self._padded(vector)
        with self._processes.rows(padded.reshape(-1)) as rows:
            if rows is not None:
                sums: Array = rows.reshape(self.size, *padded.shape)[:, self.rank].sum(0)
                return sums
        sent = torch.from_numpy(padded)
        received = torch.empty_like(sent)
        dist.all_to_all_single(received, sent)
        return received.numpy().sum(0)

    def joined(self, part: Array, n: int) -> Array:
        with self._processes.rows(part) as rows:
            if rows is not None:
                return rows.reshape(-1)[:n].copy()
        parts = torch.empty(self.size, len(part), dtype=torch.float64)
        dist.all_gather(list(parts), torch.from_numpy(part))
        return parts.numpy().reshape(-1)[:n]

    def _padded(self, vector: Array) -> Array:
        """Return [processes, numbers of each], 0 after the end."""
        width = -(-len(vector) // self.size)
        if len(vector) == self.size * width:
            return vector.reshape(self.size, width)
        padded = np.zeros(self.size * width)
        padded[: len(vector)] = vector
        return padded.reshape(self.size, width)

    def parts(self, places: Array, amounts: Array, n: int) -> list[Part]:
        sizes = self._sizes(len(places))
        if max(sizes) * self.size * (places.itemsize + amounts.itemsize) < 2 * n * amounts.itemsize:
            return list(zip(self._each(places, sizes), self._each(amounts, sizes), strict=True))
        whole = np.zeros(n)
        whole[places] = amounts
        return [(slice(None), self.sums(whole))]


def all_processes() -> OneProcess:
    """Return the processes that torchrun has started together with this one."""
    return ManyProcesses(join())
