"""The heap of the best candidates, against sorting."""

from __future__ import annotations

import numpy as np
import pytest

from trelliswork.structures.frontier_kernels import offer, sort_heap


@pytest.mark.parametrize("room", [1, 2, 7, 40])
@pytest.mark.parametrize("seed", range(5))
def test_the_best_candidates_are_kept_in_whatever_order_they_come(room: int, seed: int) -> None:
    """Scores with many ties and -inf: among ties the lower number is better, and -inf is never kept."""
    generator = np.random.default_rng(seed)
    scores = generator.integers(0, 6, 30).astype(np.float64)
    scores[scores == 0] = -np.inf
    best, numbers, size = np.empty(room), np.empty(room, np.int64), 0
    for number in generator.permutation(30):
        size = offer(best, numbers, size, scores[number], number)
    sort_heap(best, numbers, size)
    ranked = sorted((-score, number) for number, score in enumerate(scores) if score > -np.inf)[:room]
    assert [(-best[i], numbers[i]) for i in range(size)] == ranked
