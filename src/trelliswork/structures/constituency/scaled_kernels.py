"""CPU kernels that sum over trees in exp space: products and sums only.

Each token is shifted to a weight of 1, each wider span by the highest of its row, so no span outgrows the number of its
trees. What a span loses by underflow is less than `TINY`, and fewer than `GROWTH`^n ways lead from it to a tree, each
with a weight of 1 at most: a row whose total is not far above that is *wide*, and its block is done in log space.
"""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.compilation import EXACT, kernel
from trelliswork.runtime.kernel_math import add_products, exp, share_products
from trelliswork.structures.arc_kernels import STEP, scale_direction
from trelliswork.structures.constituency import kernels
from trelliswork.structures.constituency.kernels import FOLDED, INSIDE, SPLITS, Charts
from trelliswork.structures.constituency.label_kernels import (
    LOWEST,
    fold,
    share_among_labels,
    share_changes,
)

TINY, MARGIN = 1e-305, 1e20
GROWTH = 4.0  # there are fewer than 4^n binary trees over n tokens
LONGEST = 250  # tokens, so that GROWTH^n stays far from overflow
WEIGHTS = SPLITS  # the plane that log space has for its splits


@kernel(EXACT)
def _shift(folded, rows, lengths, shifts, totals):
    """Compute the shift of each row's wider spans, repeated for every i, and the sum of all shifts of one tree."""
    size = rows.shape[0]
    for b in range(size):
        n, top, totals[b] = lengths[rows[b]], LOWEST, 0.0
        for w in range(1, n):
            for i in range(n - w):
                top = max(top, folded[w, i * size + b])
        for i in range(n):
            totals[b] += folded[0, i * size + b]
        totals[b] += (n - 1) * top
        for i in range(folded.shape[0]):
            shifts[i * size + b] = top


@kernel(EXACT)
def _weigh(folded, shifts, size, weights):
    """exp of the labels' sums, shifted."""
    n = folded.shape[0]
    for e in range(n * size):
        weights[0, e] = 1.0 if folded[0, e] > LOWEST else 0.0
    for w in range(1, n):
        for e in range((n - w) * size):
            weights[w, e] = exp(min(folded[w, e] - shifts[e], 0.0))


@kernel(EXACT)
def _fill(weights, chart, size):
    """Compute the inside recursion of a block of B = size rows; `math.md`, (4) over (+, ·)."""
    n = weights.shape[0]
    chart[0] = weights[0]
    for w in range(1, n):
        m = (n - w) * size
        sums = chart[w, :m]
        sums[:] = 0.0
        for s in range(w):
            after = (s + 1) * size
            add_products(sums, 1.0, chart[s, :m], chart[w - 1 - s, after : after + m], m)
        sums *= weights[w, :m]


@kernel(EXACT, inline=True)
def _in_log_space(planes):
    return Charts(planes[FOLDED], planes[FOLDED], planes[SPLITS], planes[INSIDE], planes[INSIDE])


@kernel(EXACT)
def inside(spans, rows, lengths, tops, planes, weights, is_scaled, log_z):
    """Compute log Z of the rows of a block; the planes [3, n, n B] and weights of labels are kept for the gradient.

    Args:
        spans: scores of labels, [batch, n, n, c], by first and last token, float32 or float64.
        rows: numbers of the rows of a block, int64 [B].
        lengths: tokens of each row, int64 [batch].
        tops: highest label of each span of a block, float64 [n, n B].
        planes: float64 [3, n, n B], filled in.
        weights: [batch, n, n, c], filled in.
        is_scaled: whether a row fitted into exp space, bool [batch], filled in.
        log_z: log Z of each row, float64 [batch], filled in.
    """
    n, size = planes.shape[1], rows.shape[0]
    fold(spans, rows, lengths, tops, weights, planes[FOLDED])
    done = n <= LONGEST
    if done:
        shifts, totals = np.empty(n * size), np.empty(size)
        _shift(planes[FOLDED], rows, lengths, shifts, totals)
        _weigh(planes[FOLDED], shifts, size, planes[WEIGHTS])
        _fill(planes[WEIGHTS], planes[INSIDE], size)
        for b in range(size):
            length = lengths[rows[b]]
            z = planes[INSIDE, length - 1, b]
            done = done and z > TINY * MARGIN * GROWTH**length
            log_z[rows[b]] = np.log(z) + totals[b] if z > 0.0 else LOWEST
    if not done:
        kernels.fill(_in_log_space(planes), n, size)
        for b in range(size):
            log_z[rows[b]] = planes[INSIDE, lengths[rows[b]] - 1, b]
    for b in range(size):
        is_scaled[rows[b]] = done


@kernel(EXACT)
def _fill_bars(rows, lengths, weights, chart, grad, bars):
    """Derivatives of Σ grad log Z by the log weights of spans, from the widest to the narrowest; `math.md`, (10)."""
    n, size = chart.shape[0], rows.shape[0]
    grads = np.empty(n * size)  # multiplied in at the end: 1 / Z may be near the largest number
    for e in range(n * size):
        grads[e] = grad[rows[e % size]]
    for b in range(size):
        root = lengths[rows[b]] - 1
        bars[root, b] = 1.0 / chart[root, b]
    for w in range(n - 1, 0, -1):
        m = (n - w) * size
        by_sum = bars[w, :m] * weights[w, :m]
        for s in range(w):
            after = (s + 1) * size
            right = slice(after, after + m)
            share_products(1.0, by_sum, chart[s, :m], chart[w - 1 - s, right], bars[s, :m], bars[w - 1 - s, right], m)
    for w in range(n):
        m = (n - w) * size
        bars[w, :m] *= chart[w, :m] * grads[:m]


@kernel(EXACT)
def outside(weights, rows, lengths, tops, planes, is_scaled, grad, d_spans):
    """Compute ∂ Σ grad log Z / ∂ spans.

    Args:
        weights: exp of labels less the highest of their span, [batch, n, n, c].
        rows: numbers of the rows of a block, int64 [B].
        lengths: tokens of each row, int64 [batch].
        tops: highest label of each span of a block, float64 [n, n B].
        planes: charts of a block, float64 [planes, n, n B].
        is_scaled: whether a row fitted into exp space, bool [batch].
        grad: weight of each row, float64 [batch].
        d_spans: derivatives by labels, [batch, n, n, c]; comes as zeros.
    """
    bars = np.zeros(planes.shape[1:])
    if is_scaled[rows[0]]:
        _fill_bars(rows, lengths, planes[WEIGHTS], planes[INSIDE], grad, bars)
    else:
        right_bars = np.zeros(planes.shape[1:])
        kernels.fill_bars(rows, lengths, _in_log_space(planes), grad, bars, right_bars)
        bars += right_bars
    share_among_labels(weights, rows, lengths, tops, planes[FOLDED], bars, d_spans)


@kernel(EXACT)
def _move(weights, size, along, moved):
    """Turn weights into dual numbers that change along directions, scaled to STEP; return each row's extent."""
    extents, scaled = np.empty(size), along.copy()
    for b in range(size):
        extents[b] = scale_direction(scaled[:, b::size])
    for w in range(along.shape[0]):
        for e in range((along.shape[0] - w) * size):
            moved[w, e] = weights[w, e] * complex(1.0, scaled[w, e])
    return extents


@kernel(EXACT)
def posterior_changes(weights, rows, lengths, tops, planes, is_scaled, directions, d_spans, done):
    """Fill in the changes of posteriors of labelled spans along directions, by the same recursion on dual numbers.

    See `arc_solver.py`. `done` is False for rows too wide for exp space.

    Args:
        weights: exp of labels less the highest of their span, [batch, n, n, c].
        rows: numbers of the rows of a block, int64 [B].
        lengths: tokens of each row, int64 [batch].
        tops: highest label of each span of a block, float64 [n, n B].
        planes: charts of a block, float64 [planes, n, n B].
        is_scaled: whether a row fitted into exp space, bool [batch].
        directions: how the scores move, float64 [batch, n, n, c].
        d_spans: changes of the posteriors, float64 [batch, n, n, c], filled in.
        done: False for rows too wide for exp space, bool [batch], filled in.
    """
    shape, size, fine = planes.shape[1:], rows.shape[0], is_scaled[rows[0]]
    along, moved = np.zeros(shape), np.zeros(shape, np.complex128)
    chart, bars = np.empty(shape, np.complex128), np.zeros(shape, np.complex128)
    if fine:
        share_changes(weights, rows, lengths, tops, planes[FOLDED], directions, along, bars[:0], d_spans)
        extents = _move(planes[WEIGHTS], size, along, moved)
        _fill(moved, chart, size)
        _fill_bars(rows, lengths, moved, chart, np.ones(done.shape[0]), bars)
        for w in range(shape[0]):
            for e in range((shape[0] - w) * size):
                bars[w, e] = complex(bars[w, e].real, bars[w, e].imag / STEP * extents[e % size])
        share_changes(weights, rows, lengths, tops, planes[FOLDED], directions, along, bars, d_spans)
    for b in range(size):
        length = lengths[rows[b]]
        done[rows[b]] = fine and planes[INSIDE, length - 1, b] > TINY * MARGIN * GROWTH**length / STEP
