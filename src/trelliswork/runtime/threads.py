"""Splitting a batch over threads. Kernels release the GIL, so plain Python threads run them side by side.

numba's own parallel loops would load a second OpenMP next to torch's and slow both; a small pool does not.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import TypeVar

Result = TypeVar("Result")
SMALL = 500_000_000  # multiply-adds of a network, at most: some sentences, of which each takes many short operations
WORTH_SPLITTING = 4_000_000  # multiply-adds (a millisecond); below, a thread is not worth waking


def n_threads() -> int:
    """Return the number of threads to use: torch's number, once it is imported."""
    torch = sys.modules.get("torch")
    return int(torch.get_num_threads()) if torch is not None else int(os.environ.get("OMP_NUM_THREADS") or n_cores())


def use_threads(n: int) -> None:
    """Use `n` threads, in torch too, whether it is imported already or not."""
    os.environ["OMP_NUM_THREADS"] = str(n)
    if (torch := sys.modules.get("torch")) is not None:
        torch.set_num_threads(n)


@contextmanager
def one_thread_if_small(work: int) -> Iterator[None]:
    """Give torch one thread inside, for `work` multiply-adds that are done before others would be awake.

    It is the number of the calling thread that changes: other threads that use torch, to train say, keep theirs.
    """
    torch = sys.modules.get("torch") if work < SMALL else None
    before = 1 if torch is None else int(torch.get_num_threads())
    if torch is None or before == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def n_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@lru_cache(maxsize=1)
def _pool(n_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads, thread_name_prefix="trelliswork")


if hasattr(os, "register_at_fork"):  # a forked child has the pool, but none of its threads
    os.register_at_fork(after_in_child=_pool.cache_clear)


def row_ranges(n_rows: int, work: int) -> list[tuple[int, int]]:
    """Return ranges that cover 0..n_rows, one for each thread that is worth starting."""
    n_parts = min(n_threads(), n_rows, 1 + work // WORTH_SPLITTING)
    if n_parts < 2:
        return [(0, n_rows)]
    return [(n_rows * part // n_parts, n_rows * (part + 1) // n_parts) for part in range(n_parts)]


def side_by_side(calls: Sequence[Callable[[], Result]]) -> list[Result]:
    """Return the results of some calls, made at the same time; the first in this thread."""
    if len(calls) == 1:
        return [calls[0]()]
    others = [_pool(n_threads()).submit(call) for call in calls[1:]]
    return [calls[0](), *(other.result() for other in others)]


def over_rows(kernel: Callable[..., Result], n_rows: int, work: int, *arguments: object) -> list[Result]:
    """Return the results of kernel(first, last, *arguments) on row ranges that cover 0..n_rows.

    Args:
        kernel: what is called with the first row, the row behind the last, and the arguments.
        n_rows: how many rows there are.
        work: about how many operations all rows take; decides how many threads share them.
        arguments: further arguments of the kernel.

    Returns:
        What the kernel returned for each range, in order of rows.
    """
    if work < WORTH_SPLITTING:
        return [kernel(0, n_rows, *arguments)]
    return side_by_side([partial(kernel, first, last, *arguments) for first, last in row_ranges(n_rows, work)])
