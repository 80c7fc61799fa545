"""Kernels over long vectors: one pass each, no copies. `history` vectors may be float32, sums are float64."""

from __future__ import annotations

from trelliswork.runtime.compilation import FAST, kernel

BLOCK = 2048  # numbers of a vector that stay in the cache while they are multiplied with all rows


@kernel(FAST)
def dot(a, b):
    """Σ a b"""
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i] * b[i]
    return total


@kernel(FAST)
def add_scaled(a, scale, b):
    """Add scale · b to a.

    Args:
        a: Float64 [n], added to.
        scale: A number.
        b: Float32 or float64 [n].
    """
    for i in range(a.shape[0]):
        a[i] += scale * b[i]


@kernel(FAST)
def products(rows, vector, out):
    """Compute out_i = Σ rows_i vector, for as many rows as `out` has room for.

    Args:
        rows: Float32 or float64 [rows, n].
        vector: Float64 [n].
        out: Float64 [at most rows], filled in.
    """
    out[:] = 0.0
    n = vector.shape[0]
    for begin in range(0, n, BLOCK):
        end = min(begin + BLOCK, n)
        for i in range(out.shape[0]):
            out[i] += dot(rows[i, begin:end], vector[begin:end])


@kernel(FAST)
def add_rows(a, rows, places, scales):
    """Add Σ_i scales_i · rows[places_i] to a.

    Args:
        a: Float64 [n], added to.
        rows: Float32 or float64 [rows, n].
        places: Which rows to add, int64 [places].
        scales: Float64 [places].
    """
    n = a.shape[0]
    for begin in range(0, n, BLOCK):
        end = min(begin + BLOCK, n)
        for i in range(places.shape[0]):
            add_scaled(a[begin:end], scales[i], rows[places[i], begin:end])


@kernel(FAST)
def pseudo_gradient(weights, gradient, l1, out):
    """Compute the least one-sided derivative of loss + l1 ‖w‖₁: 0 where no small move helps.

    Args:
        weights: Float64 [n].
        gradient: Of the loss, float64 [n].
        l1: Strength of the regularisation.
        out: Float64 [n], filled in.
    """
    for i in range(weights.shape[0]):
        g = gradient[i]
        if weights[i] > 0:
            out[i] = g + l1
        elif weights[i] < 0:
            out[i] = g - l1
        elif g + l1 < 0:
            out[i] = g + l1
        elif g - l1 > 0:
            out[i] = g - l1
        else:
            out[i] = 0.0


@kernel(FAST)
def keep_descent(direction, slope):
    """Set 0 wherever the direction does not go down the slope.

    Args:
        direction: Float64 [n], changed in place.
        slope: Float64 [n].
    """
    for i in range(direction.shape[0]):
        if direction[i] * slope[i] >= 0:
            direction[i] = 0.0


@kernel(FAST)
def stay_in_orthant(weights, before, slope):
    """Set 0 wherever a weight left the orthant of the point before; one that was 0 may go down the slope.

    Args:
        weights: Float64 [n], changed in place.
        before: The point before, float64 [n].
        slope: Float64 [n].
    """
    for i in range(weights.shape[0]):
        side = before[i] if before[i] != 0 else -slope[i]
        if weights[i] * side <= 0:
            weights[i] = 0.0
