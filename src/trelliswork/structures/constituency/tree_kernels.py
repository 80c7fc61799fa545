"""CPU kernels that pick trees: the best one and samples. They write nodes (start, end, label), end exclusive."""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.compilation import EXACT, FAST, kernel
from trelliswork.runtime.kernel_math import higher
from trelliswork.runtime.kernel_random import draw
from trelliswork.structures.constituency.kernels import FOLDED, INSIDE

NEG_INF = -np.inf


@kernel(FAST)
def _keep_higher(left, right, tops):
    for e in range(tops.shape[0]):
        tops[e] = higher(tops[e], left[e] + right[e])


@kernel(FAST)
def _fill_best(folded, n, size, charts):
    """The inside recursion of a block in (max, +), for trees that may be left children or the root, and right ones."""
    left, right = charts
    left[0], right[0] = folded[0][0], folded[1][0]
    for w in range(1, n):
        m = (n - w) * size
        tops = right[w, :m]
        tops[:] = NEG_INF
        for s in range(w):
            after = (s + 1) * size
            _keep_higher(left[s, :m], right[w - 1 - s, after : after + m], tops)
        for e in range(m):
            splits = tops[e]
            right[w, e], left[w, e] = splits + folded[1][w, e], splits + folded[0][w, e]


@kernel(EXACT)
def _first(scores, size, wanted):
    """The first index of a score; 0 if it is not there, as with NaN."""
    for y in range(size):
        if scores[y] == wanted:
            return y
    return 0


@kernel(EXACT)
def _trace(spans, n, best, folded, charts, b, size, works, state, nodes):
    """A tree of a block's row b, from the whole row down: at each node a label and a split, the best or drawn.

    Labels, their highest or summed scores, and charts are those of left children and of right ones.
    """
    c, waiting, found, (stack, work), (left, right) = spans[0].shape[2], 1, 0, works, charts
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, n - 1, 0
    while waiting > 0:
        waiting -= 1
        i, j, side = stack[waiting, 0], stack[waiting, 1], stack[waiting, 2]
        labels, top = spans[side][i, j], folded[side][j - i, i * size + b]
        label = _first(labels, c, top) if best else draw(labels, c, state)
        nodes[found, 0], nodes[found, 1], nodes[found, 2] = i, j + 1, label
        found += 1
        if i == j:
            continue
        top = NEG_INF
        for s in range(j - i):
            work[s] = left[s, i * size + b] + right[j - i - 1 - s, (i + s + 1) * size + b]
            top = max(top, work[s])
        split = i + (_first(work, j - i, top) if best else draw(work, j - i, state))
        stack[waiting, 0], stack[waiting, 1], stack[waiting, 2] = split + 1, j, 1
        stack[waiting + 1, 0], stack[waiting + 1, 1], stack[waiting + 1, 2] = i, split, 0
        waiting += 2


@kernel(EXACT)
def best_trees(spans, rows, lengths, tops, some_tops, some, nodes, possible):
    """The best tree of each row of a block, given the highest labels; among ties the lowest label and first split.

    `some` are the labels of left children and of the root, and `some_tops` the highest of those.
    """
    n, size = tops.shape[0], rows.shape[0]
    work, stack, state = np.empty(n), np.empty((2 * n, 3), np.int64), np.zeros(1, np.uint64)
    chart = np.empty(tops.shape)
    charts, folded = (np.empty(tops.shape), chart), (some_tops, tops)
    _fill_best(folded, n, size, charts)
    for b in range(size):
        row = rows[b]
        possible[row] = charts[0][lengths[row] - 1, b] > NEG_INF
        if possible[row]:
            given = (some[row], spans[row])
            _trace(given, lengths[row], True, folded, charts, b, size, (stack, work), state, nodes[row])


@kernel(EXACT)
def sample_trees(spans, rows, lengths, planes, seeds, nodes):
    """Exact, independent samples from the planes of `inside` in log space: O(n (c + n)) each."""
    n, size, folded, chart = planes.shape[1], rows.shape[0], planes[FOLDED], planes[INSIDE]
    work, stack, state = np.empty(n), np.empty((2 * n, 3), np.int64), np.zeros(1, np.uint64)
    for b in range(size):
        for s in range(seeds.shape[0]):
            row, state[0] = rows[b], np.uint64(seeds[s, rows[b]])
            given, sums, charts = (spans[row], spans[row]), (folded, folded), (chart, chart)
            _trace(given, lengths[row], False, sums, charts, b, size, (stack, work), state, nodes[s, row])
