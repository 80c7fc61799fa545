"""CPU kernels for trees of any arity: one label is *empty* and stands on tokens and on right children only.

Charts are those of `kernels.py`, two of each: `left` has the trees over a span that may be a left child or the root,
which are not empty, `right` those that may be a right child, which may be. `math.md`, (11) and (12).
"""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.arrays import NEG_INF
from trelliswork.runtime.compilation import EXACT, kernel
from trelliswork.runtime.kernel_math import exp, log_sum
from trelliswork.structures.constituency.kernels import Charts, fill, fill_bars
from trelliswork.structures.constituency.label_kernels import LOWEST, fold

FAINT, FARTHEST = 1e-250, 500.0  # below and beyond which weights are not read off those of the highest label
ALL, SOME, SPLITS, RIGHT, LEFT = range(5)  # planes: labels summed, all or but the empty one; splits; charts


@kernel(EXACT)
def _fold_some(spans, rows, lengths, weights, empty, tops, some):
    """Compute some = log Σ_y exp(spans) over the labels but the empty one, for spans of two or more tokens."""
    size, c, others = rows.shape[0], weights.shape[3], np.empty(weights.shape[3])
    for b in range(size):
        row, length = rows[b], lengths[rows[b]]
        for i in range(length):
            for w in range(1, length - i):
                mine, total = weights[row, i, i + w], 0.0
                for y in range(empty):
                    total += mine[y]
                for y in range(empty + 1, c):
                    total += mine[y]
                if total > FAINT:
                    some[w, i * size + b] = tops[w, i * size + b] + np.log(total)
                else:  # the empty label is so much higher that the weights of the others have underflowed
                    others[:] = spans[row, i, i + w]
                    others[empty] = NEG_INF
                    some[w, i * size + b] = log_sum(others, c)


@kernel(EXACT)
def inside(spans, rows, lengths, tops, planes, empty, weights, log_z):
    """log Z of the rows of a block in log space; planes [5, n, n B] and weights of labels are kept for the gradient."""
    n, size = planes.shape[1], rows.shape[0]
    fold(spans, rows, lengths, tops, weights, planes[ALL])
    planes[SOME] = NEG_INF
    planes[SOME, 0] = planes[ALL, 0]
    _fold_some(spans, rows, lengths, weights, empty, tops, planes[SOME])
    fill(Charts(planes[SOME], planes[ALL], planes[SPLITS], planes[LEFT], planes[RIGHT]), n, size)
    for b in range(size):
        log_z[rows[b]] = planes[LEFT, lengths[rows[b]] - 1, b]


@kernel(EXACT)
def _share_labels(spans, rows, lengths, weights, empty, tops, planes, bars, d_spans):
    """From derivatives by the charts, `bars` of left and right, to those by the labels of spans."""
    size, c = rows.shape[0], weights.shape[3]
    for b in range(size):
        row, length = rows[b], lengths[rows[b]]
        for i in range(length):
            for w in range(length - i):
                e, mine, d_labels = i * size + b, weights[row, i, i + w], d_spans[row, i, i + w]
                top, some = max(tops[w, e], LOWEST), planes[SOME, w, e]
                of_all = bars[1, w, e] * exp(top - max(planes[ALL, w, e], LOWEST))
                of_some = bars[0, w, e] * exp(top - some) if top - some < FARTHEST else 0.0
                for y in range(c):
                    d_labels[y] = (of_all + of_some) * mine[y]
                d_labels[empty] = of_all * mine[empty]
                if bars[0, w, e] != 0.0 and top - some >= FARTHEST:
                    for y in range(c):
                        if y != empty:
                            d_labels[y] += bars[0, w, e] * exp(spans[row, i, i + w, y] - some)


@kernel(EXACT)
def outside(spans, rows, lengths, tops, planes, empty, weights, grad, d_spans):
    """∂ Σ grad log Z / ∂ spans for a block; d_spans comes as zeros."""
    bars = np.zeros((2, *planes.shape[1:]))
    charts = Charts(planes[SOME], planes[ALL], planes[SPLITS], planes[LEFT], planes[RIGHT])
    fill_bars(rows, lengths, charts, grad, bars[0], bars[1])
    bars[1, 0] += bars[0, 0]
    bars[0, 0] = 0.0
    _share_labels(spans, rows, lengths, weights, empty, tops, planes, bars, d_spans)
