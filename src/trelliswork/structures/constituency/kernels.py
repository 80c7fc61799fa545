"""CPU kernels that sum over trees: log Z, its gradient, and the score of given trees. Log space, float64 inside.

`spans` may be float32 or float64 and is read where i <= j < length only. A few rows of similar length form a block and
are done side by side: a chart of a block is [width, i B + b], the weights of tokens i..i+width-1 of the block's row b
of B, so that every sum over splits runs along contiguous entries of all rows. Entries beyond a row's end are -inf.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from trelliswork.structures.kernel_math import EXACT, KERNEL, exp, log

NEG_INF = -np.inf
LOWEST = -1e300  # stands for -inf where it is subtracted: -inf - LOWEST is -inf, and no NaN
FOLDED, SPLITS, INSIDE = range(3)  # planes: labels summed; splits summed; both


@njit(**KERNEL)
def _subtract_top(scores, out):
    """out = scores - their maximum, which is returned (LOWEST at least)."""
    c, top = out.shape[0], np.float64(LOWEST)
    for y in range(c):
        out[y] = scores[y]
    for y in range(c):
        top = max(top, out[y])
    for y in range(c):
        out[y] -= top
    return top


@njit(**KERNEL)
def _sum(weights):
    total = 0.0
    for y in range(weights.shape[0]):
        total += weights[y]
    return total


@njit(**KERNEL)
def _exp_all(numbers, size):
    for e in range(size):
        numbers[e] = exp(numbers[e])


@njit(**KERNEL)
def _fold_labels(scores, c, work, tops):
    """tops_s = log Σ_y exp(scores[s, y]); the exponentials of all spans are taken in one run."""
    n_spans = scores.shape[0]
    for s in range(n_spans):
        tops[s] = _subtract_top(scores[s], work[s * c : s * c + c])
    _exp_all(work, n_spans * c)
    for s in range(n_spans):
        total = _sum(work[s * c : s * c + c])
        tops[s] = tops[s] + np.log(total) if total > 0.0 else NEG_INF


@njit(**KERNEL)
def _fold(spans, rows, lengths, folded, work, tops):
    """The plane FOLDED of a block."""
    c, size = spans.shape[3], rows.shape[0]
    folded[:] = NEG_INF
    for b in range(size):
        n = lengths[rows[b]]
        for i in range(n):
            _fold_labels(spans[rows[b], i, i:n], c, work, tops)
            for w in range(n - i):
                folded[w, i * size + b] = tops[w]


@njit(**KERNEL)
def _pair_sums(left, right, sums, tops):
    """sums = left + right, and tops keeps the maximum."""
    for e in range(tops.shape[0]):
        sums[e] = left[e] + right[e]
        tops[e] = max(tops[e], sums[e])


@njit(**KERNEL)
def _add_exp(sums, tops, totals):
    for e in range(tops.shape[0]):
        totals[e] += exp(sums[e] - tops[e])


@njit(**KERNEL)
def _close_splits(tops, totals, folded, splits, inside):
    for e in range(tops.shape[0]):
        splits[e] = tops[e] + log(totals[e])
        inside[e] = splits[e] + folded[e]


@njit(**KERNEL)
def fill(planes, n, size, sums, work):
    """The inside recursion of a block of B = size rows, narrow spans first; `math.md`, (4) and (5)."""
    inside = planes[INSIDE]
    inside[0] = planes[FOLDED, 0]
    for w in range(1, n):
        m = (n - w) * size
        tops, totals = work[0, :m], work[1, :m]
        tops[:], totals[:] = LOWEST, 0.0
        for s in range(w):
            after = (s + 1) * size
            _pair_sums(inside[s, :m], inside[w - 1 - s, after : after + m], sums[s * m : s * m + m], tops)
        for s in range(w):
            _add_exp(sums[s * m : s * m + m], tops, totals)
        _close_splits(tops, totals, planes[FOLDED, w, :m], planes[SPLITS, w, :m], inside[w, :m])


@njit(**KERNEL)
def inside(spans, rows, lengths, planes, log_z):
    """log Z of the rows of a block; the planes [3, n, n B] are kept for the gradient."""
    n, size, c = planes.shape[1], rows.shape[0], spans.shape[3]
    _fold(spans, rows, lengths, planes[FOLDED], np.empty(n * c), np.empty(n))
    fill(planes, n, size, np.empty((n * n // 4 + n) * size), np.empty((2, n * size)))
    for b in range(size):
        log_z[rows[b]] = planes[INSIDE, lengths[rows[b]] - 1, b]


@njit(**KERNEL)
def _share_out(amounts, totals, left, right, left_bars, right_bars):
    """Pass derivatives by `totals` on to the pairs they sum, in proportion."""
    for e in range(amounts.shape[0]):
        share = amounts[e] * exp(min(left[e] + right[e] - max(totals[e], LOWEST), 0.0))
        left_bars[e] += share
        right_bars[e] += share


@njit(**KERNEL)
def _below(scores, total, out):
    for y in range(out.shape[0]):
        out[y] = min(scores[y] - total, 0.0)


@njit(**KERNEL)
def _scale(amount, weights, out):
    for y in range(out.shape[0]):
        out[y] = amount * weights[y]


@njit(**KERNEL)
def _share_among_labels(scores, amounts, totals, c, work, found):
    """found[s, y] = amounts_s exp(scores[s, y] - totals_s)."""
    n_spans = scores.shape[0]
    for s in range(n_spans):
        _below(scores[s], max(totals[s], LOWEST), work[s * c : s * c + c])
    _exp_all(work, n_spans * c)
    for s in range(n_spans):
        _scale(amounts[s], work[s * c : s * c + c], found[s])


@njit(**KERNEL)
def outside(spans, rows, lengths, planes, grad, d_spans):
    """∂ Σ grad log Z / ∂ spans, from the widest span to the narrowest; d_spans comes as zeros. `math.md`, (7)."""
    n, size, c = planes.shape[1], rows.shape[0], spans.shape[3]
    chart, bars = planes[INSIDE], np.zeros((n, n * size))
    for b in range(size):
        root = lengths[rows[b]] - 1
        bars[root, b] = grad[rows[b]] if chart[root, b] > NEG_INF else 0.0
    for w in range(n - 1, 0, -1):
        m = (n - w) * size
        for s in range(w):
            after = (s + 1) * size
            _share_out(
                bars[w, :m], planes[SPLITS, w, :m], chart[s, :m], chart[w - 1 - s, after : after + m],
                bars[s, :m], bars[w - 1 - s, after : after + m],
            )  # fmt: skip
    work, amounts, totals = np.empty(n * c), np.empty(n), np.empty(n)
    for b in range(size):
        length = lengths[rows[b]]
        for i in range(length):
            m = length - i
            for w in range(m):
                amounts[w], totals[w] = bars[w, i * size + b], planes[FOLDED, w, i * size + b]
            found = d_spans[rows[b], i, i:length]
            _share_among_labels(spans[rows[b], i, i:length], amounts, totals, c, work, found)


@njit(**EXACT)
def tree_scores(spans, nodes, scores):
    """Σ spans over the nodes of each row's tree; -1 ends a row."""
    for b in range(spans.shape[0]):
        total = 0.0
        for r in range(nodes.shape[1]):
            if nodes[b, r, 0] < 0:
                break
            total += spans[b, nodes[b, r, 0], nodes[b, r, 1] - 1, nodes[b, r, 2]]
        scores[b] = total


@njit(**EXACT)
def add_trees(nodes, grad, d_spans):
    """d_spans += grad at the nodes of each row's tree."""
    for b in range(nodes.shape[0]):
        for r in range(nodes.shape[1]):
            if nodes[b, r, 0] < 0:
                break
            d_spans[b, nodes[b, r, 0], nodes[b, r, 1] - 1, nodes[b, r, 2]] += grad[b]


@njit(**EXACT)
def first_not_a_tree(nodes, lengths, c):
    """The first row whose nodes, parents before children and left before right, are no binary tree; -1 if all are."""
    stack = np.empty((nodes.shape[1] + 1, 2), np.int64)
    for b in range(nodes.shape[0]):
        # Each entry is a span still to be met; the end of a left child, known when it is met, gives its sibling.
        n_nodes, waiting = 2 * lengths[b] - 1, 1
        stack[0, 0], stack[0, 1] = 0, lengths[b]
        for r in range(nodes.shape[1]):
            start, end, label = nodes[b, r, 0], nodes[b, r, 1], nodes[b, r, 2]
            if r >= n_nodes:
                if start >= 0:
                    return b
                continue
            waiting -= 1
            if waiting < 0 or start != stack[waiting, 0] or not 0 <= label < c:
                return b
            if end != stack[waiting, 1]:
                return b
            if end - start == 1:
                continue
            if r + 1 >= n_nodes:
                return b
            split = nodes[b, r + 1, 1]
            if nodes[b, r + 1, 0] != start or not start < split < end:
                return b
            stack[waiting, 0], stack[waiting, 1] = split, end
            stack[waiting + 1, 0], stack[waiting + 1, 1] = start, split
            waiting += 2
        if waiting != 0:
            return b
    return -1


@njit(**EXACT)
def first_not_a_score(spans, lengths):
    """(row, i, j, label) of the first NaN or +inf that is read; (-1, -1, -1, -1) if all are scores."""
    c = spans.shape[3]
    for b in range(spans.shape[0]):
        for i in range(lengths[b]):
            wrong, row = 0, spans[b, i, i : lengths[b]].ravel()
            for e in range(row.shape[0]):
                wrong += not (row[e] < np.inf)
            if wrong:
                for e in range(row.shape[0]):
                    if not (row[e] < np.inf):
                        return b, i, i + e // c, e % c
    return -1, -1, -1, -1
