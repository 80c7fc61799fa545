"""The best of many candidates, for kernels: a heap of scores and numbers with the worst on top.

Among ties the lower number is the better one.
"""

from __future__ import annotations

from trelliswork.runtime.arrays import NEG_INF
from trelliswork.runtime.compilation import EXACT, kernel


@kernel(EXACT, inline=True)
def offer(scores, numbers, size, score, number):
    """Put a candidate above -inf into the heap if there is room, or in place of the worst if that is worse.

    Returns the size of the heap.
    """
    if size == len(scores):
        if score >= scores[0] and _worse(scores[0], numbers[0], score, number):
            _sink(scores, numbers, size, score, number)
        return size
    return size if score == NEG_INF else _rise(scores, numbers, size, score, number)


@kernel(EXACT)
def sort_heap(scores, numbers, size):
    """Bring a heap into order, best first."""
    for end in range(size - 1, 0, -1):
        score, number = scores[end], numbers[end]
        scores[end], numbers[end] = scores[0], numbers[0]
        _sink(scores, numbers, end, score, number)


@kernel(EXACT)
def _rise(scores, numbers, size, score, number):
    place = size
    while place > 0:
        above = (place - 1) // 2
        if _worse(scores[above], numbers[above], score, number):
            break
        scores[place], numbers[place] = scores[above], numbers[above]
        place = above
    scores[place], numbers[place] = score, number
    return size + 1


@kernel(EXACT)
def _sink(scores, numbers, size, score, number):
    """Put a candidate in the place of the heap's top."""
    place, low = 0, 1
    while low < size:
        other = low + 1
        if other < size and _worse(scores[other], numbers[other], scores[low], numbers[low]):
            low = other
        if _worse(score, number, scores[low], numbers[low]):
            break
        scores[place], numbers[place] = scores[low], numbers[low]
        place, low = low, 2 * low + 1
    scores[place], numbers[place] = score, number


@kernel(EXACT, inline=True)
def _worse(score, number, than_score, than_number):
    return score < than_score or (score == than_score and number > than_number)
