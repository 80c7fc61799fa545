"""CPU kernels that pick trees: the best one and samples. They write nodes (start, end, label), end exclusive."""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.arrays import NEG_INF
from trelliswork.runtime.compilation import EXACT, FAST, kernel
from trelliswork.runtime.kernel_math import higher
from trelliswork.runtime.kernel_random import draw, draw_weight
from trelliswork.structures.constituency.kernels import INSIDE

BEST, DRAWN, DRAWN_IN_LOG_SPACE = range(3)  # how to choose


@kernel(FAST)
def _fill_best(folded, n, size, charts):
    """The inside recursion of a block in (max, +), for trees that may be left children or the root, and right ones."""
    (left, right), tops = charts, np.empty(n * size)
    left[0], right[0] = folded[0][0], folded[1][0]
    for w in range(1, n):
        m = (n - w) * size
        tops[:] = NEG_INF
        for s in range(w):
            one, other = left[s, :m], right[w - 1 - s, (s + 1) * size : (s + 1) * size + m]
            for e in range(m):
                tops[e] = higher(tops[e], one[e] + other[e])
        for e in range(m):
            right[w, e], left[w, e] = tops[e] + folded[1][w, e], tops[e] + folded[0][w, e]


@kernel(EXACT)
def _first(scores, size, wanted):
    """Return the first index of a score; 0 if it is not there, as with NaN."""
    for y in range(size):
        if scores[y] == wanted:
            return y
    return 0


@kernel(EXACT)
def _trace(labels, n, way, tops, charts, b, size, works, state, nodes):
    """Compute a tree of a block's row b, from the whole row down: at each node a label and a split, the best or drawn.

    `labels` are scores if the best is wanted, else weights; their highest scores `tops` and charts are those of left
    children and of right ones.
    """
    c, waiting, done, (stack, work), (left, right) = labels[0].shape[2], 1, 0, works, charts
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, n - 1, 0
    while waiting > 0:
        waiting -= 1
        i, j, side = stack[waiting, 0], stack[waiting, 1], stack[waiting, 2]
        mine = labels[side][i, j]
        label = _first(mine, c, tops[side][j - i, i * size + b]) if way == BEST else draw_weight(mine, c, state)
        nodes[done, 0], nodes[done, 1], nodes[done, 2] = i, j + 1, label
        done += 1
        if i == j:
            continue
        top = NEG_INF
        for s in range(j - i):
            one, other = left[s, i * size + b], right[j - i - 1 - s, (i + s + 1) * size + b]
            work[s] = one * other if way == DRAWN else one + other
            top = max(top, work[s])
        if way == BEST:  # its score is known: a search for the maximum would take 15 to 25 % longer
            split = i + _first(work, j - i, top)
        else:
            split = i + (draw_weight(work, j - i, state) if way == DRAWN else draw(work, j - i, state))
        stack[waiting, 0], stack[waiting, 1], stack[waiting, 2] = split + 1, j, 1
        stack[waiting + 1, 0], stack[waiting + 1, 1], stack[waiting + 1, 2] = i, split, 0
        waiting += 2


@kernel(EXACT)
def best_trees(spans, rows, lengths, tops, some_tops, some, nodes, possible):
    """Find the best tree of each row of a block; among ties the lowest label and first split.

    `some` are the labels of left children and of the root, and `some_tops` the highest of those.

    Args:
        spans: scores of labels, [batch, n, n, c], by first and last token, float32 or float64.
        rows: numbers of the rows of a block, int64 [B].
        lengths: tokens of each row, int64 [batch].
        tops: highest label of each span of a block, float64 [n, n B].
        some_tops: highest label of each span that a left child or the root may have, float64 [n, n B].
        some: scores of the labels of left children and of the root, [batch, n, n, c].
        nodes: (start, end, label) of each node, int64 [batch, 2n-1, 3], filled in.
        possible: whether a row has a tree, bool [batch], filled in.
    """
    n, size = tops.shape[0], rows.shape[0]
    works, state = (np.empty((2 * n, 3), np.int64), np.empty(n)), np.zeros(1, np.uint64)
    charts, folded = (np.empty(tops.shape), np.empty(tops.shape)), (some_tops, tops)
    _fill_best(folded, n, size, charts)
    for b in range(size):
        row = rows[b]
        possible[row] = charts[0][lengths[row] - 1, b] > NEG_INF
        if possible[row]:
            _trace((some[row], spans[row]), lengths[row], BEST, folded, charts, b, size, works, state, nodes[row])


@kernel(EXACT)
def sample_trees(weights, rows, lengths, planes, is_scaled, seeds, nodes):
    """Draw exact, independent samples from what `inside` left of a block: O(n (c + n)) each.

    Args:
        weights: exp of labels less the highest of their span, [batch, n, n, c].
        rows: numbers of the rows of a block, int64 [B].
        lengths: tokens of each row, int64 [batch].
        planes: charts of a block, float64 [planes, n, n B].
        is_scaled: whether a row fitted into exp space, bool [batch].
        seeds: a seed for each sample, int64 [samples, batch].
        nodes: int64 [samples, batch, 2n-1, 3], filled in.
    """
    n, size, chart = planes.shape[1], rows.shape[0], planes[INSIDE]
    works, state = (np.empty((2 * n, 3), np.int64), np.empty(n)), np.zeros(1, np.uint64)
    for b in range(size):
        row, way = rows[b], DRAWN if is_scaled[rows[b]] else DRAWN_IN_LOG_SPACE
        labels, charts = (weights[row], weights[row]), (chart, chart)
        for s in range(seeds.shape[0]):
            state[0] = np.uint64(seeds[s, row])
            _trace(labels, lengths[row], way, charts, charts, b, size, works, state, nodes[s, row])
