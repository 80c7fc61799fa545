"""The arithmetic between the products of a gated recursive convolution, and its gradient, each in one pass.

Rows are the segments of one level, neighbours side by side; the four blocks of `scores` [m, 4 dim], which become the
three gates and the new vector, are L, R, M and ẑ.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from trelliswork.nn.kernel_math import exp_of
from trelliswork.structures.kernel_math import KERNEL

ROWS = 32  # that are worked on at once


@njit(**KERNEL)
def mix(scores, bias, left, right, output):
    """scores + bias: softmax of three blocks, tanh of the fourth, in place; output = θ_L z_L + θ_R z_R + θ_M ẑ.

    Short loops over few arrays, because those are the ones that run in vector registers; some rows at a time, so that
    they stay in the cache from loop to loop.
    """
    n_rows = left.shape[0]
    signs = np.empty((ROWS, left.shape[1]), scores.dtype)
    for first in range(0, n_rows, ROWS):
        last = min(first + ROWS, n_rows)
        rows = scores[first:last]
        _prepare(rows, bias, signs)
        _exponentials(rows.reshape(rows.size))
        _normalise(rows, signs)
        _weigh(rows, left[first:last], right[first:last], output[first:last])


@njit(**KERNEL)
def _prepare(rows, bias, signs):
    """What e^x is taken of: gates less the highest, -2 |x| for the tanh, whose signs are kept."""
    dim = signs.shape[1]
    for i in range(rows.shape[0]):
        for j in range(dim):
            a, b, c = rows[i, j] + bias[j], rows[i, dim + j] + bias[dim + j], rows[i, 2 * dim + j] + bias[2 * dim + j]
            top = max(max(a, b), c)
            rows[i, j] = a - top
            rows[i, dim + j] = b - top
            rows[i, 2 * dim + j] = c - top
        for j in range(dim):
            new = rows[i, 3 * dim + j] + bias[3 * dim + j]
            signs[i, j] = new
            rows[i, 3 * dim + j] = -(abs(new) + abs(new))


@njit(**KERNEL)
def _exponentials(flat):
    """flat = e^flat, in place, for entries that are not above 0."""
    for j in range(flat.shape[0]):
        flat[j] = exp_of(flat[j])


@njit(**KERNEL)
def _normalise(rows, signs):
    """Exponentials become gates that sum to 1, and tanh from e^(-2 |x|)."""
    dim, one = signs.shape[1], rows.dtype.type(1.0)  # a plain 1.0 would make everything double
    for i in range(rows.shape[0]):
        for j in range(dim):
            scale = one / (rows[i, j] + rows[i, dim + j] + rows[i, 2 * dim + j])
            rows[i, j] *= scale
            rows[i, dim + j] *= scale
            rows[i, 2 * dim + j] *= scale
        for j in range(dim):
            shrunk = rows[i, 3 * dim + j]
            size = (one - shrunk) / (one + shrunk)
            rows[i, 3 * dim + j] = size if signs[i, j] > 0 else -size


@njit(**KERNEL)
def _weigh(rows, left, right, output):
    n_rows, dim = left.shape
    for i in range(n_rows):
        for j in range(dim):
            new = rows[i, 2 * dim + j] * rows[i, 3 * dim + j]
            output[i, j] = rows[i, j] * left[i, j] + rows[i, dim + j] * right[i, j] + new


@njit(**KERNEL)
def unmix(grad, state, left, right, output, by_scores):
    """by_scores: dL/d(scores) from dL/d(output) [S0.14-17]: θ ∘ (v - z) ∘ g of the gates, θ_M ∘ (1 - ẑ²) ∘ g."""
    n_rows, dim = left.shape
    one = state.dtype.type(1.0)
    for i in range(n_rows):
        for j in range(dim):
            by_scores[i, j] = state[i, j] * (left[i, j] - output[i, j]) * grad[i, j]
        for j in range(dim):
            by_scores[i, dim + j] = state[i, dim + j] * (right[i, j] - output[i, j]) * grad[i, j]
        for j in range(dim):
            new, share = state[i, 3 * dim + j], state[i, 2 * dim + j] * grad[i, j]
            by_scores[i, 2 * dim + j] = share * (new - output[i, j])
            by_scores[i, 3 * dim + j] = share * (one - new * new)


@njit(**KERNEL)
def add_gated(grad, state, block, to):
    """to += θ ∘ grad with the gate of this block: what reaches a neighbour below without a product."""
    n_rows, dim = grad.shape
    for i in range(n_rows):
        for j in range(dim):
            to[i, j] += state[i, block * dim + j] * grad[i, j]
