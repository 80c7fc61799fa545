"""Splitting a batch over threads. Kernels release the GIL, so plain Python threads run them side by side.

numba's own parallel loops would load a second OpenMP next to torch's and slow both; a small pool does not.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import torch

WORTH_SPLITTING = 1_000_000  # multiply-adds; below, handing work to a thread costs more than it saves


@lru_cache(maxsize=1)
def _pool(n_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads, thread_name_prefix="trelliswork")


def over_rows(kernel: Callable[..., Any], n_rows: int, work: int, *arguments: Any) -> None:
    """Call kernel(first, last, *arguments) on row ranges that cover 0..n_rows; `work` decides how many."""
    n_parts = min(torch.get_num_threads(), n_rows, 1 + work // WORTH_SPLITTING)
    if n_parts < 2:
        kernel(0, n_rows, *arguments)
        return
    edges = [n_rows * part // n_parts for part in range(n_parts + 1)]
    pool = _pool(torch.get_num_threads())
    others = [pool.submit(kernel, edges[p], edges[p + 1], *arguments) for p in range(1, n_parts)]
    kernel(edges[0], edges[1], *arguments)
    for other in others:
        other.result()
