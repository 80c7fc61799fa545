"""CPU kernels that sum over trees in log space, whatever the range of scores, and the score of given trees.

A few rows of similar length form a block and are done side by side: a chart of a block is [width, i B + b], the weights
of tokens i..i+width of the block's row b of B, so that every sum over splits runs along contiguous entries of all rows.
Entries beyond a row's end are -inf. `left` has the trees over a span that may be a left child or the root, `right`
those that may be a right child; without an empty label (`nary_kernels.py`) they are one chart.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trelliswork.runtime.arrays import NEG_INF, Array
from trelliswork.runtime.compilation import EXACT, FAST, kernel
from trelliswork.runtime.kernel_math import exp, higher, log
from trelliswork.structures.constituency.label_kernels import LOWEST

FOLDED, SPLITS, INSIDE = range(3)  # planes: labels summed; splits summed; both


class Charts(NamedTuple):
    """Labels summed of left children and the root, and of right children; splits summed; charts of either."""

    of_some: Array
    of_all: Array
    splits: Array
    left: Array
    right: Array


@kernel(FAST)
def fill(charts, n, size):
    """Compute the inside recursion of a block of B = size rows, narrow spans first; `math.md`, (4), (5) and (11)."""
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
    """Compute derivatives of Σ grad log Z by the weights of spans, the widest first; `math.md`, (7) and (12)."""
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
    """Σ spans over the nodes of each row's tree; -1 ends a row."""
    for b in range(spans.shape[0]):
        total = 0.0
        for r in range(nodes.shape[1]):
            if nodes[b, r, 0] < 0:
                break
            total += spans[b, nodes[b, r, 0], nodes[b, r, 1] - 1, nodes[b, r, 2]]
        scores[b] = total


@kernel(EXACT)
def add_trees(nodes, grad, d_spans):
    """Add: d_spans += grad at the nodes of each row's tree."""
    for b in range(nodes.shape[0]):
        for r in range(nodes.shape[1]):
            if nodes[b, r, 0] < 0:
                break
            d_spans[b, nodes[b, r, 0], nodes[b, r, 1] - 1, nodes[b, r, 2]] += grad[b]


@kernel(EXACT)
def first_not_a_tree(nodes, lengths, c, empty):
    """The first row whose nodes, parents before children and left before right, are no binary tree; -1 if all are.

    The label `empty`, -1 if there is none, may stand on tokens and on right children alone.
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
