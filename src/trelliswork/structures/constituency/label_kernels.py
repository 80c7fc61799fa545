"""CPU kernels for the labels of spans: the highest, their sum, and how a derivative is shared among them.

`spans` may be float32 or float64 and is read where i <= j < length only. Charts are those of `kernels.py`.
"""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.arrays import NEG_INF
from trelliswork.runtime.compilation import EXACT, FAST, kernel
from trelliswork.runtime.kernel_math import LARGEST_SCORE, exp, higher, log

LOWEST = -1e300  # stands for -inf where it is subtracted: -inf - LOWEST is -inf, and no NaN
LANES = 8


@kernel(EXACT)
def _highest(scores, c, lanes, tops):
    """Compute tops_s = max_y scores[s c + y]: eight labels side by side; the last eight may overlap those before."""
    for s in range(scores.shape[0] // c):
        row = scores[s * c : s * c + c]
        for k in range(LANES):
            lanes[k] = row[k]
        at = LANES
        while at < c:
            first = min(at, c - LANES)
            for k in range(LANES):
                lanes[k] = higher(row[first + k], lanes[k])
            at += LANES
        left = higher(higher(lanes[0], lanes[4]), higher(lanes[1], lanes[5]))
        right = higher(higher(lanes[2], lanes[6]), higher(lanes[3], lanes[7]))
        tops[s] = higher(left, right)


@kernel(FAST, inline=True)
def _from(flat, b, i, length, n, c):
    """Return the labels of the spans that start at token i, one span after the other."""
    return flat[b, (i * n + i) * c : (i * n + length) * c]


@kernel(EXACT)
def highest_labels(spans, rows, lengths, tops, fine):
    """Compute the highest label of each span of a block, and for each row whether neither NaN nor +inf was met.

    Args:
        spans: scores of labels, [batch, n, n, c], by first and last token, float32 or float64.
        rows: numbers of the rows of a block, int64 [B].
        lengths: tokens of each row, int64 [batch].
        tops: float64 [n, n B], filled in.
        fine: whether neither NaN nor +inf was met in a row, bool [batch], filled in.
    """
    batch, n, _, c = spans.shape
    flat, size = spans.reshape((batch, n * n * c)), rows.shape[0]
    lanes, highest = np.empty(LANES, spans.dtype), np.empty(n)
    tops[:] = NEG_INF
    for b in range(size):
        row, length, bad = rows[b], lengths[rows[b]], 0
        for i in range(length):
            scores = _from(flat, row, i, length, n, c)
            for e in range(scores.shape[0]):
                bad += not (scores[e] <= LARGEST_SCORE)
            if c >= LANES:
                _highest(scores, c, lanes, highest)
            for s in range(length - i if c < LANES else 0):
                highest[s] = scores[s * c]
                for y in range(1, c):
                    highest[s] = higher(scores[s * c + y], highest[s])
            for w in range(length - i):
                tops[w, i * size + b] = highest[w]
        fine[row] = bad == 0


@kernel(FAST)
def _exp_below(scores, limits, c, weights, totals):
    """weights = exp(scores - limits), one limit a span, and their sums; all exponentials are taken in one run."""
    for s in range(scores.shape[0] // c):
        limit, row, out = limits[s], scores[s * c : s * c + c], weights[s * c : s * c + c]
        for y in range(c):
            out[y] = row[y] - limit
    for e in range(weights.shape[0]):
        weights[e] = exp(weights[e])
    for s in range(weights.shape[0] // c):
        total, row = 0.0, weights[s * c : s * c + c]
        for y in range(c):
            total += row[y]
        totals[s] = total


@kernel(EXACT)
def fold(spans, rows, lengths, tops, weights, folded):
    """folded = log Σ_y exp(spans); weights = exp(spans - the highest label of their span), where they are read.

    Args:
        spans: scores of labels, [batch, n, n, c], by first and last token, float32 or float64.
        rows: numbers of the rows of a block, int64 [B].
        lengths: tokens of each row, int64 [batch].
        tops: highest label of each span of a block, float64 [n, n B].
        weights: [batch, n, n, c], filled in.
        folded: float64 [n, n B], filled in.
    """
    batch, n, _, c = spans.shape
    size, shape = rows.shape[0], (batch, n * n * c)
    flat, flat_weights = spans.reshape(shape), weights.reshape(shape)
    limits, row_totals, totals = np.empty(n), np.empty(n), np.ones(tops.shape)
    folded[:] = tops
    for b in range(size):
        row, length = rows[b], lengths[rows[b]]
        for i in range(length):
            for w in range(length - i):
                limits[w] = max(tops[w, i * size + b], LOWEST)
            mine = _from(flat_weights, row, i, length, n, c)
            _exp_below(_from(flat, row, i, length, n, c), limits, c, mine, row_totals)
            for w in range(length - i):
                totals[w, i * size + b] = row_totals[w]
    for w in range(tops.shape[0]):
        for e in range(tops.shape[1]):
            folded[w, e] += log(totals[w, e])


@kernel(FAST)
def _scale(amounts, weights, c, out):
    for s in range(weights.shape[0] // c):
        amount, row, scaled = amounts[s], weights[s * c : s * c + c], out[s * c : s * c + c]
        for y in range(c):
            scaled[y] = amount * row[y]


@kernel(EXACT)
def share_among_labels(weights, rows, lengths, tops, folded, bars, d_spans):
    """Compute d_spans[b, i, j, y] = bars exp(spans - folded), for the spans (i, j) of a block; uses `bars` up.

    Args:
        weights: exp of labels less the highest of their span, [batch, n, n, c].
        rows: numbers of the rows of a block, int64 [B].
        lengths: tokens of each row, int64 [batch].
        tops: highest label of each span of a block, float64 [n, n B].
        folded: log of the sum over the labels of each span, float64 [n, n B].
        bars: derivatives by the spans of a block, float64 [n, n B], used up.
        d_spans: derivatives by labels, [batch, n, n, c]; comes as zeros.
    """
    batch, n, _, c = weights.shape
    size, shape = rows.shape[0], (batch, n * n * c)
    flat, flat_d_spans, amounts = weights.reshape(shape), d_spans.reshape(shape), np.empty(n)
    for w in range(tops.shape[0]):
        for e in range(tops.shape[1]):  # bars / Σ_y weights
            bars[w, e] *= exp(max(tops[w, e], LOWEST) - max(folded[w, e], LOWEST))
    for b in range(size):
        row, length = rows[b], lengths[rows[b]]
        for i in range(length):
            for w in range(length - i):
                amounts[w] = bars[w, i * size + b]
            _scale(amounts, _from(flat, row, i, length, n, c), c, _from(flat_d_spans, row, i, length, n, c))


@kernel(EXACT)
def share_changes(weights, rows, lengths, tops, folded, directions, along, bars, d_spans):
    """Set the changes of p(span, y) = p(span) p(y | span), from p(span) and its change, complex numbers in `bars`.

    `along` are Σ_y p(y | span) directions: how `folded` changes. They are added up first, if there are no `bars` yet.

    Args:
        weights: exp of labels less the highest of their span, [batch, n, n, c].
        rows: numbers of the rows of a block, int64 [B].
        lengths: tokens of each row, int64 [batch].
        tops: highest label of each span of a block, float64 [n, n B].
        folded: log of the sum over the labels of each span, float64 [n, n B].
        directions: how the scores move, float64 [batch, n, n, c].
        along: how `folded` changes, float64 [n, n B].
        bars: p(span) and its change as complex numbers, [n, n B].
        d_spans: derivatives by labels, [batch, n, n, c]; comes as zeros.
    """
    c, size = weights.shape[3], rows.shape[0]
    for b in range(size):
        row, length = rows[b], lengths[rows[b]]
        for i in range(length):
            for w in range(length - i):
                e, mine, direction = i * size + b, weights[row, i, i + w], directions[row, i, i + w]
                over_total = exp(max(tops[w, e], LOWEST) - max(folded[w, e], LOWEST))
                for y in range(c):
                    if mine[y] > 0.0 and bars.shape[0] == 0:
                        along[w, e] += mine[y] * over_total * direction[y]
                    elif mine[y] > 0.0:
                        change = bars[w, e].imag + bars[w, e].real * (direction[y] - along[w, e])
                        d_spans[row, i, i + w, y] = mine[y] * over_total * change
