"""The elementwise part of a gated recursive convolution and its gradient, each in one pass.

Rows are the m segments of one level. Arrays of the kernels:

    scores [m, 3 dim]       scores of gates L and R, minus that of gate M, and of the new vector; `mix` replaces them by
                            θ_L, θ_R and ẑ, the `state` of the other kernels (θ_M = 1 - θ_L - θ_R)
    bias [3 dim]            is added to the scores
    left, right [m, dim]    z_L and z_R, the neighbours on the level below
    output [m, dim]         z
    grad [m, dim]           dL/dz

Zhuo et al. (2016), Segment-level sequence modeling using gated recursive semi-Markov conditional random fields.
"""

from __future__ import annotations

import numpy as np

from trelliswork.nn.kernel_math import exp_of
from trelliswork.runtime.compilation import FAST, kernel

ROWS = 32  # worked on at once


@kernel(FAST)
def mix(scores, bias, left, right, output):
    """Replace the scores by gates and new vectors, and fill output = θ_L z_L + θ_R z_R + θ_M ẑ.

    Args:
        scores: Scores of gates and new vectors, float32 [rows, 3 dim], replaced by both.
        bias: Float32 [3 dim].
        left: Vectors z_L of the left parts, float32 [rows, dim].
        right: Vectors z_R of the right parts, float32 [rows, dim].
        output: Float32 [rows, dim], filled in.
    """
    # Compilers vectorise short loops over few arrays; a few rows at a time stay in the cache from loop to loop.
    n_rows, dim = left.shape
    signs, thirds = np.empty((ROWS, dim), scores.dtype), np.empty((ROWS, dim), scores.dtype)
    for first in range(0, n_rows, ROWS):
        last = min(first + ROWS, n_rows)
        rows, middle = scores[first:last], thirds[: last - first]
        _prepare(rows, bias, signs, middle)
        _exponentials(rows.reshape(rows.size))
        _exponentials(middle.reshape(middle.size))
        _normalise(rows, signs, middle)
        _weigh(rows, middle, left[first:last], right[first:last], output[first:last])


@kernel(FAST)
def _prepare(rows, bias, signs, middle):
    """Prepare the arguments of the exponentials: gates minus the highest, and -2 |x| for tanh x, with signs kept."""
    dim, zero = signs.shape[1], rows.dtype.type(0.0)
    for i in range(rows.shape[0]):
        for j in range(dim):
            a, b = rows[i, j] + bias[j], rows[i, dim + j] + bias[dim + j]
            top = max(max(a, b), zero)
            rows[i, j] = a - top
            rows[i, dim + j] = b - top
            middle[i, j] = -top
        for j in range(dim):
            new = rows[i, 2 * dim + j] + bias[2 * dim + j]
            signs[i, j] = new
            rows[i, 2 * dim + j] = -(abs(new) + abs(new))


@kernel(FAST)
def _exponentials(flat):
    """Replace entries x <= 0 by e^x."""
    for j in range(flat.shape[0]):
        flat[j] = exp_of(flat[j])


@kernel(FAST)
def _normalise(rows, signs, middle):
    """Turn exponentials into gates that sum to 1, and e^(-2 |x|) into tanh x."""
    dim, one = signs.shape[1], rows.dtype.type(1.0)  # a literal 1.0 would make everything double precision
    for i in range(rows.shape[0]):
        for j in range(dim):
            scale = one / (rows[i, j] + rows[i, dim + j] + middle[i, j])
            rows[i, j] *= scale
            rows[i, dim + j] *= scale
            middle[i, j] *= scale
        for j in range(dim):
            shrunk = rows[i, 2 * dim + j]
            size = (one - shrunk) / (one + shrunk)
            rows[i, 2 * dim + j] = size if signs[i, j] > 0 else -size


@kernel(FAST)
def _weigh(rows, middle, left, right, output):
    n_rows, dim = left.shape
    for i in range(n_rows):
        for j in range(dim):
            new = middle[i, j] * rows[i, 2 * dim + j]
            output[i, j] = rows[i, j] * left[i, j] + rows[i, dim + j] * right[i, j] + new


@kernel(FAST)
def unmix(grad, state, left, right, output, by_scores):
    """Fill by_scores = dL/d(scores): θ ∘ (z_L - z) ∘ g and θ ∘ (z_R - z) ∘ g for the gates, θ_M ∘ (1 - ẑ²) ∘ g.

    Args:
        grad: Gradient by the output, float32 [rows, dim].
        state: Gates and new vectors, as `mix` leaves them, float32 [rows, 3 dim].
        left: Vectors z_L, float32 [rows, dim].
        right: Vectors z_R, float32 [rows, dim].
        output: What `mix` has filled in, float32 [rows, dim].
        by_scores: Float32 [rows, 3 dim], filled in.
    """
    # [S0.14-17]
    n_rows, dim = left.shape
    one = state.dtype.type(1.0)
    for i in range(n_rows):
        for j in range(dim):
            by_scores[i, j] = state[i, j] * (left[i, j] - output[i, j]) * grad[i, j]
        for j in range(dim):
            by_scores[i, dim + j] = state[i, dim + j] * (right[i, j] - output[i, j]) * grad[i, j]
        for j in range(dim):
            new, middle = state[i, 2 * dim + j], one - state[i, j] - state[i, dim + j]
            by_scores[i, 2 * dim + j] = middle * grad[i, j] * (one - new * new)


@kernel(FAST)
def add_gated(grad, state, block, to):
    """Add θ ∘ grad to `to` [m, dim], with the gate of a block: the gradient that bypasses the weights.

    Args:
        grad: Gradient by the output, float32 [m, dim].
        state: Gates and new vectors, float32 [m, 3 dim].
        block: 0 for the gate of the left part, 1 for that of the right.
        to: Float32 [m, dim], added to.
    """
    n_rows, dim = grad.shape
    for i in range(n_rows):
        for j in range(dim):
            to[i, j] += state[i, block * dim + j] * grad[i, j]
