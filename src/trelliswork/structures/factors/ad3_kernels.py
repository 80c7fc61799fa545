"""AD3 (alternating directions dual decomposition) by numba: the best assignment, with an upper bound.

Each factor a keeps a distribution over the entries of its own table, a few of them at a time; `marginals[e]` are those
of one of its variables (an *edge* e is one place of one factor). All edges of a variable v must agree on p_v. The steps
are in `math.md`.

Arrays: theta [scores] are the row's scores, entries that a forbidden value makes impossible at -inf; p [n, c]; pull
[edges, c] are the multipliers with the edge's share of the unary scores: Σ_e pull_e = unary_v over the edges of v.
"""  # [S4.286]

from __future__ import annotations

import numpy as np

from trelliswork.runtime.arrays import NEG_INF
from trelliswork.runtime.compilation import EXACT, kernel
from trelliswork.runtime.kernel_math import first_best, highest
from trelliswork.structures.factors.gibbs_kernels import climb, score_of

AT_REST = 1e-18  # mean squared residual: nothing moves any more
TINY = 1e-9
MOST_STEPS = 200  # of one quadratic problem; far more than it takes


# --- one factor -------------------------------------------------------------------------------------------
# The distribution over its table that comes nearest to what its variables want: (9) of `math.md`, by an active set.
# `targets`, `marginals` and `forces` have a row for each edge of the whole graph; a call reads and writes those of its
# own factor.


@kernel(EXACT)
def digit(graph, e, entry):
    """Return the value that an entry of a factor's table gives to the variable of edge e.

    Args:
        graph: variables and factors.
        e: number of the edge.
        entry: number of the entry in the factor's table.
    """
    return (entry // graph.strides[e]) % graph.sizes[graph.scopes[e]]


@kernel(EXACT)
def best_entry(theta, graph, a, weight, forces):
    """argmax over the entries of factor a of weight * theta + Σ_e forces[e, value], and the maximum; -1 if none.

    Args:
        theta: scores of one row, impossible entries at -inf, float64 [scores].
        graph: variables and factors.
        a: number of the factor.
        weight: what theta is multiplied by.
        forces: what each value of an edge's variable adds, float64 [edges, c].
    """
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
    """Gaussian elimination with pivoting, in place; the solution is in `right`.

    Args:
        system: coefficients, float64 [size, size] or larger, changed in place.
        right: right-hand side, float64 [size] or longer, changed in place.
        size: number of equations.
    """
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
    """Count the variables of factor a with the same value in two entries: the inner product of their indicators.

    Args:
        graph: variables and factors.
        a: number of the factor.
        one: number of the one entry.
        other: number of the other.
    """
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
def _add_entry(graph, a, active, weights, size, entry, system, right):
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
    by an active set that begins with the last one. Fills `marginals`; returns the number of active entries.

    Args:
        theta: scores of one row, impossible entries at -inf, float64 [scores].
        graph: variables and factors.
        a: number of the factor.
        rho: weight of the distance to the targets.
        targets: what the marginals should be near, float64 [edges, c].
        entries: active entries, int64 [most_entries], and their weights, float64 [most_entries]; changed in place.
        size: how many entries are active, 0 at first.
        marginals: float64 [edges, c], filled in for the edges of the factor.
        forces: targets - marginals, float64 [edges, c], filled in likewise.
        works: room for a linear system, float64 [most_entries + 2, most_entries + 2], and its right-hand side.
    """
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
        size = _add_entry(graph, a, active, weights, size, entry, system, right)
    _residuals(graph, a, active, weights, size, targets, marginals, forces)
    return size


# --- all factors ------------------------------------------------------------------------------------------


@kernel(EXACT)
def upper_bound(theta, graph, pull):
    """Σ_a max over its entries of theta + Σ_e pull_e + the best of variables without factors: never below the MAP.

    Args:
        theta: scores of one row, impossible entries at -inf, float64 [scores].
        graph: variables and factors.
        pull: multipliers and shares of unary scores, float64 [edges, c].
    """
    bound = 0.0
    for a in range(graph.offsets.shape[0]):
        bound += best_entry(theta, graph, a, 1.0, pull)[1]
    for v in range(graph.sizes.shape[0]):
        if graph.touch_ptr[v] == graph.touch_ptr[v + 1]:
            bound += highest(theta[v * graph.c :], graph.sizes[v])
    return bound


@kernel(EXACT)
def prepare(flat, graph, theta, p, pull):
    """theta, a uniform p over allowed values, and the unary scores shared out over the edges. False if a variable or a
    factor has nothing left.

    Args:
        flat: scores, float64 [scores] of one row.
        graph: variables and factors.
        theta: float64 [scores], filled in.
        p: float64 [n, c], filled in.
        pull: float64 [edges, c], filled in.
    """
    for i in range(flat.shape[0]):
        theta[i] = flat[i]
    for v in range(graph.sizes.shape[0]):
        n_allowed = 0
        for x in range(graph.sizes[v]):
            n_allowed += flat[v * graph.c + x] > NEG_INF
        if n_allowed == 0:
            return False
        for x in range(graph.sizes[v]):
            p[v, x] = 1.0 / n_allowed if flat[v * graph.c + x] > NEG_INF else 0.0
    for a in range(graph.offsets.shape[0]):
        size = 1
        for e in range(graph.scope_ptr[a], graph.scope_ptr[a + 1]):
            v = graph.scopes[e]
            size *= graph.sizes[v]
            n_edges = graph.touch_ptr[v + 1] - graph.touch_ptr[v]
            for x in range(graph.sizes[v]):
                own = flat[v * graph.c + x]
                pull[e, x] = own / n_edges if own > NEG_INF else 0.0
        for entry in range(size):
            for e in range(graph.scope_ptr[a], graph.scope_ptr[a + 1]):
                if flat[graph.scopes[e] * graph.c + digit(graph, e, entry)] == NEG_INF:
                    theta[graph.offsets[a] + entry] = NEG_INF
        if highest(theta[graph.offsets[a] :], size) == NEG_INF:
            return False
    return True


@kernel(EXACT)
def _spread(theta, graph):
    """Return the mean range of the finite scores of a factor: the scale on which rho is chosen."""
    total, n_factors = 0.0, graph.offsets.shape[0]
    for a in range(n_factors):
        last = graph.offsets[a + 1] if a + 1 < n_factors else theta.shape[0]
        low, high = np.inf, NEG_INF
        for i in range(graph.offsets[a], last):
            if theta[i] > NEG_INF:
                low, high = min(low, theta[i]), max(high, theta[i])
        total += high - low
    return max(total / max(n_factors, 1), 1e-3)


@kernel(EXACT)
def _agree(graph, marginals, p, pull, rho):
    """p_v = the mean of its edges' marginals; pull_e -= rho (marginals_e - p_v). Returns both squared residuals."""
    apart, moved = 0.0, 0.0
    new = np.zeros(p.shape)
    for e in range(graph.scopes.shape[0]):
        v = graph.scopes[e]
        for x in range(graph.sizes[v]):
            new[v, x] += marginals[e, x] / (graph.touch_ptr[v + 1] - graph.touch_ptr[v])
    for e in range(graph.scopes.shape[0]):
        v = graph.scopes[e]
        for x in range(graph.sizes[v]):
            step, difference = new[v, x] - p[v, x], marginals[e, x] - new[v, x]
            moved += step * step
            apart += difference * difference
            pull[e, x] -= rho * difference
    for v in range(graph.sizes.shape[0]):
        if graph.touch_ptr[v + 1] > graph.touch_ptr[v]:
            for x in range(graph.sizes[v]):
                p[v, x] = new[v, x]
    return apart, moved


@kernel(EXACT)
def _round(flat, graph, p, values, scores, forbidden):
    """Return the likeliest value of each variable under p (of its own scores without factors), then uphill."""
    for v in range(graph.sizes.shape[0]):
        alone = graph.touch_ptr[v] == graph.touch_ptr[v + 1]
        values[v], _ = first_best(flat[v * graph.c :] if alone else p[v], graph.sizes[v])
    climb(flat, graph, values, scores, forbidden)
    return score_of(flat, graph, values)


@kernel(EXACT)
def ad3(flat, graph, most_entries, max_iterations, tolerance, best, p):
    """One row: fills the best assignment found and p; returns its score, the bound, the number of iterations, and
    whether it ended before they ran out.

    Args:
        flat: scores, float64 [scores] of one row.
        graph: variables and factors.
        most_entries: the most entries of a factor that can be active at a time.
        max_iterations: when to give up.
        tolerance: how far the score may stay below the bound, relative to the score if that is beyond ±1.
        best: value of each variable, int64 [n], filled in.
        p: what the edges agree on, float64 [n, c], filled in; comes as zeros.
    """
    n_factors, n_edges, n, c = graph.offsets.shape[0], graph.scopes.shape[0], p.shape[0], p.shape[1]
    theta, pull = np.empty(flat.shape[0]), np.zeros((n_edges, c))
    if not prepare(flat, graph, theta, p, pull):
        return NEG_INF, NEG_INF, 0, True
    targets, marginals, forces = np.zeros((n_edges, c)), np.zeros((n_edges, c)), np.zeros((n_edges, c))
    active, weights = np.zeros((n_factors, most_entries), np.int64), np.zeros((n_factors, most_entries))
    sizes = np.zeros(n_factors, np.int64)
    works = np.empty((most_entries + 2, most_entries + 2)), np.empty(most_entries + 2)
    values, scores, forbidden = np.empty(n, np.int64), np.empty(c), np.empty(c, np.int64)
    rho, score, bound, apart, moved = 0.1 * _spread(theta, graph), NEG_INF, np.inf, np.inf, np.inf
    for iteration in range(max_iterations + 1):
        if iteration > 0:
            for e in range(n_edges):  # what each factor's marginals should be near
                for x in range(graph.sizes[graph.scopes[e]]):
                    targets[e, x] = p[graph.scopes[e], x] + pull[e, x] / rho
            for a in range(n_factors):
                entries = active[a], weights[a]
                sizes[a] = project(theta, graph, a, rho, targets, entries, sizes[a], marginals, forces, works)
            apart, moved = _agree(graph, marginals, p, pull, rho)
        at_rest = apart + moved <= AT_REST * n_edges
        if iteration % 5 == 0 or at_rest or iteration == max_iterations:
            bound = min(bound, upper_bound(theta, graph, pull))
            rounded = _round(flat, graph, p, values, scores, forbidden)
            if rounded > score or iteration == 0:
                score = rounded
                best[:] = values
            if at_rest or (score > NEG_INF and bound - score <= tolerance * max(1.0, abs(score))):
                return score, bound, iteration, True
        if iteration % 10 == 9:
            if apart > 25.0 * moved:
                rho *= 2.0
            elif moved > 25.0 * apart:
                rho *= 0.5
    return score, bound, max_iterations, False


@kernel(EXACT)
def polish(first, last, flat, graph, values, scores):
    """Compute assignments moved uphill, one variable at a time, and their scores.

    Args:
        first: the first row.
        last: the row behind the last.
        flat: scores, float64 [rows, scores].
        graph: variables and factors.
        values: value of each variable, int64 [rows, n], changed in place.
        scores: float64 [rows], filled in.
    """
    gains, forbidden = np.empty(graph.c), np.empty(graph.c, np.int64)
    for row in range(first, last):
        climb(flat[row], graph, values[row], gains, forbidden)
        scores[row] = score_of(flat[row], graph, values[row])
