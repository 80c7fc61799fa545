"""One factor's share of AD3 by numba: the distribution over its table that comes nearest to what its variables want.

`targets`, `marginals` and `forces` have a row for each edge (one place of one factor) of the whole graph; a call reads
and writes those of its own factor. The problem and the active set that solves it are (9) of `math.md`.
"""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.arrays import NEG_INF
from trelliswork.runtime.compilation import EXACT, kernel

TINY = 1e-9
MOST_STEPS = 200  # of one quadratic problem; far more than it takes


@kernel(EXACT)
def digit(graph, e, entry):
    """Return the value that an entry of a factor's table gives to the variable of edge e."""
    return (entry // graph.strides[e]) % graph.sizes[graph.scopes[e]]


@kernel(EXACT)
def best_entry(theta, graph, a, weight, forces):
    """argmax over the entries of factor a of weight * theta + Σ_e forces[e, value], and the maximum; -1 if none."""
    first, last = graph.scope_ptr[a], graph.scope_ptr[a + 1]
    size, start = 1, graph.offsets[a]
    for e in range(first, last):
        size *= graph.sizes[graph.scopes[e]]
    best, highest = -1, NEG_INF
    for entry in range(size):
        score = theta[start + entry]
        if score == NEG_INF:
            continue
        score *= weight
        for e in range(first, last):
            score += forces[e, digit(graph, e, entry)]
        if score > highest:
            best, highest = entry, score
    return best, highest


@kernel(EXACT)
def solve(system, right, size):
    """Gaussian elimination with pivoting, in place; the solution is in `right`."""
    for i in range(size):
        pivot = i
        for r in range(i + 1, size):
            if abs(system[r, i]) > abs(system[pivot, i]):
                pivot = r
        if pivot != i:
            for j in range(size):
                system[i, j], system[pivot, j] = system[pivot, j], system[i, j]
            right[i], right[pivot] = right[pivot], right[i]
        for r in range(i + 1, size):
            share = system[r, i] / system[i, i]
            if share != 0.0:
                for j in range(i, size):
                    system[r, j] -= share * system[i, j]
                right[r] -= share * right[i]
    for i in range(size - 1, -1, -1):
        for j in range(i + 1, size):
            right[i] -= system[i, j] * right[j]
        right[i] /= system[i, i]


@kernel(EXACT)
def agreements(graph, a, one, other):
    """Count the variables of factor a with the same value in two entries: the inner product of their indicators."""
    same = 0
    for e in range(graph.scope_ptr[a], graph.scope_ptr[a + 1]):
        same += digit(graph, e, one) == digit(graph, e, other)
    return same


@kernel(EXACT)
def _kkt(graph, a, active, size, system):
    """Compute [G 1; 1' 0], with G the agreements of the active entries."""
    for i in range(size):
        for j in range(size):
            system[i, j] = agreements(graph, a, active[i], active[j])
        system[i, size] = system[size, i] = 1.0
    system[size, size] = 0.0


@kernel(EXACT)
def _drop(active, weights, size, gone):
    for i in range(gone, size - 1):
        active[i], weights[i] = active[i + 1], weights[i + 1]
    return size - 1


@kernel(EXACT)
def _enter(graph, a, active, weights, size, entry, system, right):
    """One more active entry. If its indicators are an affine combination of the others', weight flows to it along that
    combination, which leaves all marginals alone, until another entry is empty; that one leaves."""
    _kkt(graph, a, active, size, system)
    for i in range(size):
        right[i] = agreements(graph, a, active[i], entry)
    right[size] = 1.0
    reach = 1.0 * agreements(graph, a, entry, entry)
    for i in range(size):
        system[size + 1, i] = right[i]
    solve(system, right, size + 1)
    for i in range(size):
        reach -= system[size + 1, i] * right[i]
    reach -= right[size]
    active[size], weights[size] = entry, 0.0
    if reach > TINY:
        return size + 1
    step, gone = np.inf, -1
    for i in range(size):
        if right[i] > TINY and weights[i] / right[i] < step:
            step, gone = weights[i] / right[i], i
    for i in range(size):
        weights[i] -= step * right[i]
    weights[size] = step
    return _drop(active, weights, size + 1, gone)


@kernel(EXACT)
def _towards(graph, a, active, weights, size, theta, targets, rho, system, right):
    """The best weights on the active entries, if they are not negative; else a step towards them until an entry is
    empty, which leaves. Returns the number of entries, the multiplier τ, and whether the best weights were reached."""
    _kkt(graph, a, active, size, system)
    for i in range(size):
        right[i] = theta[graph.offsets[a] + active[i]] / rho
        for e in range(graph.scope_ptr[a], graph.scope_ptr[a + 1]):
            right[i] += targets[e, digit(graph, e, active[i])]
    right[size] = 1.0
    solve(system, right, size + 1)
    step, gone = 1.0, -1
    for i in range(size):
        if right[i] < 0.0 and weights[i] / (weights[i] - right[i]) < step:
            step, gone = weights[i] / (weights[i] - right[i]), i
    for i in range(size):
        weights[i] += step * (right[i] - weights[i])
    if gone < 0:
        return size, right[size], True
    return _drop(active, weights, size, gone), right[size], False


@kernel(EXACT)
def _residuals(graph, a, active, weights, size, targets, marginals, forces):
    """marginals of the factor's distribution, and forces = targets - marginals."""
    for e in range(graph.scope_ptr[a], graph.scope_ptr[a + 1]):
        for x in range(graph.sizes[graph.scopes[e]]):
            marginals[e, x] = 0.0
        for i in range(size):
            marginals[e, digit(graph, e, active[i])] += weights[i]
        for x in range(graph.sizes[graph.scopes[e]]):
            forces[e, x] = targets[e, x] - marginals[e, x]


@kernel(EXACT)
def project(theta, graph, a, rho, targets, entries, size, marginals, forces, works):
    """The distribution q over the entries of factor a that minimises ½ Σ_e |marginals_e - targets_e|² - theta·q / rho,
    by an active set that begins with the last one. Fills `marginals`; returns the number of active entries."""
    (active, weights), (system, right) = entries, works
    if size == 0:
        entry, _ = best_entry(theta, graph, a, 1.0 / rho, targets)
        active[0], weights[0], size = entry, 1.0, 1
    for _ in range(MOST_STEPS):
        size, tau, reached = _towards(graph, a, active, weights, size, theta, targets, rho, system, right)
        if not reached:
            continue
        _residuals(graph, a, active, weights, size, targets, marginals, forces)
        entry, gain = best_entry(theta, graph, a, 1.0 / rho, forces)
        known = gain <= tau + TINY * (1.0 + abs(tau))
        for i in range(size):
            known = known or active[i] == entry
        if known:
            break
        size = _enter(graph, a, active, weights, size, entry, system, right)
    _residuals(graph, a, active, weights, size, targets, marginals, forces)
    return size
