"""CPU kernels of Eisner's algorithm in log space: the best tree, samples, and sums of rows too wide for exp space.

A chart has planes for C→ and C←, both as [i, j] and, transposed, as [j, i]; for I→ as [i, j] and I← as [j, i]; and for
what an arc joins. So each sum over splits runs along two rows. Nodes low..n take part; low is 1 for single-root trees,
whose root joins at the end, else 0.
"""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.arrays import NEG_INF
from trelliswork.runtime.compilation import EXACT, FAST, kernel
from trelliswork.runtime.kernel_math import exp, higher, pick
from trelliswork.runtime.kernel_random import draw, uniform

RIGHT, RIGHT_T, LEFT, LEFT_T, OPEN_RIGHT, OPEN_LEFT_T, JOINED = range(7)


@kernel(FAST, inline=True)
def _add_pairs(left, right, size, sums):
    """Return sums_k = left_k + right_k; their maximum."""
    top = NEG_INF
    for k in range(size):
        sums[k] = left[k] + right[k]
    for k in range(size):
        top = higher(top, sums[k])
    return top


@kernel(FAST, inline=True)
def _combine(left, right, size, maximum, sums):
    """Return log Σ_k exp(left_k + right_k), or the maximum."""
    top = _add_pairs(left, right, size, sums)
    if maximum or top == NEG_INF:
        return top
    total = 0.0
    for k in range(size):
        total += exp(sums[k] - top)
    return top + np.log(total)


@kernel(FAST)
def _fill(arcs, n, low, maximum, chart, sums):
    """Compute the inside recursion, narrow spans first; `math.md`, equations (2) to (4)."""
    right, right_t, left, left_t = chart[RIGHT], chart[RIGHT_T], chart[LEFT], chart[LEFT_T]
    open_right, open_left_t = chart[OPEN_RIGHT], chart[OPEN_LEFT_T]
    for i in range(low, n + 1):
        right[i, i] = right_t[i, i] = left[i, i] = left_t[i, i] = 0.0
    for w in range(1, n - low + 1):
        for i in range(low, n - w + 1):
            j = i + w
            joined = _combine(right[i, i:], left_t[j, i + 1 :], w, maximum, sums)
            chart[JOINED, i, j] = joined
            open_right[i, j] = joined + arcs[i, j]
            open_left_t[j, i] = joined + arcs[j, i]
            right[i, j] = right_t[j, i] = _combine(open_right[i, i + 1 :], right_t[j, i + 1 :], w, maximum, sums)
            left[i, j] = left_t[j, i] = _combine(left[i, i:], open_left_t[j, i:], w, maximum, sums)


@kernel(EXACT)
def fill(arcs, n, low, maximum, chart, roots, sums):
    """Return log Z or the best score; `roots` gets the weight of each root word of single-root trees.

    Args:
        arcs: scores of one row, float64 [n+1, n+1].
        n: words of the row.
        low: the first node of the chart: 0, or 1 without the root.
        maximum: whether the best tree counts alone, instead of the sum over all.
        chart: float64 [7, n+1, n+1], filled in.
        roots: weight of each root word, float64 [n+1], filled in.
        sums: room for as many numbers as there are nodes.
    """
    _fill(arcs, n, low, maximum, chart, sums)
    if low == 0:
        return chart[RIGHT, 0, n]
    for r in range(1, n + 1):
        roots[r - 1] = chart[LEFT, 1, r] + arcs[0, r]
    return _combine(roots, chart[RIGHT_T, n, 1:], n, maximum, sums)


@kernel(FAST, inline=True)
def _share_out(amount, total, left, right, size, left_bar, right_bar):
    """Pass a derivative by `total` on to the pairs it sums, in proportion."""
    if amount == 0.0 or total == NEG_INF:
        return
    for k in range(size):
        share = amount * exp(left[k] + right[k] - total)
        left_bar[k] += share
        right_bar[k] += share


@kernel(FAST)
def _outside(arcs, n, low, chart, bars, posteriors):
    """From the widest span to the narrowest: what each part of the chart contributes to log Z."""
    right, right_t, left, left_t = chart[RIGHT], chart[RIGHT_T], chart[LEFT], chart[LEFT_T]
    open_right, open_left_t = chart[OPEN_RIGHT], chart[OPEN_LEFT_T]
    for w in range(n - low, 0, -1):
        for i in range(low, n - w + 1):
            j = i + w
            amount = bars[RIGHT, i, j] + bars[RIGHT_T, j, i]
            _share_out(
                amount, right[i, j], open_right[i, i + 1 :], right_t[j, i + 1 :], w,
                bars[OPEN_RIGHT, i, i + 1 :], bars[RIGHT_T, j, i + 1 :],
            )  # fmt: skip
            amount = bars[LEFT, i, j] + bars[LEFT_T, j, i]
            _share_out(
                amount, left[i, j], left[i, i:], open_left_t[j, i:], w, bars[LEFT, i, i:], bars[OPEN_LEFT_T, j, i:]
            )
            forth, back = bars[OPEN_RIGHT, i, j], bars[OPEN_LEFT_T, j, i]
            if i != j:
                posteriors[i, j] = min(forth, 1.0)
                posteriors[j, i] = min(back, 1.0)
            _share_out(
                forth + back, chart[JOINED, i, j], right[i, i:], left_t[j, i + 1 :], w,
                bars[RIGHT, i, i:], bars[LEFT_T, j, i + 1 :],
            )  # fmt: skip


@kernel(EXACT)
def log_row(arcs, n, low, room, posteriors):
    """Return log Z of one row and, unless that array is empty, the arcs' posteriors, whatever the range of scores.

    Args:
        arcs: scores of one row, float64 [n+1, n+1].
        n: words of the row.
        low: the first node of the chart: 0, or 1 without the root.
        room: arrays of `workspace`.
        posteriors: float64 [n+1, n+1], filled in; empty for none.
    """
    chart, roots, _, sums, _ = room
    log_z = fill(arcs, n, low, False, chart, roots, sums)
    if posteriors.shape[0] == 0 or log_z == NEG_INF:
        return log_z
    bars = np.zeros(chart.shape)
    if low == 1:
        root_bar = posteriors[0, 1:]
        _share_out(1.0, log_z, roots, chart[RIGHT_T, n, 1:], n, root_bar, bars[RIGHT_T, n, 1:])
        for r in range(1, n + 1):
            bars[LEFT, 1, r] = posteriors[0, r]
    else:
        bars[RIGHT, 0, n] = 1.0
    _outside(arcs, n, low, chart, bars, posteriors)
    return log_z


@kernel(EXACT)
def best(left, right, size, sums, state):
    """The split of the best sum, the first among ties.

    Args:
        left: weights of the left parts.
        right: weights of the right parts.
        size: number of splits.
        sums: room for as many numbers as there are nodes.
        state: state of the random generator, changed in place.
    """
    top, k = _add_pairs(left, right, size, sums), 0
    while k < size - 1 and sums[k] < top:
        k += 1
    return k


@kernel(FAST)
def drawn(left, right, size, sums, state):
    """Return a split in proportion to its weight.

    Args:
        left: weights of the left parts.
        right: weights of the right parts.
        size: number of splits.
        sums: room for as many numbers as there are nodes.
        state: state of the random generator, changed in place.
    """
    total = 0.0
    for k in range(size):
        sums[k] = left[k] * right[k]
        total += sums[k]
    return pick(sums, size, total * uniform(state))


@kernel(EXACT)
def drawn_in_log_space(left, right, size, sums, state):
    """Return a split in proportion to the exp of its score.

    Args:
        left: weights of the left parts.
        right: weights of the right parts.
        size: number of splits.
        sums: room for as many numbers as there are nodes.
        state: state of the random generator, changed in place.
    """
    _add_pairs(left, right, size, sums)
    return draw(sums, size, state)


@kernel(EXACT)
def _push(stack, size, i, j, plane):
    if i != j:
        stack[size, 0], stack[size, 1], stack[size, 2] = i, j, plane
        size += 1
    return size


@kernel(EXACT)
def trace(n, low, choose, chart, roots, stack, sums, state, heads):
    """A tree from the chart, from the widest span to the narrowest: at each one split, which `choose` chooses.

    Args:
        n: words of the row.
        low: the first node of the chart: 0, or 1 without the root.
        choose: which function chooses a split: `best`, `drawn` or `drawn_in_log_space`.
        chart: halves and triangles of the spans, float64 [7, n+1, n+1].
        roots: weight of each root word, float64 [n+1].
        stack: room for spans that are still to be split.
        sums: room for as many numbers as there are nodes.
        state: state of the random generator, changed in place.
        heads: head of each word, int64 [n], filled in.
    """
    right, right_t, left, left_t = chart[RIGHT], chart[RIGHT_T], chart[LEFT], chart[LEFT_T]
    open_right, open_left_t = chart[OPEN_RIGHT], chart[OPEN_LEFT_T]
    waiting = 0
    if low == 0:
        waiting = _push(stack, waiting, 0, n, RIGHT)
    else:
        root = 1 + choose(roots, right_t[n, 1:], n, sums, state)
        heads[root - 1] = 0
        waiting = _push(stack, waiting, 1, root, LEFT)
        waiting = _push(stack, waiting, root, n, RIGHT)
    while waiting > 0:
        waiting -= 1
        i, j, plane = stack[waiting, 0], stack[waiting, 1], stack[waiting, 2]
        if plane == RIGHT:
            word = i + 1 + choose(open_right[i, i + 1 :], right_t[j, i + 1 :], j - i, sums, state)
            heads[word - 1] = i
            waiting = _push(stack, waiting, word, j, RIGHT)
            j = word
        else:
            word = i + choose(left[i, i:], open_left_t[j, i:], j - i, sums, state)
            heads[word - 1] = j
            waiting = _push(stack, waiting, i, word, LEFT)
            i = word
        split = i + choose(right[i, i:], left_t[j, i + 1 :], j - i, sums, state)
        waiting = _push(stack, waiting, i, split, RIGHT)
        waiting = _push(stack, waiting, split + 1, j, LEFT)


@kernel(EXACT)
def workspace(size):
    """Return a chart and what goes with it.

    Args:
        size: nodes of the longest row.
    """
    chart, roots, stack = np.empty((7, size, size)), np.empty(size), np.empty((4 * size, 3), np.int64)
    return chart, roots, stack, np.empty(size), np.zeros(1, np.uint64)


@kernel(EXACT)
def best_trees(first, last, arcs, lengths, single_root, heads, possible):
    """Compute the best tree of each row.

    Args:
        first: the first row.
        last: the row behind the last.
        arcs: scores of arcs, float64 [batch, n+1, n+1], indexed [head, dependent].
        lengths: words of each row, int64 [batch].
        single_root: whether a single word may depend on the root.
        heads: head of each word, int64 [batch, n], filled in.
        possible: whether a row has a tree, bool [batch], filled in.
    """
    low, (chart, roots, stack, sums, state) = 1 if single_root else 0, workspace(arcs.shape[1])
    for b in range(first, last):
        possible[b] = fill(arcs[b], lengths[b], low, True, chart, roots, sums) > NEG_INF
        if possible[b]:
            trace(lengths[b], low, best, chart, roots, stack, sums, state, heads[b])
