"""CPU kernels that do both passes over dual numbers: how posteriors change when scores move along a direction.

A dual number is a value with its derivative along the direction, here called its change. The passes are those of
`forward_scaled` and `backward_scaled` on such numbers; values of the way forward are known already. Rows in log space
are in exp space from there on: `backward_arcs`. Directions come from outside and may hold anything, so NaN is kept.
"""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.compilation import FAST_WITH_NAN, kernel
from trelliswork.runtime.kernel_math import at, shifted_exp
from trelliswork.structures.chain.kernels import backward_arcs, weigh


@kernel(FAST_WITH_NAN, inline=True)
def push(alpha, change, arcs, v_arcs, arrived):
    """arrived_j = the change of Σ_i α_i a_ij.

    Args:
        alpha: α of the tags before, [c].
        change: how it changes, [c].
        arcs: weights of the arcs, [c, c].
        v_arcs: how they change, [c, c].
        arrived: [c], filled in.
    """
    c = change.shape[0]
    for j in range(c):
        arrived[j] = 0.0
    for i in range(c):
        value, moved = alpha[i], change[i]
        for j in range(c):
            arrived[j] += (moved + value * v_arcs[i, j]) * arcs[i, j]


@kernel(FAST_WITH_NAN, inline=True)
def pull(alpha, change, arcs, v_arcs, out, beta, d_arcs):
    """β_i = Σ_j a_ij out_j and its change; adds that of α_i a_ij out_j to d_arcs. Values are in row 0, changes in 1.

    Args:
        alpha: α of the tags before, [c].
        change: how it changes, [c].
        arcs: weights of the arcs, [c, c].
        v_arcs: how they change, [c, c].
        out: what goes on from each tag, [2, c].
        beta: [2, c], filled in.
        d_arcs: [c, c], added to.
    """
    c = change.shape[0]
    for i in range(c):
        from_i, moved_i, value, moved = alpha[i], change[i], 0.0, 0.0
        for j in range(c):
            going = arcs[i, j] * out[0, j]
            change_going = arcs[i, j] * out[1, j] + going * v_arcs[i, j]
            value += going
            moved += change_going
            d_arcs[i, j] += moved_i * going + from_i * change_going
        beta[0, i], beta[1, i] = value, moved


@kernel(FAST_WITH_NAN, inline=True)
def at_end(alpha, change, beta):
    """From e^{end} in beta[0] to β at the last position and its change.

    Args:
        alpha: α of the last position, [c].
        change: how it changes, [c].
        beta: [2, c], changed in place.
    """
    total, moved = 0.0, 0.0
    for j in range(alpha.shape[0]):
        total += alpha[j] * beta[0, j]
        moved += change[j] * beta[0, j]
    for j in range(alpha.shape[0]):
        beta[0, j] /= total
        beta[1, j] = -beta[0, j] * (moved / total)


@kernel(FAST_WITH_NAN, inline=True)
def _leave(alpha, change, emit, v_emission, beta, out, d_emission):
    """The change of the posteriors α β, and out = emit β, the adjoint of one step, with its change."""
    for j in range(alpha.shape[0]):
        reached = alpha[j] > 0.0
        value, moved = beta[0, j] if reached else 0.0, beta[1, j] if reached else 0.0
        d_emission[j] = alpha[j] * moved + change[j] * value
        out[0, j], out[1, j] = emit[j] * value, emit[j] * (moved + value * v_emission[j])


@kernel(FAST_WITH_NAN)
def marginals_jvp(first, last, wide_at, scores, arcs, run, v_emissions, v_arcs, d_emissions, d_transitions):
    """d/dε of the posteriors at scores + ε v: of tags in place, of arcs in place or, where `d_transitions` is empty,
    summed over rows and positions and returned, with those of start and end.

    `wide_at[b]` is the place of row b in log_alphas and arrivals, -1 for rows in scaled exp space. `v_arcs` is
    [1|batch, 1|n-1, c, c]. `scores` are transitions, end, and the lengths; `run` alphas, emits, log_alphas, arrivals
    and log_z.

    Args:
        first: the first row.
        last: the row behind the last.
        wide_at: place of each row among those in log space, -1 for the others, int64 [batch].
        scores: transitions, end and lengths.
        arcs: exp of the transitions, shifted, [1 or batch, 1 or n-1, c, width].
        run: alphas, emits, log_alphas, arrivals and log_z.
        v_emissions: how the emissions move, float64 [batch, n, c].
        v_arcs: how the transitions move, float64 [1 or batch, 1 or n-1, c, c].
        d_emissions: how the posteriors of tags change, float64 [batch, n, c], filled in.
        d_transitions: how those of arcs change, float64 [batch, n-1, c, c], filled in; empty to sum them.
    """
    transitions, end, lengths = scores
    alphas, emits, log_alphas, arrivals, log_z = run
    n, c = v_emissions.shape[1:]
    shared = np.zeros((1, 1, c, c))
    target = d_transitions if d_transitions.shape[0] > 0 else shared
    d_start, d_end = np.zeros(c), np.zeros(c)
    ones, before, changes = np.ones((1, 1, c)), np.empty((1, 1, c, c)), np.empty((n, c))
    beta, out = np.empty((2, c)), np.empty((2, c))
    for b in range(first, last):
        if log_z[b] == -np.inf:
            continue
        r, length = wide_at[b], lengths[b]
        # Log space is needed on the way forward only: the probabilities of the tag before each tag, which it leaves
        # behind, are arcs of a chain in which α and emissions are 1.
        values, factors, row_arcs = (ones, ones, before) if r >= 0 else (alphas, emits, arcs)
        bb, n_values = at(b, values.shape[0]), values.shape[1]
        for t in range(length):
            alpha, emit = values[bb, at(t, n_values)], factors[bb, at(t, n_values)]
            for j in range(c):
                changes[t, j] = alpha[j] * v_emissions[b, t, j]
            if t > 0:
                if r >= 0:
                    backward_arcs(b, t - 1, r, transitions, log_alphas, arrivals, before[0, 0])
                matrix = row_arcs[at(b, row_arcs.shape[0]), at(t - 1, row_arcs.shape[1])]
                direction = v_arcs[at(b, v_arcs.shape[0]), at(t - 1, v_arcs.shape[1])]
                push(values[bb, at(t - 1, n_values)], changes[t - 1], matrix, direction, out[0])
                for j in range(c):
                    changes[t, j] += emit[j] * out[0, j]
        if r >= 0:
            weigh(log_alphas[r, length - 1], True, end, beta[0])
        else:
            shifted_exp(end, beta[0])
        at_end(values[bb, at(length - 1, n_values)], changes[length - 1], beta)
        for t in range(length - 1, -1, -1):
            alpha, emit = values[bb, at(t, n_values)], factors[bb, at(t, n_values)]
            _leave(alpha, changes[t], emit, v_emissions[b, t], beta, out, d_emissions[b, t])
            if t > 0:
                if r >= 0:
                    backward_arcs(b, t - 1, r, transitions, log_alphas, arrivals, before[0, 0])
                matrix = row_arcs[at(b, row_arcs.shape[0]), at(t - 1, row_arcs.shape[1])]
                direction = v_arcs[at(b, v_arcs.shape[0]), at(t - 1, v_arcs.shape[1])]
                moved = target[at(b, target.shape[0]), at(t - 1, target.shape[1])]
                pull(values[bb, at(t - 1, n_values)], changes[t - 1], matrix, direction, out, beta, moved)
        for j in range(c):
            d_start[j] += d_emissions[b, 0, j]
            d_end[j] += d_emissions[b, length - 1, j]
    return shared, d_start, d_end
