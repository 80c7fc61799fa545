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
def _fill_best(folded, n, size, chart):
    """The inside recursion of a block in (max, +)."""
    chart[0] = folded[0]
    for w in range(1, n):
        m = (n - w) * size
        tops = chart[w, :m]
        tops[:] = NEG_INF
        for s in range(w):
            after = (s + 1) * size
            _keep_higher(chart[s, :m], chart[w - 1 - s, after : after + m], tops)
        tops += folded[w, :m]


@kernel(EXACT)
def _first(scores, size, wanted):
    """The first index of a score; 0 if it is not there, as with NaN."""
    for y in range(size):
        if scores[y] == wanted:
            return y
    return 0


@kernel(EXACT)
def put(stack, waiting, i, split, j):
    """The halves of tokens i..j, the left on top."""
    stack[waiting, 0], stack[waiting, 1] = split + 1, j
    stack[waiting + 1, 0], stack[waiting + 1, 1] = i, split
    return waiting + 2


@kernel(EXACT)
def _trace(spans, n, best, folded, chart, b, size, works, state, nodes):
    """A tree of a block's row b, from the whole row down: at each node a label and a split, the best or drawn."""
    c, waiting, found, (stack, work) = spans.shape[2], 1, 0, works
    stack[0, 0], stack[0, 1] = 0, n - 1
    while waiting > 0:
        waiting -= 1
        i, j = stack[waiting, 0], stack[waiting, 1]
        top = folded[j - i, i * size + b]
        label = _first(spans[i, j], c, top) if best else draw(spans[i, j], c, state)
        nodes[found, 0], nodes[found, 1], nodes[found, 2] = i, j + 1, label
        found += 1
        if i == j:
            continue
        top = NEG_INF
        for s in range(j - i):
            work[s] = chart[s, i * size + b] + chart[j - i - 1 - s, (i + s + 1) * size + b]
            top = max(top, work[s])
        split = i + (_first(work, j - i, top) if best else draw(work, j - i, state))
        waiting = put(stack, waiting, i, split, j)


@kernel(EXACT)
def best_trees(spans, rows, lengths, tops, nodes, possible):
    """The best tree of each row of a block, given the highest labels; among ties the lowest label and first split."""
    n, size = tops.shape[0], rows.shape[0]
    work, stack, state = np.empty(n), np.empty((2 * n, 2), np.int64), np.zeros(1, np.uint64)
    chart = np.empty(tops.shape)
    _fill_best(tops, n, size, chart)
    for b in range(size):
        row = rows[b]
        possible[row] = chart[lengths[row] - 1, b] > NEG_INF
        if possible[row]:
            _trace(spans[row], lengths[row], True, tops, chart, b, size, (stack, work), state, nodes[row])


@kernel(EXACT)
def sample_trees(spans, rows, lengths, planes, seeds, nodes):
    """Exact, independent samples from the planes of `inside` in log space: O(n (c + n)) each."""
    n, size, folded, chart = planes.shape[1], rows.shape[0], planes[FOLDED], planes[INSIDE]
    work, stack, state = np.empty(n), np.empty((2 * n, 2), np.int64), np.zeros(1, np.uint64)
    for b in range(size):
        for s in range(seeds.shape[0]):
            row, state[0] = rows[b], np.uint64(seeds[s, rows[b]])
            _trace(spans[row], lengths[row], False, folded, chart, b, size, (stack, work), state, nodes[s, row])
