"""The frontier of a search, for kernels: the best of many candidates, where they come from, and a queue by score.

A candidate is a score and a number. In beams the number is `parent * (n_decisions + 1) + decision`, where the last
decision means none: a finished hypothesis that competes as it is. Among ties the lower number is the better one.

The best are kept in a heap with the worst on top. With room for one more than the beam is wide, the last one of the
sorted heap bounds everything that was ever dropped: nothing can be lost by a beam whose result is better.
"""

from __future__ import annotations

from trelliswork.runtime.arrays import NEG_INF
from trelliswork.runtime.compilation import EXACT, kernel

NOTHING = -1  # the decision of a hypothesis that has finished


@kernel(EXACT, inline=True)
def _is_worse(score, number, than_score, than_number):
    return score < than_score or (score == than_score and number > than_number)


@kernel(EXACT, inline=True)
def offer(scores, numbers, size, score, number):
    """Put a candidate above -inf into the heap if there is room, or in place of the worst if that is worse.

    Returns the size of the heap. A call counts references to both arrays, which takes ten times as long as a
    comparison: loops over many candidates call it only if `size < len(scores) or score >= scores[0]`.

    Args:
        scores: scores of the candidates, float64 [room].
        numbers: number of each candidate, int64 [room].
        size: how many there are.
        score: score of the candidate.
        number: its number.
    """
    if size == len(scores):
        if score >= scores[0] and _is_worse(scores[0], numbers[0], score, number):
            _sink(scores, numbers, size, score, number)
        return size
    return size if score == NEG_INF else _rise(scores, numbers, size, score, number)


@kernel(EXACT)
def sort_heap(scores, numbers, size):
    """Bring a heap into order, best first.

    Args:
        scores: scores of the candidates, float64 [room].
        numbers: number of each candidate, int64 [room].
        size: how many there are.
    """
    for end in range(size - 1, 0, -1):
        score, number = scores[end], numbers[end]
        scores[end], numbers[end] = scores[0], numbers[0]
        _sink(scores, numbers, end, score, number)


@kernel(EXACT)
def _rise(scores, numbers, size, score, number):
    place = size
    while place > 0:
        above = (place - 1) // 2
        if _is_worse(scores[above], numbers[above], score, number):
            break
        scores[place], numbers[place] = scores[above], numbers[above]
        place = above
    scores[place], numbers[place] = score, number
    return size + 1


@kernel(EXACT)
def _sink(scores, numbers, size, score, number):
    """Put a candidate in place of the heap's top."""
    place, low = 0, 1
    while low < size:
        other = low + 1
        if other < size and _is_worse(scores[other], numbers[other], scores[low], numbers[low]):
            low = other
        if _is_worse(score, number, scores[low], numbers[low]):
            break
        scores[place], numbers[place] = scores[low], numbers[low]
        place, low = low, 2 * low + 1
    scores[place], numbers[place] = score, number


@kernel(EXACT)
def prune(scores, numbers, size, width, gap):
    """Bring a heap into order, best first, and keep `width` candidates that score at most `gap` below the best.

    Returns how many are kept, and the best score of those that are not (-inf if all are).

    Args:
        scores: scores of the candidates, float64 [room].
        numbers: number of each candidate, int64 [room].
        size: how many there are.
        width: how many to keep.
        gap: how far below the best a score may be.
    """
    sort_heap(scores, numbers, size)
    n_kept = min(size, width)
    while n_kept > 1 and scores[n_kept - 1] < scores[0] - gap:
        n_kept -= 1
    return n_kept, scores[n_kept] if n_kept < size else NEG_INF


@kernel(EXACT)
def split(numbers, size, n_decisions, parents, decisions):
    """Fill in the parents and decisions of the first `size` candidates of a beam.

    Args:
        numbers: number of each candidate, int64 [room].
        size: how many there are.
        n_decisions: number of decisions.
        parents: int64 [size], filled in.
        decisions: int64 [size], filled in.
    """
    for rank in range(size):
        parents[rank], decision = numbers[rank] // (n_decisions + 1), numbers[rank] % (n_decisions + 1)
        decisions[rank] = decision if decision < n_decisions else NOTHING


@kernel(EXACT)
def trace_back(parents, decisions, n_steps, place, path):
    """Fill in the decisions that led to the hypothesis at `place` of the beam after `n_steps` steps.

    `parents` and `decisions` are those of each hypothesis at each step, [step, beam].

    Args:
        parents: int64 [steps, beam].
        decisions: int64 [steps, beam].
        n_steps: number of steps.
        place: place of the hypothesis.
        path: decisions that led to it, int64 [steps], filled in.
    """
    for step in range(n_steps - 1, -1, -1):
        path[step] = decisions[step, place]
        place = parents[step, place]


# Best-first search: a queue is a heap of minus the scores and minus the numbers, so that the best is on top.


@kernel(EXACT)
def push(queue, size, score, number):
    """Put a number into a queue of `size`.

    Args:
        queue: scores and numbers in the order of a heap, each [room], changed in place.
        size: how many there are.
        score: its score; the highest comes out first.
        number: its number.
    """
    _rise(queue[0], queue[1], size, -score, -number)


@kernel(EXACT)
def pop(queue, size):
    """Take the number with the highest score from a queue of `size`, among ties the lowest.

    Args:
        queue: scores and numbers in the order of a heap, each [room], changed in place.
        size: how many there are.
    """
    (scores, numbers), first = queue, -queue[1][0]
    _sink(scores, numbers, size - 1, scores[size - 1], numbers[size - 1])
    return first
