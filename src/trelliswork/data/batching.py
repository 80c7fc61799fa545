"""Minibatches by token budget: sentences of like length together, padding counted."""

from __future__ import annotations

import random
from collections.abc import Sequence

from trelliswork.errors import TrellisworkError


def token_budget_batches(
    lengths: Sequence[int], budget: int, *, seed: int = 0, shuffle: bool = True, bucket: int = 0
) -> list[list[int]]:
    """Split sentences 0..len(lengths)-1 into batches whose padded size, rows x longest, is at most `budget`.

    Sentences are sorted by length within buckets of `bucket` sentences (0: one bucket) to keep padding small;
    a sentence longer than the budget gets a batch of its own. With `shuffle`, ties of length, bucket
    members and the order of batches are random but depend on `seed` alone; without, the order is by length.

    Args:
        lengths: The length of each sentence.
        budget: The largest padded size of a batch, rows times longest, in tokens.
        seed: Of the random numbers.
        shuffle: Whether batches are in random order.
        bucket: The number of sentences that are sorted by length together; 0 is all.

    Returns:
        The numbers of the sentences of each batch.

    >>> token_budget_batches([5, 1, 2, 9], 6, shuffle=False)
    [[1, 2], [0], [3]]
    """
    if budget < 1:
        raise TrellisworkError(f"the token budget must be at least 1; got {budget}")
    order = list(range(len(lengths)))
    random_ = random.Random(seed)
    if shuffle:
        random_.shuffle(order)
    size = bucket or max(len(order), 1)
    batches: list[list[int]] = []
    for begin in range(0, len(order), size):
        batches += _fill(sorted(order[begin : begin + size], key=lengths.__getitem__), lengths, budget)
    if shuffle:
        random_.shuffle(batches)
    return batches


def _fill(order: Sequence[int], lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Cut an order of growing length into batches; the newest sentence is always the longest of its batch."""
    batches: list[list[int]] = []
    current: list[int] = []
    for i in order:
        if current and lengths[i] * (len(current) + 1) > budget:
            batches.append(current)
            current = []
        current.append(i)
    return [*batches, current] if current else batches
