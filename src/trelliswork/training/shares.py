"""Evaluation in shares: what several processes of one training run answer together. Needs no torch.

`processes.py` has the rest of training in several processes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")
Input = TypeVar("Input")
Answering = Callable[[Sequence[Any]], Sequence[Any]]  # inputs of any kind
InShares = Callable[[Answering, Sequence[Any]], list[Any]]
_IN_SHARES: ContextVar[InShares | None] = ContextVar("in_shares", default=None)


def n_processes() -> int:
    """Return the number of processes that torchrun has started together, this one included."""
    return int(os.environ.get("WORLD_SIZE", "1"))


@contextmanager
def sharing(in_shares: InShares) -> Iterator[None]:
    """Inside, `answered` goes through `in_shares`; all processes must come here with the same inputs."""
    before = _IN_SHARES.set(in_shares)
    try:
        yield
    finally:
        _IN_SHARES.reset(before)


def answered(answer: Callable[[Sequence[Input]], Sequence[T]], inputs: Sequence[Input]) -> list[T]:
    """Return `answer(inputs)`; while all processes of a run evaluate together, each answers its share.

    >>> answered(lambda words: [len(word) for word in words], ["a", "bcd"])
    [1, 3]
    """
    in_shares = _IN_SHARES.get()
    return list(answer(inputs)) if in_shares is None else in_shares(answer, inputs)
