"""CPU kernels that sum over trees in log space, whatever the range of scores, and the score of given trees.

A few rows of similar length form a block and are done side by side: a chart of a block is [width, i B + b], the weights
of tokens i..i+width of the block's row b of B, so that every sum over splits runs along contiguous entries of all rows.
Entries beyond a row's end are -inf. `left` has the trees over a span that may be a left child or the root, `right`
those that may be a right child; without an empty label they are one chart.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trelliswork.runtime.arrays import NEG_INF, Array
from trelliswork.runtime.compilation import EXACT, FAST, kernel
from trelliswork.runtime.kernel_math import exp, higher, log, log_sum
from trelliswork.structures.constituency.label_kernels import LOWEST, fold

FOLDED, SPLITS, INSIDE = range(3)  # planes: labels summed; splits summed; both
ALL, SOME, OF_SPLITS, RIGHT, LEFT = range(5)  # of trees of any arity: labels, all or but the empty one; splits; charts
FAINT, FARTHEST = 1e-250, 500.0  # below and beyond which weights are not read off those of the highest label


class Charts(NamedTuple):
    """Labels summed of left children and the root, and of right children; splits summed; charts of either."""

    of_some: Array
    of_all: Array
    splits: Array
    left: Array
    right: Array


@kernel(FAST)
def fill(charts, n, size):
    """Compute the inside recursion of a block of B = size rows, narrow spans first; `math.md`, (4), (5) and (11).

    Args:
        charts: float64 [n, n B] each; `splits`, `left` and `right` are filled in.
        n: tokens of the longest row.
        size: number of rows of the block.
    """
    of_some, of_all, splits, left, right = charts
    sums, tops, totals = np.empty((n, n * size)), np.empty(n * size), np.empty(n * size)
    left[0] = right[0] = of_all[0]
    for w in range(1, n):
        m = (n - w) * size
        tops[:], totals[:] = LOWEST, 0.0
        for s in range(w):
            one, other, pairs = left[s, :m], right[w - 1 - s, (s + 1) * size : (s + 1) * size + m], sums[s]
            for e in range(m):
                pairs[e] = one[e] + other[e]
                tops[e] = higher(tops[e], pairs[e])
        for s in range(w):
            pairs = sums[s]
            for e in range(m):
                totals[e] += exp(pairs[e] - tops[e])
        for e in range(m):
            splits[w, e] = tops[e] + log(totals[e])
            left[w, e] = splits[w, e] + of_some[w, e]
            right[w, e] = splits[w, e] + of_all[w, e]


@kernel(FAST)
def fill_bars(rows, lengths, charts, grad, left_bars, right_bars):
    """Compute derivatives of Σ grad log Z by the weights of spans, the widest first; `math.md`, (7) and (12).

    Args:
        rows: numbers of the rows of a block, int64 [B].
        lengths: tokens of each row, int64 [batch].
        charts: charts of the block, float64 [n, n B] each.
        grad: weight of each row, float64 [batch].
        left_bars: derivatives by `left`, float64 [n, n B]; come as zeros, filled in.
        right_bars: derivatives by `right`, likewise.
    """
    _, _, splits, left, right = charts
    n, size = left.shape[0], rows.shape[0]
    for b in range(size):
        root = lengths[rows[b]] - 1
        left_bars[root, b] = grad[rows[b]] if left[root, b] > NEG_INF else 0.0
    for w in range(n - 1, 0, -1):
        m = (n - w) * size
        by_sum, total = left_bars[w, :m] + right_bars[w, :m], np.maximum(splits[w, :m], LOWEST)
        for s in range(w):
            behind = slice((s + 1) * size, (s + 1) * size + m)
            one, other = left[s, :m], right[w - 1 - s, behind]
            one_bar, other_bar = left_bars[s, :m], right_bars[w - 1 - s, behind]
            for e in range(m):
                share = by_sum[e] * exp(min(one[e] + other[e] - total[e], 0.0))  # at most 1, but for rounding
                one_bar[e] += share
                other_bar[e] += share


@kernel(EXACT)
def tree_scores(spans, nodes, scores):
    """Σ spans over the nodes of each row's tree; -1 ends a row.

    Args:
        spans: scores of labels, [batch, n, n, c], by first and last token, float32 or float64.
        nodes: (start, end, label) of each node, int64 [batch, nodes, 3], -1 behind the last.
        scores: float64 [batch], filled in.
    """
    for b in range(spans.shape[0]):
        total = 0.0
        for r in range(nodes.shape[1]):
            if nodes[b, r, 0] < 0:
                break
            total += spans[b, nodes[b, r, 0], nodes[b, r, 1] - 1, nodes[b, r, 2]]
        scores[b] = total


@kernel(EXACT)
def add_trees(nodes, grad, d_spans):
    """Add: d_spans += grad at the nodes of each row's tree.

    Args:
        nodes: (start, end, label) of each node, int64 [batch, nodes, 3], -1 behind the last.
        grad: weight of each row, float64 [batch].
        d_spans: [batch, n, n, c], float32 or float64, added to.
    """
    for b in range(nodes.shape[0]):
        for r in range(nodes.shape[1]):
            if nodes[b, r, 0] < 0:
                break
            d_spans[b, nodes[b, r, 0], nodes[b, r, 1] - 1, nodes[b, r, 2]] += grad[b]


@kernel(EXACT)
def first_not_a_tree(nodes, lengths, c, empty):
    """The first row whose nodes, parents before children and left before right, are no binary tree; -1 if all are.

    The label `empty`, -1 if there is none, may stand on tokens and on right children alone.

    Args:
        nodes: (start, end, label) of each node, int64 [batch, nodes, 3], -1 behind the last.
        lengths: tokens of each row, int64 [batch].
        c: number of labels.
        empty: the label that makes a tree binary, or -1.
    """
    stack = np.empty((nodes.shape[1] + 1, 3), np.int64)
    for b in range(nodes.shape[0]):
        # Each entry is a span still to be met; the end of a left child, known when it is met, gives its sibling.
        n_nodes, waiting = 2 * lengths[b] - 1, 1
        stack[0, 0], stack[0, 1], stack[0, 2] = 0, lengths[b], 0
        for r in range(nodes.shape[1]):
            start, end, label = nodes[b, r, 0], nodes[b, r, 1], nodes[b, r, 2]
            if r >= n_nodes:
                if start >= 0:
                    return b
                continue
            waiting -= 1
            if waiting < 0 or start != stack[waiting, 0] or end != stack[waiting, 1] or not 0 <= label < c:
                return b
            if end - start == 1:
                continue
            if (label == empty and stack[waiting, 2] == 0) or r + 1 >= n_nodes:
                return b
            split = nodes[b, r + 1, 1]
            if nodes[b, r + 1, 0] != start or not start < split < end:
                return b
            stack[waiting, 0], stack[waiting, 1], stack[waiting, 2] = split, end, 1
            stack[waiting + 1, 0], stack[waiting + 1, 1], stack[waiting + 1, 2] = start, split, 0
            waiting += 2
        if waiting != 0:
            return b
    return -1


# --- trees of any arity ------------------------------------------------------------------------------------
# One label is *empty* and stands on tokens and on right children only: `math.md`, (11) and (12). `left` has trees that
# are not empty, `right` those that may be.


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
def nary_inside(spans, rows, lengths, tops, planes, empty, weights, log_z):
    """log Z of the rows of a block in log space; planes [5, n, n B] and weights of labels are kept for the gradient.

    Args:
        spans: scores of labels, [batch, n, n, c], by first and last token, float32 or float64.
        rows: numbers of the rows of a block, int64 [B].
        lengths: tokens of each row, int64 [batch].
        tops: highest label of each span of a block, float64 [n, n B].
        planes: float64 [5, n, n B], filled in.
        empty: the label that stands on tokens and right children only.
        weights: exp of labels less the highest of their span, [batch, n, n, c], filled in.
        log_z: log Z of each row, float64 [batch], filled in.
    """
    n, size = planes.shape[1], rows.shape[0]
    fold(spans, rows, lengths, tops, weights, planes[ALL])
    planes[SOME] = NEG_INF
    planes[SOME, 0] = planes[ALL, 0]
    _fold_some(spans, rows, lengths, weights, empty, tops, planes[SOME])
    fill(Charts(planes[SOME], planes[ALL], planes[OF_SPLITS], planes[LEFT], planes[RIGHT]), n, size)
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
def nary_outside(spans, rows, lengths, tops, planes, empty, weights, grad, d_spans):
    """∂ Σ grad log Z / ∂ spans for a block; d_spans comes as zeros.

    Args:
        spans: scores of labels, [batch, n, n, c], by first and last token, float32 or float64.
        rows: numbers of the rows of a block, int64 [B].
        lengths: tokens of each row, int64 [batch].
        tops: highest label of each span of a block, float64 [n, n B].
        planes: those of `nary_inside`, float64 [5, n, n B].
        empty: the label that stands on tokens and right children only.
        weights: exp of labels less the highest of their span, [batch, n, n, c].
        grad: weight of each row, float64 [batch].
        d_spans: derivatives by labels, [batch, n, n, c], filled in.
    """
    bars = np.zeros((2, *planes.shape[1:]))
    charts = Charts(planes[SOME], planes[ALL], planes[OF_SPLITS], planes[LEFT], planes[RIGHT])
    fill_bars(rows, lengths, charts, grad, bars[0], bars[1])
    bars[1, 0] += bars[0, 0]
    bars[0, 0] = 0.0
    _share_labels(spans, rows, lengths, weights, empty, tops, planes, bars, d_spans)
