"""CPU kernels that pick trees: the best, the k best, samples. They write nodes (start, end, label), end exclusive."""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.compilation import EXACT, FAST, kernel
from trelliswork.runtime.kernel_math import higher, insert
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


@kernel(EXACT)
def insert_pairs(left, right, code, values, origins):
    """Insert left_a + right_b for all pairs that can be among the k highest, with origin (code k + a) k + b."""
    k = values.shape[0]
    for a in range(k):
        if left[a] == NEG_INF:
            break
        for b in range(k // (a + 1)):
            value = left[a] + right[b]
            if value == NEG_INF or value <= values[k - 1]:
                break
            insert(value, (code * k + a) * k + b, values, origins)


@kernel(EXACT)
def _best_of_span(spans, i, j, lists, works):
    """The k best trees over tokens i..j: lists of labels, of splits, and of pairs of both."""
    values, origins, labels, splits = lists
    label_values, split_values, pair_origins = works
    c = spans.shape[2]
    label_values[:], split_values[:], values[i, j] = NEG_INF, NEG_INF, NEG_INF
    for y in range(c):
        if spans[i, j, y] > label_values[-1]:
            insert(np.float64(spans[i, j, y]), y, label_values, labels[i, j])
    if i == j:
        values[i, j] = label_values
        for r in range(label_values.shape[0]):
            origins[i, j, r] = r * label_values.shape[0]
        return
    for s in range(i, j):
        insert_pairs(values[i, s], values[s + 1, j], s, split_values, splits[i, j])
    insert_pairs(label_values, split_values, 0, values[i, j], pair_origins)
    origins[i, j] = pair_origins


@kernel(EXACT)
def _trace_rank(n, rank, lists, stack, nodes):
    """The tree of one rank: every entry of a list remembers where it came from."""
    _, origins, labels, splits = lists
    k, waiting, found = origins.shape[2], 1, 0
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, n - 1, rank
    while waiting > 0:
        waiting -= 1
        i, j, r = stack[waiting, 0], stack[waiting, 1], stack[waiting, 2]
        label, way = labels[i, j, origins[i, j, r] // k], origins[i, j, r] % k
        nodes[found, 0], nodes[found, 1], nodes[found, 2] = i, j + 1, label
        found += 1
        if i == j:
            continue
        code = splits[i, j, way]
        put(stack, waiting, i, code // (k * k), j)
        stack[waiting, 2], stack[waiting + 1, 2] = code % k, code // k % k
        waiting += 2


@kernel(EXACT)
def top_trees(first, last, spans, lengths, nodes, scores):
    """The k best trees of each row and their scores, -inf where there are fewer."""
    k, n_most = scores.shape[0], spans.shape[1]
    shape = (n_most, n_most, k)
    lists = (np.empty(shape), np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(shape, np.int64))
    works = (np.empty(k), np.empty(k), np.zeros(k, np.int64))
    stack = np.empty((2 * n_most, 3), np.int64)
    for b in range(first, last):
        n = lengths[b]
        for w in range(n):
            for i in range(n - w):
                _best_of_span(spans[b], i, i + w, lists, works)
        for rank in range(k):
            scores[rank, b] = lists[0][0, n - 1, rank]
            if scores[rank, b] > NEG_INF:
                _trace_rank(n, rank, lists, stack, nodes[rank, b])
