"""CPU kernels of the matrix-tree theorem: elimination without subtraction, in exp space, and its derivative.

Arcs are shifted to a highest weight of 1 in each column. A weight
that becomes smaller than `SMALLEST` although its arc is possible makes the row *wide*: it is done again in log space
(`log_kernels.py`). Real -inf makes exact zeros and never slows a row down. `math.md` has the equations.

In a work matrix A[h, m], nodes low..n are eliminated from n downwards; low is 0 (the root stays) or, for single-root
trees, 1 (a word stays). The row and column of an eliminated node keep what they held when it was eliminated.

Numbers may move: beside each array of `value` one in `change` then holds how it changes along a direction, by the rules
of differentiation. Both are separate arrays, so that vector registers hold numbers of one kind. Unless `moving`,
`change` is not touched.
"""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.arrays import NEG_INF
from trelliswork.runtime.compilation import EXACT, FAST, kernel
from trelliswork.runtime.kernel_math import exp
from trelliswork.structures.arc_kernels import STEP, highest_heads, highest_root, read_direction
from trelliswork.structures.spanning.log_kernels import log_row, swap

SMALLEST, LARGEST = 1e-140, 1e140
FINE, IMPOSSIBLE, WIDE = 0, 1, 2


@kernel(FAST)
def exp_weights(arcs, n, single_root, work, tops):
    """Return exp of the arcs, shifted by columns; (sum of all shifts, whether a possible arc has become too small).

    The root word of a single-root tree does not use its column: its root arc makes up for the shift.

    Args:
        arcs: scores of one row, float64 [n+1, n+1].
        n: words of the row.
        single_root: whether a single word may depend on the root.
        work: float64 [n+1, n+1], filled in.
        tops: highest score of each column, float64 [n+1], filled in.
    """
    highest_heads(arcs, n, 1 if single_root else 0, tops)
    root_top, too_small = highest_root(arcs, n, tops) if single_root else 0.0, 0
    if root_top == NEG_INF:  # no word may be the root: all weights are exactly 0, and nothing was lost
        work[: n + 1] = 0.0
        return 0.0, False
    shifts = root_top
    for m in range(1, n + 1):
        shifts += tops[m]
    for h in range(n + 1):
        for m in range(1, n + 1):
            weight = exp(arcs[h, m] - tops[m] - (root_top if h == 0 else 0.0))
            too_small += weight < SMALLEST and arcs[h, m] > NEG_INF
            work[h, m] = weight
    return shifts, too_small > 0


@kernel(FAST, inline=True)
def _head_weight(work, low, alive, m):
    total = 0.0
    for h in range(low, alive + 1):
        if h != m:
            total += work[h, m]
    return total


@kernel(FAST, inline=True)
def _add_around(row, through, factor, size):
    """Add factor * through to the row; return how many possible products are too small."""
    too_small = 0
    for m in range(1, size):
        product = factor * through[m]
        too_small += (product < SMALLEST) & (through[m] > 0.0)
        row[m] += product
    return too_small


@kernel(FAST, inline=True)
def _add_two(row, factor, one, other_factor, other, size):
    """row += factor * one + other_factor * other, from 1: how products change."""
    for m in range(1, size):
        row[m] += factor * one[m] + other_factor * other[m]


@kernel(FAST)
def eliminate(value, change, moving, n, low, order):
    """A[h, m] += A[h, v] A[v, m] / d_v for v = n..low+1; (status, Σ log d_v).

    Args:
        value: matrix, weights and gradient.
        change: how they move.
        moving: whether they move.
        n: words of the row.
        low: the first node of the chart: 0, or 1 without the root.
        order: the words in the order of their elimination, int64 [n+1], changed in place.
    """
    work, d, moved, moved_d = value[0], value[3], change[0], change[3]
    log_det, too_small = 0.0, 0
    for v in range(n, low, -1):
        d[v] = _head_weight(work, low, v, v)
        if d[v] == 0.0 and low == 1:  # v has no head left: it stays, if any, as the root word; take another
            for other in range(v - 1, low - 1, -1):
                if _head_weight(work, low, v, other) > 0.0:
                    order[v], order[other] = order[other], order[v]
                    swap(work, n, v, other)
                    if moving:
                        swap(moved, n, v, other)
                    d[v] = _head_weight(work, low, v, v)
                    break
        if d[v] == 0.0:
            return IMPOSSIBLE, NEG_INF
        inverse = 1.0 / d[v]
        if moving:
            moved_d[v] = _head_weight(moved, low, v, v)
        for h in range(low, v):
            if work[h, v] > 0.0:
                factor = work[h, v] * inverse
                too_small += _add_around(work[h], work[v], factor, v)
                work[h, h] = 0.0
                if moving:
                    moved_factor = (moved[h, v] - factor * moved_d[v]) * inverse
                    _add_two(moved[h], moved_factor, work[v], factor, moved[v], v)
                    moved[h, h] = 0.0
        log_det += np.log(d[v])
    return (WIDE if too_small else FINE), log_det


@kernel(EXACT)
def _stationary(value, change, moving, n):
    """Return π_1 = 1, π_v = Σ_{m<v} π_m A[v, m] / d_v, and Σ_r ρ_r π_r; its change; whether the range was too large."""
    (work, _, _, d, pi, _, _, _), (moved, _, _, moved_d, moved_pi, _, _, _) = value, change
    pi[1] = 1.0
    wide = False
    for v in range(2, n + 1):
        total, moved_total, inverse = 0.0, 0.0, 1.0 / d[v]
        for m in range(1, v):
            if work[v, m] > 0.0 and pi[m] > 0.0:
                part = pi[m] * work[v, m] * inverse
                wide |= part < SMALLEST
                total += part
                if moving:
                    moved_total += (moved_pi[m] * work[v, m] + pi[m] * moved[v, m]) * inverse
        wide |= total > LARGEST
        pi[v] = total
        if moving:
            moved_pi[v] = moved_total - total * moved_d[v] * inverse
    root, moved_root = 0.0, 0.0
    for v in range(1, n + 1):
        root += work[0, v] * pi[v]
        if moving:
            moved_root += moved[0, v] * pi[v] + work[0, v] * moved_pi[v]
    return root, moved_root, wide


@kernel(EXACT)
def _root_gradients(value, change, moving, n, root, moved_root):
    """Compute derivatives of log Σ_r ρ_r π_r: by ρ into row 0; by π into pi_bar, which the elimination passes on."""
    work, _, gradient, d, pi, pi_bar, _, _ = value
    moved, _, moved_gradient, moved_d, moved_pi, moved_bar, _, _ = change
    for v in range(1, n + 1):
        gradient[0, v] = pi[v] / root
        pi_bar[v] = work[0, v] / root
        if moving:
            moved_gradient[0, v] = (moved_pi[v] - gradient[0, v] * moved_root) / root
            moved_bar[v] = (moved[0, v] - pi_bar[v] * moved_root) / root
    for v in range(n, 1, -1):
        factor = pi_bar[v] / d[v]
        moved_factor = (moved_bar[v] - factor * moved_d[v]) / d[v] if moving else 0.0
        for m in range(1, v):
            pi_bar[m] += factor * work[v, m]
            if moving:
                moved_bar[m] += moved_factor * work[v, m] + factor * moved[v, m]


@kernel(FAST, inline=True)
def _dot_and_add(row, through, factor, total, size):
    """Σ_m row_m through_m, and total += factor * row, from 1.

    With a start that is given, m could be negative, which AVX-512 gathers entries for.
    """
    dot = 0.0
    for m in range(1, size):
        dot += row[m] * through[m]
        total[m] += factor * row[m]
    return dot


@kernel(FAST)
def _gradients(value, change, moving, n, low, root, moved_root):
    """Compute gradient[h, m] = ∂ log Z / ∂ A[h, m], from the smallest graph to the whole; 0 where A is 0."""
    work, _, gradient, d, pi, pi_bar, sums, dots = value
    moved, _, moved_gradient, moved_d, moved_pi, moved_bar, moved_sums, moved_dots = change
    if low == 1:
        _root_gradients(value, change, moving, n, root, moved_root)
    for v in range(low + 1, n + 1):
        inverse = 1.0 / d[v]
        sums[:v] = 0.0
        if moving:
            moved_sums[:v] = 0.0
        for h in range(low, v):
            if work[h, v] > 0.0:
                factor = work[h, v] * inverse
                dots[h] = _dot_and_add(gradient[h], work[v], factor, sums, v)
                if moving:
                    moved_factor = (moved[h, v] - factor * moved_d[v]) * inverse
                    moved_dots[h] = _dot_and_add(moved_gradient[h], work[v], factor, moved_sums, v)
                    moved_dots[h] += _dot_and_add(gradient[h], moved[v], moved_factor, moved_sums, v)
        through, moved_through = 0.0, 0.0  # Σ_{h,m} ∂ log Z / ∂ A'[h, m] A[h, v] A[v, m] / d_v
        for m in range(1, v):
            through += sums[m] * work[v, m]
            if moving:
                moved_through += moved_sums[m] * work[v, m] + sums[m] * moved[v, m]
        rest = (1.0 - through - pi_bar[v] * pi[v]) * inverse
        moved_rest = 0.0
        if moving:
            moved_rest = -(moved_through + moved_bar[v] * pi[v] + pi_bar[v] * moved_pi[v] + rest * moved_d[v])
        for h in range(low, v):
            gradient[h, v] = rest + dots[h] * inverse if work[h, v] > 0.0 else 0.0
            if moving:
                moves = (moved_rest + moved_dots[h] - dots[h] * inverse * moved_d[v]) * inverse
                moved_gradient[h, v] = moves if work[h, v] > 0.0 else 0.0
        factor = pi_bar[v] * inverse
        for m in range(1, v):
            gradient[v, m] = sums[m] + factor * pi[m] if work[v, m] > 0.0 else 0.0
        if moving:
            moved_factor = (moved_bar[v] - factor * moved_d[v]) * inverse
            for m in range(1, v):
                moves = moved_sums[m] + moved_factor * pi[m] + factor * moved_pi[m]
                moved_gradient[v, m] = moves if work[v, m] > 0.0 else 0.0


@kernel(EXACT)
def room_of(size):
    """Return a work matrix, the weights it starts from, a gradient; d, π, its derivative, sums and products of a step.

    Arrays of their own: views of one array would keep loops out of vector registers.
    """
    square, line = np.zeros((size, size)), np.zeros(size)
    lines = (line, line.copy(), line.copy(), line.copy(), line.copy())
    return (square, square.copy(), square.copy(), *lines)


@kernel(EXACT)
def start_from(numbers, order):
    """Keep the weights that the elimination starts from, entry by entry: a whole array compiles three seconds."""
    work, weights, _, _, pi, pi_bar, _, _ = numbers
    for i in range(len(order)):
        order[i], pi[i], pi_bar[i] = i, 0.0, 0.0
        for j in range(len(order)):
            weights[i, j] = work[i, j]


@kernel(EXACT)
def matrix_tree(first, last, arcs, lengths, single_root, log_z, marginals):
    """Compute log Z of rows first..last-1 and, unless that array is empty, the arcs' posteriors.

    One elimination gives both. Wide rows are done again in log space.

    Args:
        first: the first row.
        last: the row behind the last.
        arcs: scores of arcs, float64 [batch, n+1, n+1], indexed [head, dependent].
        lengths: words of each row, int64 [batch].
        single_root: whether a single word may depend on the root.
        log_z: float64 [batch], filled in.
        marginals: probabilities of arcs, float64 [batch, n+1, n+1], filled in; empty for none.
    """  # [S2, matrix-tree; S2, matrix-tree marginals]
    low = 1 if single_root else 0
    value, tops, order = room_of(arcs.shape[1]), np.empty(arcs.shape[1]), np.empty(arcs.shape[1], np.int64)
    work, weights, gradient = value[:3]
    for b in range(first, last):
        n, root = lengths[b], 1.0
        work[:] = 0.0
        shifts, wide = exp_weights(arcs[b], n, single_root, work, tops)
        start_from(value, order)
        status, log_det = eliminate(value, value, False, n, low, order)
        if status != IMPOSSIBLE and single_root:
            root, _, strained = _stationary(value, value, False, n)
            wide |= strained
        log_z[b] = NEG_INF
        if wide or status == WIDE:
            log_z[b] = log_row(arcs[b], n, low, marginals[b] if marginals.shape[0] else marginals.reshape(0, 0))
        elif status != IMPOSSIBLE and root > 0.0:
            log_z[b] = log_det + np.log(root) + shifts
            if marginals.shape[0]:
                _gradients(value, value, False, n, low, root, 0.0)
                _posteriors(gradient, weights, n, order, marginals[b])


@kernel(EXACT)
def _posteriors(gradient, weights, n, order, marginals):
    """gradient times weight, each word back in its place; rounding must not pass 0 or 1."""
    for i in range(n + 1):
        for j in range(1, n + 1):
            h, m = order[i], order[j]
            if h != m:
                marginals[h, m] = min(max(gradient[i, j] * weights[h, m], 0.0), 1.0)


@kernel(EXACT)
def posterior_changes(first, last, arcs, lengths, single_root, log_z, directions, changes, done):
    """Set the changes of posteriors along directions, by the same elimination of numbers that move; `arc_solver.py`.

    `done` is False for wide rows.

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
    value, change = room_of(size), room_of(size)
    tops, along, order = np.empty(size), np.empty((size, size)), np.empty(size, np.int64)
    (work, weights, gradient), (moved, moved_weights, moved_gradient) = value[:3], change[:3]
    for b in range(first, last):
        n, root, moved_root, strained = lengths[b], 1.0, 0.0, False
        done[b] = log_z[b] == NEG_INF
        if done[b]:
            continue
        work[:] = 0.0
        moved[:] = 0.0
        _, wide = exp_weights(arcs[b], n, single_root, work, tops)
        extent = read_direction(arcs[b], n, directions[b], along)
        for h in range(n + 1):
            for m in range(n + 1):
                moved[h, m] = work[h, m] * along[h, m]
        start_from(value, order)
        start_from(change, order)
        status, _ = eliminate(value, change, True, n, low, order)
        if single_root:
            root, moved_root, strained = _stationary(value, change, True, n)
        done[b] = status == FINE and not wide and not strained
        if done[b]:
            _gradients(value, change, True, n, low, root, moved_root)
            for i in range(n + 1):
                for j in range(1, n + 1):
                    h, m = order[i], order[j]
                    if h != m:
                        moves = moved_gradient[i, j] * weights[h, m] + gradient[i, j] * moved_weights[h, m]
                        changes[b, h, m] = moves / STEP * extent
