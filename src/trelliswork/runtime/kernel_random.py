"""Random numbers inside numba kernels, from seeds that torch draws: the same generator, the same samples."""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.compilation import EXACT, kernel
from trelliswork.runtime.kernel_math import first_best, pick


@kernel(EXACT)
def uniform(state):
    """Return a number in [0, 1) by SplitMix64; state[0] moves on."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@kernel(EXACT)
def draw(log_weights, size, state):
    """Draw an index in proportion to exp(log_weights); -inf is never drawn, and 0 is for what is undefined (NaN, +inf).

    Args:
        log_weights: float64 [size].
        size: how many there are.
        state: state of the generator, changed in place.
    """
    top = -np.inf
    for i in range(size):
        top = max(top, log_weights[i])
    total = 0.0
    for i in range(size):
        total += np.exp(log_weights[i] - top)
    left, drawn = uniform(state) * total, 0
    if not total < np.inf:
        return 0
    for i in range(size):
        weight = np.exp(log_weights[i] - top)
        if weight > 0.0:
            drawn = i
            left -= weight
            if left < 0.0:
                break
    return drawn


@kernel(EXACT)
def draw_weight(weights, size, state):
    """Return an index in proportion to weights; 0 is never drawn. 0 where no weight is positive.

    Args:
        weights: [size], none below 0.
        size: how many there are.
        state: state of the generator, changed in place.
    """
    total = 0.0
    for i in range(size):
        total += weights[i]
    return pick(weights, size, total * uniform(state))


@kernel(EXACT)
def choose(log_weights, size, best, state):
    """Return the index of the best, the first among ties; or one that is drawn.

    Args:
        log_weights: float64 [size].
        size: how many there are.
        best: whether the best is chosen instead of drawing one.
        state: state of the generator, changed in place.
    """
    return first_best(log_weights, size)[0] if best else draw(log_weights, size, state)
