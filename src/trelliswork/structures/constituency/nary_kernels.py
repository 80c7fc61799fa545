"""CPU kernels for trees of any arity: one label is *empty* and stands on tokens and on right children only.

Charts are those of `kernels.py`, two of each: `left` has the trees over a span that may be a left child or the root,
which are not empty, `right` those that may be a right child, which may be. `math.md`, (11) and (12).
"""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.compilation import EXACT, FAST, kernel
from trelliswork.runtime.kernel_math import exp, insert
from trelliswork.structures.constituency.kernels import NEG_INF, add_exp, close_splits, pair_sums, share_out
from trelliswork.structures.constituency.label_kernels import LOWEST, fold
from trelliswork.structures.constituency.tree_kernels import insert_pairs, put

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


@kernel(EXACT)
def _best_of_span(spans, i, j, empty, lists, works):
    """The k best trees over tokens i..j, as a right child (0) and as a left one (1)."""
    values, origins, labels, splits = lists
    label_values, split_values, pair_origins = works
    k = split_values.shape[0]
    for side in range(2):
        label_values[side], values[side, i, j] = NEG_INF, NEG_INF
        for y in range(spans.shape[2]):
            allowed = i == j or side == 0 or y != empty
            if allowed and spans[i, j, y] > label_values[side, k - 1]:
                insert(np.float64(spans[i, j, y]), y, label_values[side], labels[side, i, j])
    if i == j:
        for side in range(2):
            values[side, i, j] = label_values[side]
            for r in range(k):
                origins[side, i, j, r] = r * k
        return
    split_values[:] = NEG_INF
    for s in range(i, j):
        insert_pairs(values[1, i, s], values[0, s + 1, j], s, split_values, splits[i, j])
    for side in range(2):
        insert_pairs(label_values[side], split_values, 0, values[side, i, j], pair_origins)
        origins[side, i, j] = pair_origins


@kernel(EXACT)
def _trace_rank(n, rank, lists, stack, nodes):
    """The tree of one rank: every entry of a list remembers where it came from."""
    _, origins, labels, splits = lists
    k, waiting, found = origins.shape[3], 1, 0
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = 0, n - 1, rank, 1
    while waiting > 0:
        waiting -= 1
        i, j, r, side = stack[waiting, 0], stack[waiting, 1], stack[waiting, 2], stack[waiting, 3]
        origin = origins[side, i, j, r]
        nodes[found, 0], nodes[found, 1], nodes[found, 2] = i, j + 1, labels[side, i, j, origin // k]
        found += 1
        if i == j:
            continue
        code = splits[i, j, origin % k]
        put(stack, waiting, i, code // (k * k), j)
        stack[waiting, 2], stack[waiting, 3] = code % k, 0
        stack[waiting + 1, 2], stack[waiting + 1, 3] = code // k % k, 1
        waiting += 2


@kernel(EXACT)
def top_trees(first, last, spans, lengths, empty, nodes, scores):
    """The k best trees of each row and their scores, -inf where there are fewer."""
    k, n_most = scores.shape[0], spans.shape[1]
    shape = (2, n_most, n_most, k)
    splits = np.zeros((n_most, n_most, k), np.int64)
    lists = (np.empty(shape), np.zeros(shape, np.int64), np.zeros(shape, np.int64), splits)
    works = (np.empty((2, k)), np.empty(k), np.zeros(k, np.int64))
    stack = np.empty((2 * n_most, 4), np.int64)
    for b in range(first, last):
        n = lengths[b]
        for w in range(n):
            for i in range(n - w):
                _best_of_span(spans[b], i, i + w, empty, lists, works)
        for rank in range(k):
            scores[rank, b] = lists[0][1, 0, n - 1, rank]
            if scores[rank, b] > NEG_INF:
                _trace_rank(n, rank, lists, stack, nodes[rank, b])
