"""CPU kernels of Eisner's sums in exp space, with products and sums only: log Z, the arcs' posteriors and samples.

Arcs are shifted to a highest weight of 1 in each column, so no span outgrows the number of its trees. What a span
loses by underflow is less than `TINY`, and fewer than `GROWTH`^n ways lead from it to a tree, each with a weight of 1
at most: a row whose total is not far above that is *wide*, and done again in log space. Real -inf makes exact zeros.

A plane [w, i] is for the spans (i, i + w): sums over splits run along rows, all spans of a width side by side.
"""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.arrays import NEG_INF
from trelliswork.runtime.compilation import EXACT, FAST, kernel
from trelliswork.runtime.kernel_math import add_products, exp, share_products
from trelliswork.structures.arc_kernels import STEP, highest_heads, highest_root, read_direction
from trelliswork.structures.projective import kernels

TINY, MARGIN = 1e-305, 1e20
GROWTH = 6.75  # there are fewer than 6.75^n projective trees over n words
LONGEST = 250  # words, so that GROWTH^n stays far from overflow
FORTH, BACK, JOINED, OPEN_RIGHT, OPEN_LEFT, RIGHT, LEFT = range(7)
BAR_OPEN_RIGHT, BAR_OPEN_LEFT, BAR_RIGHT, BAR_LEFT = range(4)


@kernel(FAST)
def _weights(arcs, n, low, tops, planes, row):
    """exp of the arcs between nodes low..n, shifted by columns, as planes: forth i -> i + w and back i + w -> i."""
    highest_heads(arcs, n, low, tops)
    forth, back = planes[FORTH], planes[BACK]
    for h in range(low, n + 1):
        for m in range(n + 1):
            row[m] = exp(arcs[h, m] - tops[m])
        for m in range(low, h):
            back[h - m, m - low] = row[m]
        for m in range(h + 1, n + 1):
            forth[m - h, h - low] = row[m]


@kernel(FAST)
def _inside(n_nodes, planes):
    """Compute the inside planes: `math.md`, equations (2) to (4), narrow spans first."""
    forth, back, joined, right, left = planes[FORTH], planes[BACK], planes[JOINED], planes[RIGHT], planes[LEFT]
    open_right, open_left = planes[OPEN_RIGHT], planes[OPEN_LEFT]
    right[0, :n_nodes] = 1.0
    left[0, :n_nodes] = 1.0
    for w in range(1, n_nodes):
        size = n_nodes - w
        joined[w, :size] = 0.0
        right[w, :size] = 0.0
        left[w, :size] = 0.0
        for s in range(w):
            add_products(joined[w], 1.0, right[s], left[w - s - 1, s + 1 :], size)
        for i in range(size):
            open_right[w, i] = joined[w, i] * forth[w, i]
            open_left[w, i] = joined[w, i] * back[w, i]
        for s in range(w):
            add_products(right[w], 1.0, open_right[s + 1], right[w - s - 1, s + 1 :], size)
            add_products(left[w], 1.0, left[s], open_left[w - s, s:], size)


@kernel(FAST)
def _outside(n_nodes, planes, bars, bar_joined):
    """Compute derivatives of the total by everything in the chart, from the widest span to the narrowest."""
    forth, back, right, left = planes[FORTH], planes[BACK], planes[RIGHT], planes[LEFT]
    open_right, open_left = planes[OPEN_RIGHT], planes[OPEN_LEFT]
    bar_open_right, bar_open_left = bars[BAR_OPEN_RIGHT], bars[BAR_OPEN_LEFT]
    bar_right, bar_left = bars[BAR_RIGHT], bars[BAR_LEFT]
    for w in range(n_nodes - 1, 0, -1):
        size = n_nodes - w
        for s in range(1, w + 1):
            one, other, bar_other = open_right[s], right[w - s, s:], bar_right[w - s, s:]
            share_products(1.0, bar_right[w], one, other, bar_open_right[s], bar_other, size)
        for s in range(w):
            one, other, bar_other = left[s], open_left[w - s, s:], bar_open_left[w - s, s:]
            share_products(1.0, bar_left[w], one, other, bar_left[s], bar_other, size)
        for i in range(size):
            bar_joined[i] = bar_open_right[w, i] * forth[w, i] + bar_open_left[w, i] * back[w, i]
        for s in range(w):
            one, other, bar_other = right[s], left[w - s - 1, s + 1 :], bar_left[w - s - 1, s + 1 :]
            share_products(1.0, bar_joined, one, other, bar_right[s], bar_other, size)


@kernel(EXACT)
def _shifts(arcs, n, low, tops, roots):
    """The sum of all shifts of one tree; `roots` gets the weight of each root arc of single-root trees."""
    shifts = 0.0
    for m in range(1, n + 1):
        shifts += tops[m]
    if low == 0:
        return shifts
    root_top = highest_root(arcs, n, tops)
    for r in range(n):
        roots[r] = exp(arcs[0, r + 1] - tops[r + 1] - root_top) if root_top > NEG_INF else 0.0
    return shifts + root_top


@kernel(EXACT)
def _total(n, low, planes, roots):
    """Return Z in shifted weights."""
    if low == 0:
        return planes[RIGHT, n, 0]
    z = planes[RIGHT, 0, 0] * 0.0  # 0 of the planes' type: numbers that move are complex
    for r in range(n):
        z += roots[r] * planes[LEFT, r, 0] * planes[RIGHT, n - 1 - r, r]
    return z


@kernel(EXACT)
def _seed(n, low, planes, roots, bars):
    """Compute derivatives of the total by what it is made of."""
    bars[:, : n + 1 - low] = 0.0
    if low == 0:
        bars[BAR_RIGHT, n, 0] = 1.0
        return
    for r in range(n):
        bars[BAR_LEFT, r, 0] = roots[r] * planes[RIGHT, n - 1 - r, r]
        bars[BAR_RIGHT, n - 1 - r, r] += roots[r] * planes[LEFT, r, 0]


@kernel(EXACT)
def _posteriors(n, low, planes, roots, bars, z, posteriors):
    """Compute the derivative by each arc's weight, times its weight, over Z."""
    for r in range(n * low):
        posteriors[0, r + 1] = roots[r] * planes[LEFT, r, 0] * planes[RIGHT, n - 1 - r, r] / z
    for w in range(1, n + 1 - low):
        for i in range(n + 1 - low - w):
            h, m = i + low, i + low + w
            posteriors[h, m] = bars[BAR_OPEN_RIGHT, w, i] * planes[OPEN_RIGHT, w, i] / z
            posteriors[m, h] = bars[BAR_OPEN_LEFT, w, i] * planes[OPEN_LEFT, w, i] / z


@kernel(EXACT)
def _inside_row(arcs, n, low, work):
    """Return (Z in shifted weights, the sum of the shifts) and the planes of one row; Z is 0 if it may not be exact."""
    planes, tops, row, roots = work
    if n > LONGEST:
        return 0.0, 0.0
    _weights(arcs, n, low, tops, planes, row)
    _inside(n + 1 - low, planes)
    shifts, z = _shifts(arcs, n, low, tops, roots), _total(n, low, planes, roots)
    return (z if z > TINY * GROWTH**n * MARGIN else 0.0), shifts  # else what underflowed could show in a digit


@kernel(EXACT)
def _work(size):
    return np.empty((7, size, size)), np.empty(size), np.empty(size), np.empty(size)


@kernel(EXACT)
def inside_outside(first, last, arcs, lengths, single_root, log_z, marginals):
    """Compute log Z of rows first..last-1 and, unless that array is empty, the arcs' posteriors.

    Args:
        first: the first row.
        last: the row behind the last.
        arcs: scores of arcs, float64 [batch, n+1, n+1], indexed [head, dependent].
        lengths: words of each row, int64 [batch].
        single_root: whether a single word may depend on the root.
        log_z: float64 [batch], filled in.
        marginals: probabilities of arcs, float64 [batch, n+1, n+1], filled in; empty for none.
    """
    size, low = arcs.shape[1], 1 if single_root else 0
    work, bars = _work(size), np.empty((4, size, size))
    planes, _, row, roots = work
    room = kernels.workspace(0 * size)  # made when a row is wide
    for b in range(first, last):
        n = lengths[b]
        posteriors = marginals[b] if marginals.shape[0] else marginals.reshape(0, 0)
        z, shifts = _inside_row(arcs[b], n, low, work)
        if z == 0.0:
            if room[0].shape[1] == 0:
                room = kernels.workspace(size)
            log_z[b] = kernels.log_row(arcs[b], n, low, room, posteriors)
            continue
        log_z[b] = np.log(z) + shifts
        if marginals.shape[0]:
            _seed(n, low, planes, roots, bars)
            _outside(n + 1 - low, planes, bars, row)
            _posteriors(n, low, planes, roots, bars, z, posteriors)
            for h in range(n + 1):
                for m in range(n + 1):
                    posteriors[h, m] = min(posteriors[h, m], 1.0)


@kernel(EXACT)
def _lay_out(planes, n, low, roots, chart):
    """Write the planes as a chart of `kernels.py`, and the weight of each root word with what is on its left."""
    for w in range(n + 1 - low):
        for i in range(low, n + 1 - w):
            j, at = i + w, i - low
            chart[kernels.RIGHT, i, j] = chart[kernels.RIGHT_T, j, i] = planes[RIGHT, w, at]
            chart[kernels.LEFT, i, j] = chart[kernels.LEFT_T, j, i] = planes[LEFT, w, at]
            chart[kernels.OPEN_RIGHT, i, j] = planes[OPEN_RIGHT, w, at]
            chart[kernels.OPEN_LEFT_T, j, i] = planes[OPEN_LEFT, w, at]
    for r in range(n * low):
        roots[r] *= planes[LEFT, r, 0]


@kernel(EXACT)
def sample_trees(first, last, arcs, lengths, single_root, seeds, heads):
    """Draw exact, independent samples: O(n³) once a row, then O(n²) each at most; in log space for wide rows.

    Args:
        first: the first row.
        last: the row behind the last.
        arcs: scores of arcs, float64 [batch, n+1, n+1], indexed [head, dependent].
        lengths: words of each row, int64 [batch].
        single_root: whether a single word may depend on the root.
        seeds: a seed for each sample, int64 [samples, batch].
        heads: int64 [samples, batch, n], filled in.
    """
    low, work = 1 if single_root else 0, _work(arcs.shape[1])
    chart, log_roots, stack, sums, state = kernels.workspace(arcs.shape[1])
    for b in range(first, last):
        n, (planes, _, _, roots) = lengths[b], work
        z, _ = _inside_row(arcs[b], n, low, work)
        if z > 0.0:
            _lay_out(planes, n, low, roots, chart)
        else:
            kernels.fill(arcs[b], n, low, False, chart, log_roots, sums)
        for s in range(seeds.shape[0]):
            state[0] = np.uint64(seeds[s, b])
            if z > 0.0:
                kernels.trace(n, low, kernels.drawn, chart, roots, stack, sums, state, heads[s, b])
            else:
                kernels.trace(n, low, kernels.drawn_in_log_space, chart, log_roots, stack, sums, state, heads[s, b])


@kernel(FAST)
def _move(along, n, low, planes, roots):
    """Turn weights into dual numbers: each changes by itself times its direction."""
    for w in range(1, n + 1 - low):
        for i in range(n + 1 - low - w):
            h, m = i + low, i + low + w
            planes[FORTH, w, i] *= complex(1.0, along[h, m])
            planes[BACK, w, i] *= complex(1.0, along[m, h])
    for r in range(n * low):
        roots[r] *= complex(1.0, along[0, r + 1])


@kernel(EXACT)
def posterior_changes(first, last, arcs, lengths, single_root, log_z, directions, changes, done):
    """Fill in the changes of posteriors along directions, by the same recursion on dual numbers; see `arc_solver.py`.

    `done` is False for rows too wide for exp space.

    Args:
        first: the first row.
        last: the row behind the last.
        arcs: scores of arcs, float64 [batch, n+1, n+1], indexed [head, dependent].
        lengths: words of each row, int64 [batch].
        single_root: whether a single word may depend on the root.
        log_z: log Z of each row, float64 [batch].
        directions: how the scores move, float64 [batch, n+1, n+1].
        changes: how the probabilities change, float64 [batch, n+1, n+1], filled in.
        done: False for rows too wide for exp space, bool [batch], filled in.
    """
    size, low = arcs.shape[1], 1 if single_root else 0
    planes, bars = np.empty((7, size, size), np.complex128), np.empty((4, size, size), np.complex128)
    tops, row, roots = np.empty(size), np.empty(size), np.empty(size, np.complex128)
    along, posteriors, bar_joined = np.empty((size, size)), np.zeros((size, size), np.complex128), np.empty_like(roots)
    for b in range(first, last):
        n = lengths[b]
        done[b] = log_z[b] == NEG_INF or n <= LONGEST
        if log_z[b] == NEG_INF or n > LONGEST:
            continue
        extent = read_direction(arcs[b], n, directions[b], along)
        _weights(arcs[b], n, low, tops, planes, row)
        _shifts(arcs[b], n, low, tops, roots)
        _move(along, n, low, planes, roots)
        _inside(n + 1 - low, planes)
        z = _total(n, low, planes, roots)
        done[b] = z.real > TINY * GROWTH**n * MARGIN / STEP
        if done[b]:
            _seed(n, low, planes, roots, bars)
            _outside(n + 1 - low, planes, bars, bar_joined)
            _posteriors(n, low, planes, roots, bars, z, posteriors)
            for h in range(n + 1):
                for m in range(1, n + 1):
                    changes[b, h, m] = posteriors[h, m].imag / STEP * extent if h != m else 0.0
