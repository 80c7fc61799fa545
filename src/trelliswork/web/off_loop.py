"""Work that grows with a request is done outside of the event loop, so that everybody else is answered meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

INLINE = 4096  # bytes that are handled at once: a thread would take longer
_THREADS = ThreadPoolExecutor(2, "trelliswork-web")
Result = TypeVar("Result")


async def off_loop(n_bytes: int, function: Callable[..., Result], *arguments: object) -> Result:
    """The result of a function of about so many bytes, found in a thread unless they are few."""
    if n_bytes <= INLINE:
        return function(*arguments)
    return await asyncio.get_running_loop().run_in_executor(_THREADS, function, *arguments)
