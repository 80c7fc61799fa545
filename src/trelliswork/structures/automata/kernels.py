"""Numba kernels over the arcs of a machine: reachability, topological order, sums over paths, samples."""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.arrays import NEG_INF
from trelliswork.runtime.compilation import EXACT, ORDERED, kernel
from trelliswork.runtime.kernel_math import exp, log
from trelliswork.runtime.kernel_random import draw
from trelliswork.structures.automata.compose_kernels import longer

# Sums keep their order: reassociation would add large numbers before they are taken from one another.


@kernel(EXACT)
def group(keys, n_groups):
    """Return (offsets, order): order[offsets[g]:offsets[g+1]] are the places where keys == g, in their order.

    Args:
        keys: group of each place, int64.
        n_groups: number of groups.
    """
    offsets = np.zeros(n_groups + 1, np.int64)
    last, rising = 0, True
    for key in keys:
        offsets[key + 1] += 1
        rising &= key >= last
        last = key
    for g in range(n_groups):
        offsets[g + 1] += offsets[g]
    if rising:
        return offsets, np.arange(len(keys))
    order = np.empty(len(keys), np.int64)
    place = offsets[:-1].copy()
    for i in range(len(keys)):
        order[place[keys[i]]] = i
        place[keys[i]] += 1
    return offsets, order


@kernel(EXACT)
def reach(offsets, order, ends, weights, begin):
    """Return the states that can be reached along arcs above -inf from those whose `begin` is above -inf.

    Args:
        offsets: where the arcs of each state begin in `order`, int64 [states + 1].
        order: numbers of arcs, grouped by state, int64 [arcs].
        ends: state that each arc leads to, int64 [arcs].
        weights: score of each arc, float64 [arcs].
        begin: score of each state to begin with, float64 [states].
    """
    n = len(begin)
    reached, stack, size = np.zeros(n, np.bool_), np.empty(n, np.int64), 0
    for q in range(n):
        if begin[q] > NEG_INF:
            reached[q], stack[size] = True, q
            size += 1
    while size:
        size -= 1
        q = stack[size]
        for place in range(offsets[q], offsets[q + 1]):
            arc = order[place]
            if weights[arc] > NEG_INF and not reached[ends[arc]]:
                reached[ends[arc]], stack[size] = True, ends[arc]
                size += 1
    return reached


@kernel(EXACT)
def live_states(out, into, source, target, weights, initial, final):
    """Return the states on some path from start to end of a weight above -inf.

    Args:
        out: arcs by their source: offsets and order, as `group` gives them.
        into: arcs by their target: offsets and order, as `group` gives them.
        source: source state of each arc, int64 [arcs].
        target: target state of each arc, int64 [arcs].
        weights: score of each arc, float64 [arcs].
        initial: score of each state as the first, float64 [states].
        final: score of each state as the last, float64 [states].
    """
    forward = reach(out[0], out[1], target, weights, initial)
    return forward & reach(into[0], into[1], source, weights, final)


@kernel(EXACT)
def topological(out, source, target, weights, live):
    """Return live states so that every live arc leads onwards; fewer than there are if there is a cycle.

    Args:
        out: arcs by their source: offsets and order, as `group` gives them.
        source: source state of each arc, int64 [arcs].
        target: target state of each arc, int64 [arcs].
        weights: score of each arc, float64 [arcs].
        live: whether a state is on a path from start to end, bool [states].
    """
    n = len(live)
    waiting, order = np.zeros(n, np.int64), np.empty(n, np.int64)
    for arc in range(len(source)):
        if weights[arc] > NEG_INF and live[source[arc]] and live[target[arc]]:
            waiting[target[arc]] += 1
    size = 0
    for q in range(n):
        if live[q] and waiting[q] == 0:
            order[size] = q
            size += 1
    done = 0
    while done < size:
        q = order[done]
        done += 1
        for place in range(out[0][q], out[0][q + 1]):
            arc = out[1][place]
            r = target[arc]
            if weights[arc] > NEG_INF and live[r]:
                waiting[r] -= 1
                if waiting[r] == 0:
                    order[size] = r
                    size += 1
    return order[:size]


@kernel(EXACT)
def _level(q, into, begin, alpha):
    """α of some state that leads to q, 0 if none does. Sums relative to it keep digits, however long paths are."""
    for place in range(into[0][q], into[0][q + 1]):
        if alpha[begin[into[1][place]]] > NEG_INF:
            return alpha[begin[into[1][place]]]
    return 0.0


@kernel(ORDERED)
def sum_forward(states, into, begin, weights, start, alpha):
    """Compute α(q) = start(q) ⊕ ⊕_{arcs p → q} α(p) ⊗ w in log space, for states in topological order.

    Args:
        states: states in topological order, int64.
        into: arcs by their target: offsets and order, as `group` gives them.
        begin: source state of each arc, int64 [arcs].
        weights: score of each arc, float64 [arcs].
        start: score of beginning in each state, float64 [states].
        alpha: log sum over the ways to each state, float64 [states], filled in.
    """  # [S2, WFST paths]
    alpha[:] = NEG_INF
    for q in states:
        level = _level(q, into, begin, alpha)
        top = start[q] - level
        for place in range(into[0][q], into[0][q + 1]):
            arc = into[1][place]
            top = max(top, (alpha[begin[arc]] - level) + weights[arc])
        if top == NEG_INF:
            continue
        total = exp(start[q] - level - top)
        for place in range(into[0][q], into[0][q + 1]):
            arc = into[1][place]
            total += exp((alpha[begin[arc]] - level) + weights[arc] - top)
        alpha[q] = level + (top + log(total))


@kernel(ORDERED)
def posteriors(states, into, source, weights, initial, final, alpha, log_z, scale, gradients):
    """Compute scale times the probability of each arc, first and last state, from the end to the front.

    Args:
        states: live states in topological order, int64.
        into: arcs by their target: offsets and order, as `group` gives them.
        source: source state of each arc, int64 [arcs].
        weights: score of each arc, float64 [arcs].
        initial: score of each state as the first, float64 [states].
        final: score of each state as the last, float64 [states].
        alpha: log sum over the ways to each state, float64 [states].
        log_z: log of the sum over all paths.
        scale: factor of the result.
        gradients: posteriors of arcs [arcs], first and last states [states], float64, filled in.
    """
    d_arcs, d_initial, d_final = gradients
    expected = np.zeros(len(initial))
    for i in range(len(states) - 1, -1, -1):
        q = states[i]
        d_final[q] = scale * exp(min(alpha[q] + final[q] - log_z, 0.0))
        here = expected[q] + d_final[q]
        if here == 0.0:
            continue
        level = _level(q, into, source, alpha)
        top = alpha[q] - level
        d_initial[q] = exp(min(initial[q] - level - top, 0.0))
        total = d_initial[q]
        for place in range(into[0][q], into[0][q + 1]):
            arc = into[1][place]
            d_arcs[arc] = exp(min(alpha[source[arc]] - level + weights[arc] - top, 0.0))
            total += d_arcs[arc]
        d_initial[q] *= here / total  # shares of what arrives: normalised, so that rounding does not add up
        for place in range(into[0][q], into[0][q + 1]):
            arc = into[1][place]
            d_arcs[arc] *= here / total
            expected[source[arc]] += d_arcs[arc]


@kernel(EXACT)
def best_ahead(states, out, target, weights, final, ahead, steps):
    """Compute the best weight from each state to an end, for states in topological order.

    steps[q] is the first arc from q on a best path; -1 where ending in q is as good.

    Args:
        states: live states in topological order, int64.
        out: arcs by their source: offsets and order, as `group` gives them.
        target: target state of each arc, int64 [arcs].
        weights: score of each arc, float64 [arcs].
        final: score of each state as the last, float64 [states].
        ahead: best score from each state to an end, float64 [states], filled in.
        steps: first arc from each state on a best path, int64 [states], -1 to end there; filled in.
    """
    for q in range(len(final)):
        ahead[q], steps[q] = NEG_INF, -1
    for i in range(len(states) - 1, -1, -1):
        q = states[i]
        best, step = final[q], -1
        for place in range(out[0][q], out[0][q + 1]):
            arc = out[1][place]
            value = weights[arc] + ahead[target[arc]]
            if value > best:
                best, step = value, arc
        ahead[q], steps[q] = best, step


@kernel(EXACT)
def best_in_order(source, target, weights, final, ahead, steps):
    """Do what `best_ahead` does in one pass over arcs that lead to higher states; False if they do not.

    Args:
        source: source state of each arc, int64 [arcs].
        target: target state of each arc, int64 [arcs].
        weights: score of each arc, float64 [arcs].
        final: score of each state as the last, float64 [states].
        ahead: best score from each state to an end, float64 [states], filled in.
        steps: first arc from each state on a best path, int64 [states], -1 to end there; filled in.
    """
    for q in range(len(final)):
        ahead[q], steps[q] = final[q], -1
    arc, above = len(source) - 1, len(final)
    while arc >= 0:
        q = source[arc]
        if q >= above:
            return False
        best, step, above = final[q], -1, q
        while arc >= 0 and source[arc] == q:
            if target[arc] <= q:
                return False
            value = weights[arc] + ahead[target[arc]]
            if value > best or (value == best and step >= 0):  # arcs are met last first; the first of ties is wanted
                best, step = value, arc
            arc -= 1
        ahead[q], steps[q] = best, step
    return True


@kernel(EXACT)
def walk(first, steps, target):
    """Return the arcs that a path takes from its first state, by the step from each.

    Args:
        first: the first state.
        steps: arc to take from each state, int64 [states], -1 to end there.
        target: target state of each arc, int64 [arcs].
    """
    path, size, q = np.empty(len(steps), np.int64), 0, first
    while steps[q] >= 0:
        path[size] = steps[q]
        size, q = size + 1, target[steps[q]]
    return path[:size]


@kernel(EXACT)
def relax(source, target, weights, final, live, ahead):
    """Do what `best_ahead` does, with cycles (Bellman-Ford); False if a cycle gains, so that no path is best.

    Args:
        source: source state of each arc, int64 [arcs].
        target: target state of each arc, int64 [arcs].
        weights: score of each arc, float64 [arcs].
        final: score of each state as the last, float64 [states].
        live: whether a state is on a path from start to end, bool [states].
        ahead: best score from each state to an end, float64 [states], filled in.
    """
    n_live = 0
    for q in range(len(final)):
        ahead[q] = final[q]
        n_live += live[q]
    for _ in range(n_live + 1):
        changed = False
        for arc in range(len(source)):
            q, r = source[arc], target[arc]
            if not (live[q] and live[r]) or weights[arc] + ahead[r] == NEG_INF:
                continue
            # Rounding alone must not look like a gain: a cycle of weight 0 would go round for ever.
            if ahead[q] == NEG_INF or weights[arc] + ahead[r] > ahead[q] + 1e-12 * (1.0 + abs(ahead[q])):
                ahead[q] = weights[arc] + ahead[r]
                changed = True
        if not changed:
            return True
    return False


@kernel(EXACT)
def close(matrix, summed):
    """Do Lehmann's sweep in place over log weights, I included: sums or the best. False: diverges.

    Args:
        matrix: log weights of ways between states, float64 [m, m], replaced by those of all ways.
        summed: whether ways are summed; if False the best counts alone.
    """
    # [S2, Floyd-Warshall]
    m = len(matrix)
    for k in range(m):
        around = matrix[k, k]
        if around > 0.0 or (summed and around == 0.0):
            return False  # going round gains, or is a series of ones
        star = -np.log(-np.expm1(around)) if summed else 0.0
        onwards = matrix[k] + star
        for i in range(m):
            here = matrix[i, k]
            if here == NEG_INF:
                continue
            for j in range(m):
                detour = here + onwards[j]
                if detour > NEG_INF:
                    top, low = max(matrix[i, j], detour), min(matrix[i, j], detour)
                    matrix[i, j] = top + np.log1p(np.exp(low - top)) if summed else top
    for k in range(m):
        own = matrix[k, k]
        matrix[k, k] = max(own, 0.0) + np.log1p(np.exp(-abs(own))) if summed else max(own, 0.0)
    return True


@kernel(EXACT)
def sample_path(out, target, weights, starts, log_starts, final, beta, choices, state):
    """Return the arcs of one path and the state it begins in, drawn in proportion to its weight: forwards by β.

    `log_starts` are the weights of all paths from each of `starts`; `choices` is room for the arcs of any state and 1.

    Args:
        out: arcs by their source: offsets and order, as `group` gives them.
        target: target state of each arc, int64 [arcs].
        weights: score of each arc, float64 [arcs].
        starts: states in which a path may begin, int64.
        log_starts: log weight of all paths from each of them, float64.
        final: score of each state as the last, float64 [states].
        beta: log sum over the ways from each state to an end, float64 [states].
        choices: room for the weights of the arcs of any state and 1 more, float64.
        state: state of the random generator, changed in place.
    """
    first = starts[draw(log_starts, len(starts), state)]
    path, size, q = np.empty(16, np.int64), 0, first
    while True:
        degree = out[0][q + 1] - out[0][q]
        choices[0] = final[q]
        for i in range(degree):
            arc = out[1][out[0][q] + i]
            choices[i + 1] = weights[arc] + beta[target[arc]]
        chosen = draw(choices, degree + 1, state)
        if chosen == 0:
            return first, path[:size].copy()
        path = longer(path, size + 1)
        path[size] = out[1][out[0][q] + chosen - 1]
        q = target[path[size]]
        size += 1
