"""Reading scores and adding up gradients in kernels, for both ways in which the scores of segments are given.

`parts` is an array [batch, n, k, c]: a score for each segment. Or it is a tuple (tokens, durations, starts, ends) of
shapes [batch, n, c], [k, c], [batch, n, c] and [batch, n, c] (the last two may be [0, 0, 0]: no such scores), and the
score of a segment is computed when it is read:

    f(i, d, y) = starts[i, y] + tokens[i, y] + ... + tokens[i+d-1, y] + ends[i+d-1, y] + durations[d-1, y]

The sum over tokens grows with d, from either side. No prefix sums: differences of those would be NaN after a -inf.
Gradients come in the same shapes. numba picks one of two implementations by the type of `parts`.
"""

from __future__ import annotations

import numpy as np

from trelliswork.lazy import lazy_module
from trelliswork.runtime.compilation import FAST, overload

types = lazy_module("numba.types")


@overload(FAST)
def n_durations(parts):
    """Return k."""
    if isinstance(parts, types.Array):
        return lambda parts: parts.shape[2]
    return lambda parts: parts[1].shape[0]


@overload(FAST)
def segment_scores(parts, b, place, forwards, m, scores):
    """Return scores of the segments that start at `place`, or that end with it.

    scores[d c + y] of duration d+1, for d < m.

    Args:
        parts: scores of segments, whole or factored.
        b: the row of the batch.
        place: a boundary.
        forwards: whether segments start there; if False they end there.
        m: number of durations.
        scores: float64 [m c], filled in.
    """

    def whole(parts, b, place, forwards, m, scores):
        c = parts.shape[3]
        for d in range(m):
            row, own = scores[d * c : d * c + c], parts[b, place if forwards else place - d, d]
            for y in range(c):
                row[y] = own[y]

    def factored(parts, b, place, forwards, m, scores):
        tokens, durations, starts, ends = parts
        here, there = (starts, ends) if forwards else (ends, starts)
        c, running = durations.shape[1], np.zeros(durations.shape[1])
        for y in range(c):
            running[y] = here[b, place, y] if here.shape[0] > 0 else 0.0
        for d in range(m):
            other = place + d if forwards else place - d
            row, token, duration = scores[d * c : d * c + c], tokens[b, other], durations[d]
            for y in range(c):
                running[y] += token[y]
                row[y] = running[y] + duration[y]
            if there.shape[0] > 0:
                far = there[b, other]
                for y in range(c):
                    row[y] += far[y]

    return whole if isinstance(parts, types.Array) else factored


@overload(FAST)
def arriving_with(parts, b, j, m, y, scores):
    """Return scores[d] = f(j-1-d, d+1, y) for d < m: the segments that end at boundary j, of one label.

    Args:
        parts: scores of segments, whole or factored.
        b: the row of the batch.
        j: the boundary at which they end.
        m: number of durations.
        y: the label.
        scores: float64 [m], filled in.
    """

    def whole(parts, b, j, m, y, scores):
        for d in range(m):
            scores[d] = parts[b, j - 1 - d, d, y]

    def factored(parts, b, j, m, y, scores):
        tokens, durations, starts, ends = parts
        running = ends[b, j - 1, y] if ends.shape[0] > 0 else 0.0
        for d in range(m):
            running += tokens[b, j - 1 - d, y]
            scores[d] = running + durations[d, y]
            if starts.shape[0] > 0:
                scores[d] += starts[b, j - 1 - d, y]

    return whole if isinstance(parts, types.Array) else factored


@overload(FAST)
def collect(gradients, b, i, m, posteriors):
    """Add posteriors[d c + y] to the gradients of all that the score of segment (i, d+1, y) is made of, for d < m.

    Durations have a gradient [batch, k, c]: one for each row, so that rows may be done side by side.

    Args:
        gradients: derivatives by the parts, added to.
        b: the row of the batch.
        i: the token at which they start.
        m: number of durations.
        posteriors: float64 [m c].
    """

    def whole(gradients, b, i, m, posteriors):
        c = gradients.shape[3]
        for d in range(m):
            row, added = gradients[b, i, d], posteriors[d * c : d * c + c]
            for y in range(c):
                row[y] += added[y]

    def factored(gradients, b, i, m, posteriors):
        d_tokens, d_durations, d_starts, d_ends = gradients
        c, covered = d_durations.shape[2], np.zeros(d_durations.shape[2])
        for d in range(m - 1, -1, -1):  # a token is covered by the segments that reach it: the longest first
            added, token, duration = posteriors[d * c : d * c + c], d_tokens[b, i + d], d_durations[b, d]
            for y in range(c):
                covered[y] += added[y]
                token[y] += covered[y]
                duration[y] += added[y]
            if d_ends.shape[0] > 0:
                last = d_ends[b, i + d]
                for y in range(c):
                    last[y] += added[y]
        if d_starts.shape[0] > 0:
            first = d_starts[b, i]
            for y in range(c):
                first[y] += covered[y]

    return whole if isinstance(gradients, types.Array) else factored


@overload(FAST)
def collect_one(gradients, b, i, d, y, weight):
    """Return `collect` for one segment.

    Args:
        gradients: derivatives by the parts, added to.
        b: the row of the batch.
        i: the token at which they start.
        d: the duration, less 1.
        y: the label.
        weight: what is added.
    """

    def whole(gradients, b, i, d, y, weight):
        gradients[b, i, d, y] += weight

    def factored(gradients, b, i, d, y, weight):
        d_tokens, d_durations, d_starts, d_ends = gradients
        d_durations[b, d, y] += weight
        for t in range(i, i + d + 1):
            d_tokens[b, t, y] += weight
        if d_starts.shape[0] > 0:
            d_starts[b, i, y] += weight
        if d_ends.shape[0] > 0:
            d_ends[b, i + d, y] += weight

    return whole if isinstance(gradients, types.Array) else factored
