"""CPU kernels that move the weights of a hidden-unit CRF: Adam (Kingma & Ba 2015), on all weights or on some rows."""

from __future__ import annotations

import math

from trelliswork.runtime.compilation import FAST, kernel

KEPT_MEAN, KEPT_SQUARE = 0.9, 0.999  # of the running means of a gradient and its square
TINY = 1e-8


@kernel(FAST)
def adam(weights, gradient, means, squares, rate, shrink):
    """Take one step along the gradient and `shrink` · weights; leaves the gradient 0. All are flat.

    Args:
        weights: flat; moved.
        gradient: flat; 0 afterwards.
        means: running means of the gradient, flat; moved.
        squares: running means of its square, flat; moved.
        rate: the learning rate.
        shrink: what the weights are multiplied by in the gradient, for L2.
    """
    for i in range(weights.shape[0]):
        slope = gradient[i] + shrink * weights[i]
        means[i] += (1.0 - KEPT_MEAN) * (slope - means[i])
        squares[i] += (1.0 - KEPT_SQUARE) * (slope * slope - squares[i])
        weights[i] -= rate * means[i] / (math.sqrt(squares[i]) + TINY)
        gradient[i] = 0.0


@kernel(FAST)
def adam_rows(rows, shrinks, weights, gradient, means, squares, rate):
    """Move some rows of a table, each with its own shrink: what no token of a batch has stays as it is.

    Args:
        rows: numbers of the rows that move.
        shrinks: the shrink of each of these rows.
        weights: [rows of the table, width]; moved.
        gradient: the same shape; 0 afterwards in these rows.
        means: the same shape; moved.
        squares: the same shape; moved.
        rate: the learning rate.
    """
    for k in range(rows.shape[0]):
        row = rows[k]
        adam(weights[row], gradient[row], means[row], squares[row], rate, shrinks[k])


@kernel(FAST)
def move_rows(rows, source, target):
    """Compute target[row] += source[row], source[row] = 0.

    Args:
        rows: numbers of the rows that move.
        source: [rows of the table, width]; 0 afterwards in these rows.
        target: the same shape; added to.
    """
    for row in rows:
        for h in range(source.shape[1]):
            target[row, h] += source[row, h]
            source[row, h] = 0.0
