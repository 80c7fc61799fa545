"""Training in several processes: which part each one takes, and how their results are put together.

`torchrun --nproc-per-node 2 -m trelliswork train ...` starts the same program twice. `join` finds out that there are
two, and the loop asks `Processes` for its share of the batches of each step. Gradients are summed over the processes
before each update, so that all of them always hold the same weights; only the first one writes files. Sums go through
memory that the processes of one machine share; between machines, and for everything else, there is gloo.

Li et al. (2020), PyTorch distributed: experiences on accelerating data parallel training.

A message through a socket takes some milliseconds until a sleeping process goes on, and a training step has several.
Here each process writes its numbers where the others see them and looks at a counter until all are there.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, TypeVar, cast

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from trelliswork.errors import TrellisworkError
from trelliswork.runtime.arrays import Array
from trelliswork.runtime.parents import watch_parent
from trelliswork.training.interrupts import Interrupts
from trelliswork.training.shares import n_processes

MARK = 64  # random bytes at the beginning: on another machine the same path may be another file
LINE = 8  # whole numbers of 64 bits between two counters, so that no two are in one line of a cache
AWAKE, NAP = 0.02, 0.0005  # seconds of waiting without sleeping, and of a sleep after that
LOOK = 1.0  # seconds of waiting until a process looks whether the others are still there


class SharedFile(NamedTuple):
    """Path by which other processes open the memory of the first one."""

    path: str
    mark: bytes

    @classmethod
    def of(cls, file: int) -> SharedFile:
        """Return the path and mark of an open file of this process."""
        return cls(f"/proc/{os.getpid()}/fd/{file}", os.pread(file, MARK, 0))


class SharedMemory:
    """`rows` shows each process what all of them have. All must call it in the same order.

    Args:
        memory: Bytes that all processes see.
        rank: The number of this process.
        size: The number of processes.
    """

    def __init__(self, memory: Array, rank: int, size: int) -> None:
        lines = memory[: 8 * LINE * size].view(np.int64).reshape(size, LINE)
        self._arrived, self._pids, self._rank, self.room = lines[:, 0], lines[:, 1], rank, memory[8 * LINE * size :]
        self._pids[rank] = os.getpid()

    @contextmanager
    def rows(self, own: Array) -> Iterator[Array]:
        """Inside, [processes, ...]: the numbers of each process, which are read and not changed."""
        size = len(self._arrived)
        rows = self.room[: size * own.nbytes].view(own.dtype).reshape(size, *own.shape)
        rows[self._rank] = own
        self._wait()
        yield rows
        self._wait()  # others may still be reading

    def _wait(self) -> None:
        """Until all processes are here."""
        self._arrived[self._rank] += 1
        wanted, began = self._arrived[self._rank], time.monotonic()
        look = began + LOOK
        while self._arrived.min() < wanted:
            now = time.monotonic()
            if now - began < AWAKE:
                os.sched_yield()
                continue
            time.sleep(NAP)
            if now > look:
                look = now + LOOK
                self._check(wanted)

    def _check(self, wanted: int) -> None:
        """Nobody waits for a process that has ended."""
        for rank in np.flatnonzero((self._arrived < wanted) & (self._pids > 0)).tolist():
            try:
                os.kill(int(self._pids[rank]), 0)
            except ProcessLookupError:
                raise TrellisworkError(f"process {rank} of the run has ended; see what it printed") from None


def shared_memory(
    n_bytes: int,
    rank: int,
    size: int,
    from_first: Callable[[SharedFile | None], SharedFile | None],
    any_of: Callable[[bool], bool],
) -> SharedMemory | None:
    """Return memory with room for n bytes of each process; None in all of them if any cannot have it.

    It is a file without a name (memfd), which the others open through the first process: it is gone with the last of
    them, also after a kill. None if processes are on several machines, or if the system has no such files or the
    processor may show what another one wrote in another order. `from_first` gives all processes the value of the first,
    `any_of` says whether a flag is set in any of them.

    Args:
        n_bytes: Room for the numbers of each process.
        rank: The number of this process.
        size: The number of processes.
        from_first: Gives all processes the value of the first.
        any_of: Returns whether a flag is set in any process.

    Returns:
        The memory, or None in all processes.
    """
    n_bytes = size * (8 * LINE + n_bytes)
    file = _reserve(n_bytes) if rank == 0 else None
    try:
        shared = from_first(None if file is None else SharedFile.of(file))
        memory = None if shared is None else open_shared(shared, n_bytes)
        return None if any_of(memory is None) or memory is None else SharedMemory(memory, rank, size)
    finally:
        if file is not None:
            os.close(file)


def _reserve(n_bytes: int) -> int | None:
    """Return the descriptor of a file of `n_bytes` bytes behind its mark, all 0."""
    if not hasattr(os, "memfd_create") or platform.machine() not in ("x86_64", "AMD64"):
        return None
    file = os.memfd_create("trelliswork")
    try:
        os.posix_fallocate(file, 0, MARK + n_bytes)  # a page that is not available later would kill the program
        os.pwrite(file, os.urandom(MARK), 0)
        return file
    except OSError:
        os.close(file)
        return None


def open_shared(shared: SharedFile, n_bytes: int) -> Array | None:
    """Return the bytes behind the mark; None if they are not available from here."""
    try:
        with open(shared.path, "r+b") as file:
            if file.read(MARK) != shared.mark:
                return None
            return np.memmap(file, np.uint8, "r+", offset=MARK, shape=(n_bytes,)).view(np.ndarray)
    except (OSError, ValueError):
        return None


T = TypeVar("T")
Input = TypeVar("Input")
SMALL = 1 << 16  # bytes of each process that are shared at least
MANY_ROWS = 1000  # a table of at least this many rows is exchanged by the rows that have a gradient


@dataclass
class _Memory:
    """Memory that the processes of one run share, once they have asked for it."""

    memory: SharedMemory | None = None
    is_possible: bool = True


@dataclass(frozen=True)
class Processes:
    """The processes of one run: this is number `rank` of `size`. A single process does everything by itself."""

    rank: int = 0
    size: int = 1
    _memory: _Memory = field(default_factory=_Memory, repr=False, compare=False)

    @property
    def is_first(self) -> bool:
        """True for the process that writes files and talks to the user."""
        return self.rank == 0

    @property
    def alone(self) -> bool:
        """True if there is no other process."""
        return self.size == 1

    def share(self, items: Sequence[T]) -> Sequence[T]:
        """Return the items of this process.

        >>> Processes(1, 2).share("abcde")
        'bd'
        """
        return items[self.rank :: self.size]

    def from_first(self, value: T) -> T:
        """Return the value of the first process, in all of them."""
        if self.alone:
            return value
        box = [value]
        dist.broadcast_object_list(box, src=0)
        return box[0]

    def any(self, flag: bool) -> bool:
        """Return whether the flag is set in any process."""
        return flag if self.alone else bool(self.largest(np.array([flag], np.uint8))[0])

    def sums(self, numbers: Array) -> Array:
        """Return the sum over all processes of each number."""
        with self.rows(numbers) as rows:
            return _reduced(numbers, dist.ReduceOp.SUM) if rows is None else rows.sum(0, dtype=numbers.dtype)

    def largest(self, numbers: Array) -> Array:
        """Return the largest of all processes of each number."""
        with self.rows(numbers) as rows:
            return _reduced(numbers, dist.ReduceOp.MAX) if rows is None else rows.max(0)

    @contextmanager
    def rows(self, own: Array) -> Iterator[Array | None]:
        """Inside, the numbers of each process, as many in all; None if processes share no memory."""
        memory = self._memory_for(own.nbytes)
        if memory is None:
            yield None
            return
        with memory.rows(own) as rows:
            yield rows

    def _memory_for(self, n_bytes: int) -> SharedMemory | None:
        """Return shared memory for `n_bytes` bytes of each process, larger than before if need be."""
        known = self._memory
        if known.is_possible and (known.memory is None or len(known.memory.room) < self.size * n_bytes):
            known.memory = shared_memory(max(n_bytes, SMALL), self.rank, self.size, self.from_first, _any_through_gloo)
            known.is_possible = known.memory is not None
        return known.memory

    def gathered(self, compute: Callable[[], T]) -> list[T]:
        """Return what `compute` returns in each process. If it fails in one, it fails in all, with the same message."""
        if self.alone:
            return [compute()]
        result, problem = None, None
        try:
            result = compute()
        except Exception as error:
            problem = error
        results: list[tuple[T | None, str | None]] = [(None, None)] * self.size
        dist.all_gather_object(results, (result, None if problem is None else str(problem)))
        if problem is not None:
            raise problem
        failures = [f"process {rank}: {message}" for rank, (_, message) in enumerate(results) if message is not None]
        if failures:
            raise TrellisworkError("; ".join(failures))
        return [cast(T, each) for each, _ in results]

    def summed(self, compute: Callable[[], float]) -> float:
        """Return the sum of what `compute` returns in each process. If it fails in one, it fails in all, as in
        `gathered`.
        """
        if self.alone:
            return compute()
        number, problem = 0.0, None
        try:
            number = compute()
        except Exception as error:
            problem = error
        totals = self.sums(np.array([number, problem is not None], np.float64))
        if totals[1]:
            self.gathered(partial(_raised, problem))
        return float(totals[0])

    def in_shares(self, answer: Callable[[Sequence[Input]], Sequence[T]], inputs: Sequence[Input]) -> list[T]:
        """Return `answer(inputs)`, an answer for each input, every process answering its share."""
        by_process = self.gathered(lambda: answer(self.share(inputs)))
        in_order: list[T | None] = [None] * len(inputs)
        for rank, answers in enumerate(by_process):
            in_order[rank :: self.size] = answers
        return in_order  # type: ignore[return-value]

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Replace each gradient by its sum over the processes; of large tables, only rows with a gradient travel."""
        if self.alone:
            return
        moved = [each for each in parameters if each.requires_grad]
        present, rows = self._touched(moved)
        buffers = [_gradient(each)[mask.to(each.device)] if mask is not None else _gradient(each)
                   for each, mask, there in zip(moved, rows, present, strict=True) if there]  # fmt: skip
        if not buffers:
            return
        flat = torch.cat([each.reshape(-1).cpu() for each in buffers])
        flat = torch.from_numpy(self.sums(flat.numpy()))
        sums = iter(flat.split([each.numel() for each in buffers]))
        for each, mask, there in zip(moved, rows, present, strict=True):
            if there and mask is None:
                each.grad = next(sums).view_as(each).to(each.device)
            elif there and mask is not None:
                total = next(sums).view(-1, *each.shape[1:]).to(each.device)
                each.grad = _gradient(each).index_put_((mask.to(each.device),), total)

    def _touched(self, parameters: Sequence[nn.Parameter]) -> tuple[list[bool], list[Tensor | None]]:
        """Return the parameters that have a gradient in any process, and such rows of the large ones."""
        masks = [_nonzero_rows(each) if _is_table(each) else None for each in parameters]
        present = torch.tensor([each.grad is not None for each in parameters], dtype=torch.uint8)
        flags = torch.cat([present, *(mask for mask in masks if mask is not None)])
        flags = torch.from_numpy(self.largest(flags.numpy()))
        pieces = iter(flags[len(present) :].split([len(mask) for mask in masks if mask is not None]))
        return flags[: len(present)].bool().tolist(), [None if mask is None else next(pieces).bool() for mask in masks]


def _reduced(numbers: Array, op: dist.ReduceOp.RedOpType) -> Array:
    """Reduce numbers over all processes through gloo."""
    reduced = torch.from_numpy(numbers.copy())
    dist.all_reduce(reduced, op)
    return reduced.numpy()


def _any_through_gloo(flag: bool) -> bool:
    return bool(_reduced(np.array([flag], np.uint8), dist.ReduceOp.MAX)[0])


def _raised(problem: Exception | None) -> None:
    if problem is not None:
        raise problem


def _is_table(parameter: nn.Parameter) -> bool:
    return parameter.dim() == 2 and len(parameter) >= MANY_ROWS


def _gradient(parameter: nn.Parameter) -> Tensor:
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad


def _nonzero_rows(parameter: nn.Parameter) -> Tensor:
    return (_gradient(parameter) != 0).any(1).to("cpu", torch.uint8)


class SharedInterrupts(Interrupts):
    """Ctrl-C in any process ends all of them after the same step."""

    def __init__(self, processes: Processes) -> None:
        super().__init__(wait=not processes.alone)
        self._processes = processes

    @contextmanager
    def undivided(self) -> Iterator[None]:
        if self._processes.alone:
            with super().undivided():
                yield
            return
        yield
        if self._processes.any(self.pending):
            raise KeyboardInterrupt


def join() -> Processes:
    """Return the processes that were started together with this one by torchrun; this one alone if it was not."""
    if n_processes() < 2:
        return Processes()
    if not dist.is_initialized():
        dist.init_process_group("gloo")
        if (
            "TORCHELASTIC_RUN_ID" in os.environ
        ):  # the parent is torchrun, and leaves its processes alone if it is killed
            watch_parent(os.getppid())
    return Processes(dist.get_rank(), dist.get_world_size())
