"""Large arrays that begin at a line of the cache, from memory that was used before.

A forward-backward pass needs a few arrays of megabytes for a moment. The C allocator gives such memory back to the
system each time and gets it again page by page, which can take as long as the computation itself. Here it is kept.
What the allocator gives begins 16 bytes after a line of the cache: every vector of a matrix then lies across two lines,
and the sums over the paths of a chain with 100 labels take a third longer.
"""

from __future__ import annotations

import contextlib
import math
import sys
import weakref

import numpy as np

from trelliswork.runtime.arrays import Array

LINE = 8  # numbers (64 bytes): a line of the cache, and the longest vector register
LARGE = 1 << 17  # numbers (1 MB): what is smaller stays with the allocator, and is cheaper to take from it
MOST_KEPT = 1 << 24  # numbers (128 MB)

_parked: list[Array] = []


def empty(shape: tuple[int, ...], dtype: type = np.float64) -> Array:
    """Return np.empty(shape) in float64 or float32; the memory of a large one is used again after the array is gone.

    Views of it are safe to keep: while there is one, the memory is not used again.
    """
    size = math.prod(shape)
    if size < LARGE:
        return np.empty(shape, dtype)
    doubles = -(-size * np.dtype(dtype).itemsize // 8)
    block = _take(doubles + LINE)
    array: Array = _from_a_line(block, doubles).view(dtype)[:size].reshape(shape)
    weakref.finalize(array, _park, block).atexit = False
    return array


def matrices(shape: tuple[int, ...]) -> Array:
    """Return `empty` for what is run over many times: small ones begin at a line of the cache too."""
    return empty(shape) if math.prod(shape) >= LARGE else aligned(shape)


def aligned(shape: tuple[int, ...]) -> Array:
    """Return np.empty(shape) in float64 that begins at a line of the cache, from new memory."""
    size = math.prod(shape)
    return _from_a_line(np.empty(size + LINE), size).reshape(shape)


def _from_a_line(block: Array, size: int) -> Array:
    first = -(block.ctypes.data // block.itemsize) % LINE
    return block[first : first + size]


def _take(size: int) -> Array:
    """Return the smallest parked block that fits and is not more than twice too large, or a new one."""
    fitting = [index for index, block in enumerate(_parked) if size <= len(block) <= 2 * size]
    try:
        block = _parked.pop(min(fitting, key=lambda index: len(_parked[index])))
    except (ValueError, IndexError):  # nothing fits, or another thread was faster
        return np.empty(size)
    # Blocks that other threads take or park meanwhile move the rest: what was popped may be another one.
    return block if size <= len(block) <= 2 * size else np.empty(size)


def _park(block: Array) -> None:
    if sys.getrefcount(block) > UNSEEN:  # a view is still in use: it owns the memory from now on
        return
    _parked.append(block)
    while sum(len(each) for each in _parked) > MOST_KEPT:
        with contextlib.suppress(IndexError):  # other threads may have taken all of them
            _parked.pop(0)


def _references_when_unseen() -> int:
    """Count the references that `_park` sees to a block that nobody else has; -1 where objects do not go at once."""
    counts: list[int] = []
    block = np.empty(1)
    array = block[:1].reshape((1,))
    weakref.finalize(array, lambda block: counts.append(sys.getrefcount(block)), block)
    del block
    del array
    return counts[0] if counts else -1


UNSEEN = _references_when_unseen()
