"""Σ_h ln(1 + exp(a_h + V_hy)) and its gradient, without an array of all tokens x units x tags."""

from __future__ import annotations

import numpy as np
from numba import njit

from trelliswork.structures.kernel_math import KERNEL, exp, log

FACTORS = 500  # each lies in 1..2, so that the product of so many is finite


@njit(**KERNEL)
def softplus_sums(inputs, by_tag, result):
    """result[t, y] = Σ_h max(z, 0) + ln Π_h (1 + e^-|z|), z = inputs[t, h] + by_tag[h, y]: few logarithms."""
    n_units, c = by_tag.shape
    product = np.empty(c)
    for t in range(inputs.shape[0]):
        row = result[t]
        row[:] = 0.0
        for first in range(0, n_units, FACTORS):
            product[:] = 1.0
            for h in range(first, min(first + FACTORS, n_units)):
                a = inputs[t, h]
                for y in range(c):
                    z = a + by_tag[h, y]
                    row[y] += max(z, 0.0)
                    product[y] *= 1.0 + exp(-abs(z))
            for y in range(c):
                row[y] += log(product[y])


@njit(**KERNEL)
def softplus_gradients(inputs, by_tag, grad, to_inputs, to_by_tag):
    """σ(z) weighted by dL/d(result): summed over tags, and over tokens (added to `to_by_tag`)."""
    n_units, c = by_tag.shape
    for t in range(inputs.shape[0]):
        for h in range(n_units):
            a, total = inputs[t, h], 0.0
            for y in range(c):
                z = a + by_tag[h, y]
                small = exp(-abs(z))
                share = (1.0 if z > 0.0 else small) / (1.0 + small) * grad[t, y]
                to_by_tag[h, y] += share
                total += share
            to_inputs[t, h] = total
