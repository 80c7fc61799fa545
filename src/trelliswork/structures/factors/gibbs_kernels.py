"""Gibbs sampling and what else looks at one variable at a time, by numba. Graphs are `GraphArrays`."""  # [S4.112]

from __future__ import annotations

import numpy as np

from trelliswork.runtime.arrays import NEG_INF
from trelliswork.runtime.compilation import EXACT, kernel
from trelliswork.runtime.kernel_math import pick
from trelliswork.runtime.kernel_random import uniform


@kernel(EXACT)
def table_entry(graph, factor, values):
    """Return the place of a factor's score for these values.

    Args:
        graph: variables and factors.
        factor: number of the factor.
        values: value of each variable, int64 [n].
    """
    entry = graph.offsets[factor]
    for i in range(graph.scope_ptr[factor], graph.scope_ptr[factor + 1]):
        entry += values[graph.scopes[i]] * graph.strides[i]
    return entry


@kernel(EXACT)
def condition(flat, graph, v, values, scores, forbidden):
    """Compute scores[x]: the sum of the finite scores that variable v is part of if it is x, the others as they are;
    forbidden[x]: how many more are -inf.

    Args:
        flat: scores, float64 [scores] of one row.
        graph: variables and factors.
        v: the variable.
        values: value of each variable, int64 [n].
        scores: float64 [c], filled in.
        forbidden: how many scores of -inf each value meets, int64 [c], filled in.
    """
    for x in range(graph.sizes[v]):
        scores[x], forbidden[x] = 0.0, 0
        own = flat[v * graph.c + x]
        if own == NEG_INF:
            forbidden[x] += 1
        else:
            scores[x] += own
    for i in range(graph.touch_ptr[v], graph.touch_ptr[v + 1]):
        stride = graph.touch_strides[i]
        entry = table_entry(graph, graph.touches[i], values) - values[v] * stride
        for x in range(graph.sizes[v]):
            score = flat[entry + x * stride]
            if score == NEG_INF:
                forbidden[x] += 1
            else:
                scores[x] += score


@kernel(EXACT)
def conditional(flat, graph, v, values, weights, forbidden):
    """Compute p(y_v = x | all others). While the others allow nothing, the values that break least share all.

    Args:
        flat: scores, float64 [scores] of one row.
        graph: variables and factors.
        v: the variable.
        values: value of each variable, int64 [n].
        weights: float64 [c], filled in.
        forbidden: room for c whole numbers.
    """
    size = graph.sizes[v]
    condition(flat, graph, v, values, weights, forbidden)
    least, top = forbidden[0], weights[0]
    for x in range(1, size):
        if forbidden[x] < least:
            least, top = forbidden[x], weights[x]
        elif forbidden[x] == least:
            top = max(top, weights[x])
    total = 0.0
    for x in range(size):
        weights[x] = np.exp(weights[x] - top) if forbidden[x] == least else 0.0
        total += weights[x]
    for x in range(size):
        weights[x] /= total


@kernel(EXACT)
def score_of(flat, graph, values):
    """Return the score of an assignment.

    Args:
        flat: scores, float64 [scores] of one row.
        graph: variables and factors.
        values: value of each variable, int64 [n].
    """
    total = 0.0
    for v in range(graph.sizes.shape[0]):
        total += flat[v * graph.c + values[v]]
    for factor in range(graph.offsets.shape[0]):
        total += flat[table_entry(graph, factor, values)]
    return total


@kernel(EXACT)
def gibbs(first, last, flat, graph, seeds, burn_in, thin, moments, samples, scores):
    """Draw each variable in turn from its conditional, sweep after sweep.

    The moments, sums and squares [rows, chains, n, c], add up the conditionals (their mean has less variance than that
    of the draws); samples [rows, chains, kept, n] and their scores are taken every `thin` sweeps after `burn_in`.

    Args:
        first: the first row.
        last: the row behind the last.
        flat: scores, float64 [rows, scores].
        graph: variables and factors.
        seeds: a seed for each chain, uint64 [rows, chains].
        burn_in: sweeps before the first sample.
        thin: sweeps from one sample to the next.
        moments: sums and squares of the conditionals, float64 [rows, chains, n, c], added to.
        samples: int64 [rows, chains, kept, n], filled in.
        scores: float64 [rows, chains, kept], filled in.
    """
    n, n_chains, n_kept = samples.shape[3], samples.shape[1], samples.shape[2]
    sums, squares = moments
    weights, forbidden = np.empty(graph.c), np.empty(graph.c, np.int64)
    values, state = np.empty(n, np.int64), np.empty(1, np.uint64)
    for row in range(first, last):
        for chain in range(n_chains):
            state[0] = seeds[row, chain]
            for v in range(n):
                values[v] = int(uniform(state) * graph.sizes[v])
            for sweep in range(burn_in + n_kept * thin):
                for v in range(n):
                    conditional(flat[row], graph, v, values, weights, forbidden)
                    values[v] = pick(weights, graph.sizes[v], uniform(state))
                    if sweep >= burn_in:
                        for x in range(graph.sizes[v]):
                            sums[row, chain, v, x] += weights[x]
                            squares[row, chain, v, x] += weights[x] * weights[x]
                if sweep >= burn_in and (sweep - burn_in + 1) % thin == 0:
                    kept = (sweep - burn_in) // thin
                    for v in range(n):
                        samples[row, chain, kept, v] = values[v]
                    scores[row, chain, kept] = score_of(flat[row], graph, values)


@kernel(EXACT)
def climb(flat, graph, values, scores, forbidden):
    """Set one variable after the other to its best value, until none changes: a local maximum (for one row).

    Args:
        flat: scores, float64 [scores] of one row.
        graph: variables and factors.
        values: value of each variable, int64 [n], changed in place.
        scores: room for c numbers.
        forbidden: room for c whole numbers.
    """
    changed = True
    while changed:
        changed = False
        for v in range(graph.sizes.shape[0]):
            condition(flat, graph, v, values, scores, forbidden)
            best = values[v]
            for x in range(graph.sizes[v]):
                fewer = forbidden[x] < forbidden[best]  # and gains of rounding are none: they could go round for ever
                if fewer or (forbidden[x] == forbidden[best] and scores[x] > scores[best] + 1e-12):
                    best = x
            if best != values[v]:
                values[v], changed = best, True
