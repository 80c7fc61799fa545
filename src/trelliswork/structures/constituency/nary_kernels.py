"""CPU kernels for trees of any arity: one label is *empty* and stands on tokens and on right children only.

Charts are those of `kernels.py`, two of each: `left` has the trees over a span that may be a left child or the root,
which are not empty, `right` those that may be a right child, which may be. `math.md`, (11) and (12).
"""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.compilation import EXACT, FAST, kernel
from trelliswork.runtime.kernel_math import exp
from trelliswork.structures.constituency.kernels import NEG_INF, add_exp, close_splits, pair_sums, share_out
from trelliswork.structures.constituency.label_kernels import LOWEST, fold

FAINT, FARTHEST = 1e-250, 500.0  # below and beyond which weights are not read off those of the highest label
ALL, SOME, SPLITS, RIGHT, LEFT = range(5)  # planes: labels summed, all or but the empty one; splits; charts


@kernel(EXACT)
def _log_sum(scores, empty):
    """log Σ_y exp(scores) over the labels but the empty one."""
    top, total = NEG_INF, 0.0
    for y in range(scores.shape[0]):
        if y != empty:
            top = max(top, scores[y])
    if top == NEG_INF:
        return top
    for y in range(scores.shape[0]):
        if y != empty:
            total += exp(scores[y] - top)
    return top + np.log(total)


@kernel(EXACT)
def _fold_some(spans, rows, lengths, weights, empty, tops, some):
    """some = log Σ_y exp(spans) over the labels but the empty one, for spans of two or more tokens."""
    size, c = rows.shape[0], weights.shape[3]
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
                    some[w, i * size + b] = _log_sum(spans[row, i, i + w], empty)


@kernel(FAST)
def _add(one, other, out):
    for e in range(out.shape[0]):
        out[e] = one[e] + other[e]


@kernel(EXACT)
def inside(spans, rows, lengths, tops, planes, empty, weights, log_z):
    """log Z of the rows of a block in log space; planes [5, n, n B] and weights of labels are kept for the gradient."""
    n, size = planes.shape[1], rows.shape[0]
    left, right = planes[LEFT], planes[RIGHT]
    fold(spans, rows, lengths, tops, weights, planes[ALL])
    planes[SOME] = NEG_INF
    planes[SOME, 0] = planes[ALL, 0]
    _fold_some(spans, rows, lengths, weights, empty, tops, planes[SOME])
    left[0] = right[0] = planes[ALL, 0]
    sums, work = np.empty((n * n // 4 + n) * size), np.empty((2, n * size))
    for w in range(1, n):
        m = (n - w) * size
        highest, totals = work[0, :m], work[1, :m]
        highest[:], totals[:] = LOWEST, 0.0
        for s in range(w):
            after = (s + 1) * size
            pair_sums(left[s, :m], right[w - 1 - s, after : after + m], sums[s * m : s * m + m], highest)
        for s in range(w):
            add_exp(sums[s * m : s * m + m], highest, totals)
        close_splits(highest, totals, planes[ALL, w, :m], planes[SPLITS, w, :m], right[w, :m])
        _add(planes[SPLITS, w, :m], planes[SOME, w, :m], left[w, :m])
    for b in range(size):
        log_z[rows[b]] = left[lengths[rows[b]] - 1, b]


@kernel(EXACT)
def _share_labels(spans, rows, lengths, weights, empty, tops, planes, bars, d_spans):
    """From derivatives by the charts, `bars` of left and right, to those by the labels of spans."""
    size, c = rows.shape[0], weights.shape[3]
    for b in range(size):
        row, length = rows[b], lengths[rows[b]]
        for i in range(length):
            for w in range(length - i):
                e, mine, found = i * size + b, weights[row, i, i + w], d_spans[row, i, i + w]
                top, some = max(tops[w, e], LOWEST), planes[SOME, w, e]
                of_all = bars[1, w, e] * exp(top - max(planes[ALL, w, e], LOWEST))
                of_some = bars[0, w, e] * exp(top - some) if top - some < FARTHEST else 0.0
                for y in range(c):
                    found[y] = (of_all + of_some) * mine[y]
                found[empty] = of_all * mine[empty]
                if bars[0, w, e] != 0.0 and top - some >= FARTHEST:
                    for y in range(c):
                        if y != empty:
                            found[y] += bars[0, w, e] * exp(spans[row, i, i + w, y] - some)


@kernel(EXACT)
def outside(spans, rows, lengths, tops, planes, empty, weights, grad, d_spans):
    """∂ Σ grad log Z / ∂ spans for a block; d_spans comes as zeros."""
    n, size = planes.shape[1], rows.shape[0]
    left, right, bars = planes[LEFT], planes[RIGHT], np.zeros((2, *planes.shape[1:]))
    for b in range(size):
        root = lengths[rows[b]] - 1
        bars[0, root, b] = grad[rows[b]] if left[root, b] > NEG_INF else 0.0
    for w in range(n - 1, 0, -1):
        m = (n - w) * size
        by_sum = bars[0, w, :m] + bars[1, w, :m]
        for s in range(w):
            after = (s + 1) * size
            behind = slice(after, after + m)
            share_out(
                by_sum, planes[SPLITS, w, :m], left[s, :m], right[w - 1 - s, behind], bars[0, s, :m],
                bars[1, w - 1 - s, behind],
            )  # fmt: skip
    bars[1, 0] += bars[0, 0]
    bars[0, 0] = 0.0
    _share_labels(spans, rows, lengths, weights, empty, tops, planes, bars, d_spans)
