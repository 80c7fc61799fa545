"""Σ_h ln(1 + exp(a_h + V_hy)) and its gradient, without an array of all tokens x units x tags.

Arrays of the kernels:

    inputs [tokens, h]      a
    by_tag [h, c]           V, padded with zeros so that c is a multiple of LANES
    result [tokens, c]      the sums
    grad [tokens, c]        dL/d(result)
"""

from __future__ import annotations

import numpy as np

from trelliswork.nn.kernel_math import exp_of
from trelliswork.runtime.compilation import FAST, kernel
from trelliswork.runtime.kernel_math import log

LANES = 16  # rows are padded to a multiple: numbers beyond it would not be computed in vector registers
FACTORS = 100  # each lies in 1..2, so that their product is finite in single precision too


@kernel(FAST)
def softplus_sums(inputs, by_tag, result):
    """Fill result[t, y] = Σ_h max(z, 0) + ln Π_h (1 + e^-|z|), where z = inputs[t, h] + by_tag[h, y].

    One logarithm of a product replaces FACTORS logarithms.

    Args:
        inputs: A of each unit, float32 or float64 [t, h].
        by_tag: V of each unit and tag [h, c].
        result: [t, c], filled in.
    """
    n_units, c = by_tag.shape
    zero, one = inputs.dtype.type(0), inputs.dtype.type(1)
    product, total = np.empty(c, inputs.dtype), np.empty(c, inputs.dtype)
    for t in range(inputs.shape[0]):
        result[t] = 0
        for first in range(0, n_units, FACTORS):
            product[:], total[:] = one, zero
            for h in range(first, min(first + FACTORS, n_units)):
                a = inputs[t, h]
                for y in range(c):
                    z = a + by_tag[h, y]
                    total[y] += max(z, zero)
                    product[y] *= one + exp_of(-abs(z))
            for y in range(c):
                result[t, y] += total[y] + log(np.float64(product[y]))


@kernel(FAST)
def softplus_gradients(inputs, by_tag, grad, to_inputs, to_by_tag):
    """Fill `to_inputs` with Σ_y σ(z) grad, and add Σ_t σ(z) grad to `to_by_tag`.

    Args:
        inputs: A of each unit, float32 or float64 [t, h].
        by_tag: V of each unit and tag [h, c].
        grad: Gradient by the sums [t, c].
        to_inputs: [t, h], filled in.
        to_by_tag: [h, c], added to.
    """
    n_units, c = by_tag.shape
    zero, one = inputs.dtype.type(0), inputs.dtype.type(1)
    for t in range(inputs.shape[0]):
        for h in range(n_units):
            a, total = inputs[t, h], zero
            for y in range(c):
                z = a + by_tag[h, y]
                small = exp_of(-abs(z))
                share = (one if z > zero else small) / (one + small) * grad[t, y]
                to_by_tag[h, y] += share
                total += share
            to_inputs[t, h] = total
