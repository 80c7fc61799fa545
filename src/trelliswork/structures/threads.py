"""Splitting a batch over threads. Kernels release the GIL, so plain Python threads run them side by side.

numba's own parallel loops would load a second OpenMP next to torch's and slow both; a small pool does not.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from typing import Any, TypeVar

import torch

Result = TypeVar("Result")
WORTH_SPLITTING = 4_000_000  # multiply-adds (a millisecond); below, a thread is not worth waking


@lru_cache(maxsize=1)
def _pool(n_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads, thread_name_prefix="trelliswork")


if hasattr(os, "register_at_fork"):  # a forked child has the pool, but none of its threads
    os.register_at_fork(after_in_child=_pool.cache_clear)


def row_ranges(n_rows: int, work: int) -> list[tuple[int, int]]:
    """Ranges that cover 0..n_rows, one for each thread that is worth starting."""
    n_parts = min(torch.get_num_threads(), n_rows, 1 + work // WORTH_SPLITTING)
    if n_parts < 2:
        return [(0, n_rows)]
    return [(n_rows * part // n_parts, n_rows * (part + 1) // n_parts) for part in range(n_parts)]


def side_by_side(calls: Sequence[Callable[[], Result]]) -> list[Result]:
    """The results of some calls, made at the same time; the first in this thread."""
    if len(calls) == 1:
        return [calls[0]()]
    others = [_pool(torch.get_num_threads()).submit(call) for call in calls[1:]]
    return [calls[0](), *(other.result() for other in others)]


def over_rows(kernel: Callable[..., Any], n_rows: int, work: int, *arguments: Any) -> list[Any]:
    """The results of kernel(first, last, *arguments) on row ranges that cover 0..n_rows; `work` decides how many."""
    return side_by_side([partial(kernel, first, last, *arguments) for first, last in row_ranges(n_rows, work)])
