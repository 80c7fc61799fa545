"""Primitives that the kernels of several structures share: an exponential that vectorises, sums, lists of the best.

numba's own `exp` calls the scalar libm once per entry (about 3 ns); a polynomial with the exponent set in the
bits runs in vector registers (about 0.5 ns) at full double precision.

Arrays:
    scores, weights: logarithms, [c]; exponentials, [c], filled in by `shifted_exp`, which may have one array for both.
    log_alpha, deltas, t: log weights of sources, [c]; best scores of those at each position, [n, c]; a position.
    arc_scores, arrived, tops: from source to target, [c, width]; [width], filled in; room for `width` numbers.
    row, column, matrix, out: [c], [width] and [c, width], float32 or float64; the product, [width] or [c], filled in.
"""

from __future__ import annotations

import numpy as np

from trelliswork.lazy import lazy_module
from trelliswork.runtime.compilation import EXACT, FAST, FAST_WITH_NAN, ORDERED, intrinsic, kernel

ir, types = lazy_module("llvmlite.ir"), lazy_module("numba.types")

_LOG2_E = 1.4426950408889634
_LN2_HIGH = 6.93145751953125e-1  # ln 2 in two parts: n * _LN2_HIGH is exact for |n| < 2048
_LN2_LOW = 1.42860682030941723212e-6
_ROOT_HALF_BITS = 0x3FE6A09E667F3BCD  # the bits of sqrt(1/2)
_LOWEST = -708.0  # below, e^x is denormal: taken as 0
LARGEST_SCORE = 1e300  # sums of up to 10^8 scores stay below the largest float64


@intrinsic
def _bits_as_float(typing_context, bits):
    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


@intrinsic
def _float_as_bits(typing_context, number):
    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


@intrinsic
def higher(typing_context, x, y):
    """Return max(x, y) of two numbers that are not NaN, for loops of kernels with FAST or ORDERED arithmetic.

    One instruction. `max` is a comparison and a choice: of `row[j] = max(row[j], s)` LLVM makes a masked store, several
    times slower on some processors, and a running maximum stays outside of vector registers.

    Args:
        typing_context: numba's context of types.
        x: type of the one number.
        y: type of the other.
    """
    kind = max(x, y, key=lambda each: each.bitwidth)

    def generate(context, builder, signature, arguments):
        number = arguments[0].type
        maxnum = builder.module.declare_intrinsic("llvm.maxnum", (number,), ir.FunctionType(number, (number, number)))
        return builder.call(maxnum, arguments, fastmath=("nnan", "nsz"))

    return kind(kind, kind), generate


# Reassociation would fold x - n*HIGH - n*LOW into x - n*ln2 and lose digits: contraction only.
@kernel(ORDERED, inline=True)
def exp(x):
    """Return e^x for x <= 0 (any -inf included), to about 1 ulp: 2^n e^r with |r| <= ln(2)/2 and a Taylor series."""
    clipped = max(x, _LOWEST)
    n = np.floor(clipped * _LOG2_E + 0.5)
    r = clipped - n * _LN2_HIGH
    r = r - n * _LN2_LOW
    p = 1.6059043836821613e-10  # 1/13!
    p = p * r + 2.08767569878681e-09
    p = p * r + 2.505210838544172e-08
    p = p * r + 2.755731922398589e-07
    p = p * r + 2.7557319223985893e-06
    p = p * r + 2.48015873015873e-05
    p = p * r + 0.0001984126984126984
    p = p * r + 0.001388888888888889
    p = p * r + 0.008333333333333333
    p = p * r + 0.041666666666666664
    p = p * r + 0.16666666666666666
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    y = p * _bits_as_float((np.int64(n) + np.int64(1023)) << np.int64(52))
    return y if x >= _LOWEST else 0.0


@kernel(ORDERED, inline=True)
def log(x):
    """ln x for normal x > 0, to about 1 ulp: n ln 2 + 2 artanh((m-1)/(m+1)) with m in [1/√2, √2). ln 0 is -inf."""
    bits = _float_as_bits(x)
    n = (bits - np.int64(_ROOT_HALF_BITS)) >> np.int64(52)
    m = _bits_as_float(bits - (n << np.int64(52)))
    s = (m - 1.0) / (m + 1.0)
    q = s * s
    p = 1.0 / 21.0
    p = p * q + 1.0 / 19.0
    p = p * q + 1.0 / 17.0
    p = p * q + 1.0 / 15.0
    p = p * q + 1.0 / 13.0
    p = p * q + 1.0 / 11.0
    p = p * q + 1.0 / 9.0
    p = p * q + 1.0 / 7.0
    p = p * q + 1.0 / 5.0
    p = p * q + 1.0 / 3.0
    p = p * q
    exponent = float(n)
    y = exponent * _LN2_HIGH + (2.0 * s + (2.0 * s * p + exponent * _LN2_LOW))
    return y if x > 0.0 else -np.inf


@kernel(EXACT, inline=True)
def at(index, size):
    """Return the index into an axis that has one entry for all, or one for each."""
    return index if size > 1 else 0


@kernel(FAST)
def highest(row, c):
    """Return max(row[:c])."""
    top = row[0]
    for i in range(1, c):
        top = higher(top, row[i])
    return top


@kernel(FAST)
def subtract_highest(row):
    """row -= max(row); returns the maximum (-inf and no change if all are)."""
    top = highest(row, row.shape[0])
    if top > -np.inf:
        for j in range(row.shape[0]):
            row[j] -= top
    return top


@kernel(FAST)
def shifted_exp(scores, weights):
    """Return weights = exp(scores - highest) entry by entry; returns the highest (0 if all are -inf)."""
    shift = highest(scores, scores.shape[0])
    if shift == -np.inf:
        for i in range(scores.shape[0]):
            weights[i] = 0.0
        return 0.0  # scores are shifted by what is returned, and -inf - -inf would be NaN
    for i in range(scores.shape[0]):
        weights[i] = exp(scores[i] - shift)
    return shift


@kernel(FAST)
def first_best(scores, c):
    """Return (index, value) of the highest of the first c scores; the first among ties."""
    best = highest(scores, c)
    index = 0
    while index < c - 1 and scores[index] < best:
        index += 1
    return index, best


@kernel(FAST_WITH_NAN)
def log_sum(row, size):
    """Return log Σ exp(row[:size])."""
    top, total = -np.inf, 0.0
    for i in range(size):
        top = max(top, row[i])
    if top == -np.inf:
        return top
    for i in range(size):
        total += exp(row[i] - top)
    return top + log(total)


@kernel(FAST)
def log_arrivals(log_alpha, arc_scores, tops, arrived):
    """Compute arrived_j = log Σ_i exp(log_alpha_i + arc_ij); -inf where nothing arrives."""  # [S3.9]
    c = arrived.shape[0]
    for j in range(c):
        tops[j], arrived[j] = -np.inf, 0.0
    for i in range(log_alpha.shape[0]):
        from_i, row = log_alpha[i], arc_scores[i]
        for j in range(c):
            tops[j] = higher(tops[j], from_i + row[j])
    for j in range(c):
        tops[j] = tops[j] if tops[j] > -np.inf else 0.0  # -inf - -inf would be NaN, which FAST rules out
    for i in range(log_alpha.shape[0]):
        from_i, row = log_alpha[i], arc_scores[i]
        for j in range(c):
            arrived[j] += exp(from_i + row[j] - tops[j])
    for j in range(c):
        arrived[j] = tops[j] + log(arrived[j])


@kernel(FAST)
def best_arrivals(deltas, t, arc_scores, arrived):
    """Compute arrived_j = max_i deltas[t, i] + arc_ij, eight sources a pass."""
    c, width = arc_scores.shape
    d0 = deltas[t, 0]
    for j in range(width):
        arrived[j] = d0 + arc_scores[0, j]
    i = 1
    while i + 7 < c:
        d0, d1, d2, d3 = deltas[t, i], deltas[t, i + 1], deltas[t, i + 2], deltas[t, i + 3]
        d4, d5, d6, d7 = deltas[t, i + 4], deltas[t, i + 5], deltas[t, i + 6], deltas[t, i + 7]
        for j in range(width):
            left = higher(d0 + arc_scores[i, j], d1 + arc_scores[i + 1, j])
            right = higher(d2 + arc_scores[i + 2, j], d3 + arc_scores[i + 3, j])
            left = higher(left, higher(d4 + arc_scores[i + 4, j], d5 + arc_scores[i + 5, j]))
            right = higher(right, higher(d6 + arc_scores[i + 6, j], d7 + arc_scores[i + 7, j]))
            arrived[j] = higher(arrived[j], higher(left, right))
        i += 8
    while i + 3 < c:
        d0, d1, d2, d3 = deltas[t, i], deltas[t, i + 1], deltas[t, i + 2], deltas[t, i + 3]
        for j in range(width):
            left = higher(d0 + arc_scores[i, j], d1 + arc_scores[i + 1, j])
            right = higher(d2 + arc_scores[i + 2, j], d3 + arc_scores[i + 3, j])
            arrived[j] = higher(arrived[j], higher(left, right))
        i += 4
    while i < c:
        d0 = deltas[t, i]
        for j in range(width):
            arrived[j] = higher(arrived[j], d0 + arc_scores[i, j])
        i += 1


@kernel(EXACT)
def log_add(x, y):
    """Return log(e^x + e^y)."""
    if x < y:
        x, y = y, x
    return x if y == -np.inf else x + np.log1p(np.exp(y - x))  # of two -inf the difference would be NaN


@kernel(FAST)
def times_matrix(row, matrix, out):
    """Compute out = row @ matrix, four rows of the matrix a pass."""
    c, width = matrix.shape
    r0 = row[0]
    for j in range(width):
        out[j] = r0 * matrix[0, j]
    i = 1
    while i + 3 < c:
        r0, r1, r2, r3 = row[i], row[i + 1], row[i + 2], row[i + 3]
        for j in range(width):
            out[j] += r0 * matrix[i, j] + r1 * matrix[i + 1, j] + r2 * matrix[i + 2, j] + r3 * matrix[i + 3, j]
        i += 4
    while i < c:
        r0 = row[i]
        for j in range(width):
            out[j] += r0 * matrix[i, j]
        i += 1


@kernel(FAST, inline=True)
def matrix_times(matrix, column, out):
    """Compute out = matrix @ column, four rows of the matrix a pass."""
    c, width = matrix.shape
    i, zero = 0, matrix.dtype.type(0)
    while i + 3 < c:
        s0 = s1 = s2 = s3 = zero
        for j in range(width):
            s0 += matrix[i, j] * column[j]
            s1 += matrix[i + 1, j] * column[j]
            s2 += matrix[i + 2, j] * column[j]
            s3 += matrix[i + 3, j] * column[j]
        out[i], out[i + 1], out[i + 2], out[i + 3] = s0, s1, s2, s3
        i += 4
    while i < c:
        s0 = zero
        for j in range(width):
            s0 += matrix[i, j] * column[j]
        out[i] = s0
        i += 1


@kernel(FAST, inline=True)
def add_products(sums, share, left, right, size):
    """Add share * left * right to sums.

    Args:
        sums: [size], added to.
        share: a number.
        left: [size].
        right: [size].
        size: how many entries to add.
    """
    for e in range(size):
        sums[e] += share * left[e] * right[e]


@kernel(FAST, inline=True)
def share_products(share, bars, left, right, left_bars, right_bars, size):
    """Pass the derivatives by the sums of `add_products` on to both factors.

    Args:
        share: the number that the products were multiplied by.
        bars: derivative by the sums [size].
        left: [size].
        right: [size].
        left_bars: derivative by `left` [size], added to.
        right_bars: derivative by `right` [size], added to.
        size: how many entries there are.
    """
    for e in range(size):
        left_bars[e] += share * bars[e] * right[e]
        right_bars[e] += share * bars[e] * left[e]


@kernel(FAST)
def insert(value, origin, values, origins):
    """Put a value into a descending list at its place, after its equals; the lowest falls out.

    Args:
        value: the value.
        origin: where it comes from.
        values: descending values [k], changed in place.
        origins: where each of them comes from [k], changed in place.
    """
    r = values.shape[0] - 1
    while r > 0 and values[r - 1] < value:
        values[r], origins[r] = values[r - 1], origins[r - 1]
        r -= 1
    values[r], origins[r] = value, origin


@kernel(FAST, inline=True)
def insert_moved(candidates, added, base, values, origins):
    """Merge a descending list, moved by `added`, into the list `values`; its entry r has the origin base + r.

    Args:
        candidates: descending values.
        added: what is added to each of them.
        base: origin of the first of them.
        values: descending values [k], changed in place.
        origins: where each of them comes from [k], changed in place.
    """
    for r in range(candidates.shape[0]):
        value = candidates[r] + added
        if value <= values[values.shape[0] - 1]:
            break  # the rest of the candidates are lower still
        insert(value, base + r, values, origins)


@kernel(ORDERED)
def sum_up(weights):
    """Compute weights_i = Σ_{h≤i} weights_h: in this order, so that the sums never fall."""
    total = 0.0
    for i in range(weights.shape[0]):
        total += weights[i]
        weights[i] = total


@kernel(FAST)
def pick_from_sums(sums, row, size, uniform):
    """Return the index that a uniform number in [0, 1) picks from running sums of weights, sums[row, :size].

    An index of weight 0 is never picked; where all are 0, it is index 0.

    Args:
        sums: running sums [rows, room].
        row: the row to read.
        size: how many sums it has.
        uniform: a number in [0, 1).
    """
    index, bound = 0, uniform * sums[row, size - 1]
    for i in range(size):
        index += sums[row, i] <= bound
    return index if index < size else 0


@kernel(EXACT)
def pick(weights, size, left):
    """Return the index at which the sum of weights passes a number; a weight of 0 is never picked.

    Always an index: 0 where no weight is positive.

    Args:
        weights: [size], none below 0.
        size: how many there are.
        left: a number below the sum of all weights.
    """
    chosen = 0
    for i in range(size):
        if weights[i] > 0.0:
            chosen = i
            left -= weights[i]
            if left < 0.0:
                break
    return chosen


@kernel(EXACT)
def right_padded(mask, lengths):
    """Fill in the lengths of right-padded rows; False if a row is empty or has a hole.

    Args:
        mask: True at valid positions, bool [batch, n].
        lengths: int64 [batch], filled in.
    """
    batch, n = mask.shape
    for b in range(batch):
        length = 0
        while length < n and mask[b, length]:
            length += 1
        for t in range(length, n):
            if mask[b, t]:
                return False
        if length == 0:
            return False
        lengths[b] = length
    return True


@kernel(EXACT)
def _first_bad(flat):
    bad = 0
    for i in range(flat.shape[0]):
        bad += not (flat[i] <= LARGEST_SCORE)
    if bad:
        for i in range(flat.shape[0]):
            if not (flat[i] <= LARGEST_SCORE):
                return i
    return -1


@kernel(EXACT)
def first_not_a_score(arrays):
    """Return (which array, index) of the first NaN or score above `LARGEST_SCORE` in flat arrays, or (-1, -1).

    -inf is a score: it forbids.

    Args:
        arrays: a tuple of flat arrays, float32 or float64.
    """
    for which in range(len(arrays)):
        index = _first_bad(arrays[which])
        if index >= 0:
            return which, index
    return -1, -1
