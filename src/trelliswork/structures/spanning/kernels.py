"""CPU kernels of the matrix-tree theorem: elimination without subtraction, in exp space, and its derivative.

Arcs are shifted to a highest weight of 1 in each column. A weight
that becomes smaller than `SMALLEST` although its arc is possible makes the row *wide*: it is done again in log space
(`log_kernels.py`). Real -inf makes exact zeros and never slows a row down. `math.md` has the equations.

In a work matrix A[h, m], nodes low..n are eliminated from n downwards; low is 0 (the root stays) or, for single-root
trees, 1 (a word stays). The row and column of an eliminated node keep what they held when it was eliminated.
"""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.compilation import EXACT, FAST, kernel
from trelliswork.runtime.kernel_math import exp
from trelliswork.structures.arc_kernels import highest_heads, highest_root, read_direction, write_changes
from trelliswork.structures.spanning.log_kernels import log_row, swap

NEG_INF = -np.inf
SMALLEST, LARGEST = 1e-140, 1e140
FINE, IMPOSSIBLE, WIDE = 0, 1, 2


@kernel(FAST)
def _weights(arcs, n, single_root, work, tops):
    """exp of the arcs, shifted by columns; (sum of all shifts, whether a possible arc has become too small).

    The root word of a single-root tree does not use its column: its root arc makes up for the shift.
    """
    low, too_small = (1 if single_root else 0), 0
    highest_heads(arcs, n, low, tops)
    shifts = 0.0
    for m in range(1, n + 1):
        shifts += tops[m]
    for h in range(low, n + 1):
        for m in range(1, n + 1):
            weight = exp(arcs[h, m] - tops[m])
            too_small += weight < SMALLEST and arcs[h, m] > NEG_INF
            work[h, m] = weight
    if not single_root:
        return shifts, too_small > 0
    root_top = highest_root(arcs, n, tops)
    if root_top == NEG_INF:
        work[0, : n + 1] = 0.0
        return 0.0, False
    for m in range(1, n + 1):
        weight = exp(arcs[0, m] - tops[m] - root_top)
        too_small += weight < SMALLEST and arcs[0, m] > NEG_INF
        work[0, m] = weight
    return shifts + root_top, too_small > 0


@kernel(FAST, inline=True)
def _head_weight(work, low, alive, m):
    total = 0.0
    for h in range(low, alive + 1):
        if h != m:
            total += work[h, m]
    return total


@kernel(FAST, inline=True)
def _add_around(row, through, factor, size):
    """row += factor * through; how many possible products are too small."""
    too_small = 0
    for m in range(1, size):
        product = factor * through[m]
        too_small += (product.real < SMALLEST) & (through[m].real > 0.0)
        row[m] += product
    return too_small


@kernel(FAST)
def _eliminate(work, n, low, order, d):
    """A[h, m] += A[h, v] A[v, m] / d_v for v = n..low+1; (status, Σ log d_v)."""
    log_det, too_small = 0.0, 0
    for v in range(n, low, -1):
        d[v] = _head_weight(work, low, v, v)
        if d[v].real == 0.0 and low == 1:  # v has no head left: it stays, if any, as the root word; take another
            for other in range(v - 1, low - 1, -1):
                if _head_weight(work, low, v, other).real > 0.0:
                    swap(work, order, n, v, other)
                    d[v] = _head_weight(work, low, v, v)
                    break
        if d[v].real == 0.0:
            return IMPOSSIBLE, NEG_INF
        inverse = 1.0 / d[v]
        for h in range(low, v):
            if work[h, v].real > 0.0:
                too_small += _add_around(work[h], work[v], work[h, v] * inverse, v)
                work[h, h] = 0.0
        log_det += np.log(d[v].real)
    return (WIDE if too_small else FINE), log_det


@kernel(EXACT)
def _stationary(work, n, d, pi):
    """π_1 = 1, π_v = Σ_{m<v} π_m A[v, m] / d_v, and Σ_r ρ_r π_r; whether the range was too large."""
    pi[1] = 1.0
    wide = False
    for v in range(2, n + 1):
        total, inverse = 0.0, 1.0 / d[v]
        for m in range(1, v):
            if work[v, m].real > 0.0 and pi[m].real > 0.0:
                part = pi[m] * work[v, m] * inverse
                wide |= part.real < SMALLEST
                total += part
        wide |= total.real > LARGEST
        pi[v] = total
    root = 0.0
    for v in range(1, n + 1):
        root += work[0, v] * pi[v]
    return root, wide


@kernel(EXACT)
def _root_gradients(work, n, d, pi, root, pi_bar, gradient):
    """Derivatives of log Σ_r ρ_r π_r: by ρ into row 0; by π into pi_bar, which the elimination passes on."""
    for v in range(1, n + 1):
        gradient[0, v] = pi[v] / root
        pi_bar[v] = work[0, v] / root
    for v in range(n, 1, -1):
        factor = pi_bar[v] / d[v]
        for m in range(1, v):
            pi_bar[m] += factor * work[v, m]


@kernel(FAST, inline=True)
def _dot(left, right, size):
    """Σ_i left_i right_i from 1: with a start that is given, i could be negative, which AVX-512 gathers entries for."""
    total = 0.0
    for i in range(1, size):
        total += left[i] * right[i]
    return total


@kernel(FAST)
def _undo(work, n, low, d, pi, pi_bar, gradient, column):
    """gradient[h, m] = ∂ log Z / ∂ A[h, m], from the smallest graph to the whole; 0 where A is 0."""
    for v in range(low + 1, n + 1):
        inverse = 1.0 / d[v]
        for h in range(low, v):
            column[h] = work[h, v] * inverse
        through = 0.0  # Σ_{h,m} ∂ log Z / ∂ A'[h, m] A[h, v] A[v, m] / d_v
        for m in range(1, v):
            gradient[v, m] = 0.0
        for h in range(low, v):
            if column[h].real > 0.0:
                for m in range(1, v):
                    gradient[v, m] += gradient[h, m] * column[h]
        for m in range(1, v):
            through += gradient[v, m] * work[v, m]
        rest = (1.0 - through - pi_bar[v] * pi[v]) * inverse
        for h in range(low, v):
            if work[h, v].real > 0.0:
                gradient[h, v] = rest + _dot(gradient[h], work[v], v) * inverse
            else:
                gradient[h, v] = 0.0
        for m in range(1, v):
            if work[v, m].real > 0.0:
                gradient[v, m] += pi_bar[v] * pi[m] * inverse
            else:
                gradient[v, m] = 0.0


@kernel(EXACT)
def _copy(source, target):
    """Entry by entry: assigning whole arrays compiles three seconds of checks and messages."""
    for i in range(source.shape[0]):
        for j in range(source.shape[1]):
            target[i, j] = source[i, j]


@kernel(EXACT)
def _room(size, like):
    """A work matrix, the weights it starts from, a gradient; d, π, its derivative and a column; an order.

    Arrays of their own: views of one array would keep loops out of vector registers.
    """
    square, line = np.zeros((size, size), like.dtype), np.zeros(size, like.dtype)
    matrices = square, square.copy(), square.copy()
    return matrices, (line, line.copy(), line.copy(), line.copy()), np.empty(size, np.int64)


@kernel(EXACT)
def _start(work, weights, pi, pi_bar, order):
    """Keep the weights that the elimination starts from."""
    _copy(work, weights)
    pi[:] = 0.0
    pi_bar[:] = 0.0
    for i in range(len(order)):
        order[i] = i


@kernel(EXACT)
def _posteriors(matrices, n, low, vectors, root, order, found):
    """gradient times weight, each word back in its place."""
    work, weights, gradient = matrices
    d, pi, pi_bar, column = vectors
    gradient[:] = 0.0
    if low == 1:
        _root_gradients(work, n, d, pi, root, pi_bar, gradient)
    roots = gradient[0].copy()
    _undo(work, n, low, d, pi, pi_bar, gradient, column)
    if low == 1:
        for m in range(1, n + 1):
            gradient[0, m] = roots[m]
    for i in range(n + 1):
        for j in range(1, n + 1):
            h, m = order[i], order[j]
            if h != m:
                found[h, m] = gradient[i, j] * weights[h, m]


@kernel(EXACT)
def matrix_tree(first, last, arcs, lengths, single_root, log_z, marginals):
    """log Z of rows first..last-1 and, unless that array is empty, the arcs' posteriors.

    One elimination gives both. Wide rows are done again in log space.
    """  # [S2, matrix-tree; S2, matrix-tree marginals]
    low = 1 if single_root else 0
    matrices, vectors, order = _room(arcs.shape[1], arcs)
    work, weights, _ = matrices
    d, pi, pi_bar, tops = vectors
    for b in range(first, last):
        n, root = lengths[b], 1.0
        work[:] = 0.0
        shifts, wide = _weights(arcs[b], n, single_root, work, tops)
        _start(work, weights, pi, pi_bar, order)
        status, log_det = _eliminate(work, n, low, order, d)
        if status != IMPOSSIBLE and single_root:
            root, strained = _stationary(work, n, d, pi)
            wide |= strained
        log_z[b] = NEG_INF
        if wide or status == WIDE:
            log_z[b] = log_row(arcs[b], n, low, marginals[b] if marginals.shape[0] else marginals.reshape(0, 0))
        elif status != IMPOSSIBLE and root > 0.0:
            log_z[b] = log_det + np.log(root) + shifts
            if marginals.shape[0]:
                _posteriors(matrices, n, low, vectors, root, order, marginals[b])
                _clip(marginals[b], n)


@kernel(EXACT)
def _clip(marginals, n):
    """Rounding must not pass 0 or 1."""
    for h in range(n + 1):
        for m in range(1, n + 1):
            marginals[h, m] = min(max(marginals[h, m], 0.0), 1.0)


@kernel(EXACT)
def posterior_changes(first, last, arcs, lengths, single_root, log_z, directions, changes, done):
    """How the posteriors change along directions, from the same elimination on dual numbers; see `arc_solver.py`.

    `done` is False for wide rows.
    """
    size, low = arcs.shape[1], 1 if single_root else 0
    found, tops, along = np.zeros((size, size), np.complex128), np.empty(size), np.empty((size, size))
    matrices, vectors, order = _room(size, found)
    work, weights, _ = matrices
    d, pi, pi_bar, _ = vectors
    for b in range(first, last):
        n, root, strained = lengths[b], 1.0 + 0.0j, False
        done[b] = log_z[b] == NEG_INF
        if done[b]:
            continue
        work[:] = 0.0
        _, wide = _weights(arcs[b], n, single_root, work, tops)
        extent = read_direction(arcs[b], n, directions[b], along)
        for h in range(n + 1):
            for m in range(1, n + 1):
                work[h, m] *= complex(1.0, along[h, m])
        _start(work, weights, pi, pi_bar, order)
        status, _ = _eliminate(work, n, low, order, d)
        if single_root:
            root, strained = _stationary(work, n, d, pi)
        done[b] = status == FINE and not wide and not strained
        if done[b]:
            _posteriors(matrices, n, low, vectors, root, order, found)
            write_changes(found, n, extent, changes[b])
