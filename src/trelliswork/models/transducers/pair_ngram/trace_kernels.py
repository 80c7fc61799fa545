"""All alignments of a source with one target: the exact log p(target | source), the best alignment, and posteriors.

A place is (state, target symbols written). Places are met in the order of their positions, so that sums need no second
look; they are of logarithms, for targets of any length.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from trelliswork.models.transducers.pair_ngram.lattice_kernels import NONE, find, longer, rehashed
from trelliswork.models.transducers.pair_ngram.step_kernels import START, no_steps, with_steps
from trelliswork.runtime.compilation import EXACT, kernel

Array = np.ndarray[Any, Any]


class Trace(NamedTuple):
    """Places, in no order but that of `order`, and the arcs between them."""

    state: Array  # int32 [place]
    written: Array  # int32 [place]
    order: Array  # int32: the places by position
    arc_first: Array  # int32 [place]
    arc_end: Array
    arc_to: Array  # int32 [arc]: a place
    arc_prob: Array  # float64 [arc]


@kernel(EXACT)
def _writes(model, pair, target, j):
    """Whether a chunk pair writes what the target has from j on."""
    first, end = model.target_first[pair], model.target_first[pair + 1]
    if j + end - first > target.shape[0]:
        return False
    for k in range(first, end):
        if model.target_symbols[k] != target[j + k - first]:
            return False
    return True


@kernel(EXACT)
def trace(model, lattice, target, band):
    """All places and arcs of the alignments with a target, and of beginnings that lead nowhere.

    Where i source symbols are read, what is written is at most `band` symbols away from i / n of the target.
    """
    n, m = lattice.heads.shape[0] - 1, np.int64(target.shape[0])
    keys, values = np.full(1024, NONE, np.int64), np.empty(1024, np.int32)
    state, written, following = np.empty(512, np.int32), np.empty(512, np.int32), np.empty(512, np.int32)
    first, end, order = np.empty(512, np.int32), np.empty(512, np.int32), np.empty(512, np.int32)
    to, prob = np.empty(1024, np.int32), np.empty(1024)
    heads, steps = np.full(n + 1, NONE, np.int32), no_steps(lattice)
    state[0], written[0], following[0], heads[0] = START, 0, NONE, 0
    n_places, n_arcs, n_ordered = 1, 0, 0
    for i in range(n + 1):
        place = heads[i]
        while place != NONE:
            order[n_ordered], first[place] = place, n_arcs
            n_ordered += 1
            here, j = state[place], written[place]
            if i < n and steps.first[here] == NONE:
                steps = with_steps(model, lattice, steps, here)
            for k in range(steps.first[here], steps.end[here] if i < n else steps.first[here]):
                if not _writes(model, steps.pair[k], target, j):
                    continue
                goes = steps.to[k]
                size = model.target_first[steps.pair[k] + 1] - model.target_first[steps.pair[k]]
                if abs((j + size) * n - np.int64(lattice.position[goes]) * m) > band * n:
                    continue
                key = np.int64(goes) * (m + 1) + j + size
                at = find(keys, key)
                if keys[at] == NONE:
                    if 2 * (n_places + 1) > keys.shape[0]:
                        keys, values = rehashed(keys, values)
                        at = find(keys, key)
                    if n_places == state.shape[0]:
                        state, written, following = longer(state), longer(written), longer(following)
                        first, end, order = longer(first), longer(end), longer(order)
                    keys[at], values[at], there = key, n_places, lattice.position[goes]
                    state[n_places], written[n_places] = goes, j + size
                    following[n_places], heads[there] = heads[there], n_places
                    n_places += 1
                if n_arcs == to.shape[0]:
                    to, prob = longer(to), longer(prob)
                to[n_arcs], prob[n_arcs] = values[at], steps.prob[k]
                n_arcs += 1
            end[place] = n_arcs
            place = following[place]
    return Trace(
        state[:n_places], written[:n_places], order[:n_places], first[:n_places], end[:n_places], to[:n_arcs],
        prob[:n_arcs],
    )  # fmt: skip


@kernel(EXACT)
def follow(lattice, trace, m, log_sums, best, choice):
    """What follows each place, in sum and at best, with the arc of the best; log p(target | source)."""
    n = lattice.heads.shape[0] - 1
    for place in trace.order[::-1]:
        final = lattice.position[trace.state[place]] == n and trace.written[place] == m
        log_sums[place] = best[place] = 0.0 if final else -np.inf
        choice[place] = NONE
        top, total = -np.inf, 0.0
        for arc in range(trace.arc_first[place], trace.arc_end[place]):
            to, log_prob = trace.arc_to[arc], math.log(trace.arc_prob[arc])
            if log_prob + best[to] > best[place]:
                best[place], choice[place] = log_prob + best[to], arc
            top = max(top, log_prob + log_sums[to])
        if top > -np.inf:
            for arc in range(trace.arc_first[place], trace.arc_end[place]):
                total += math.exp(math.log(trace.arc_prob[arc]) + log_sums[trace.arc_to[arc]] - top)
            log_sums[place] = top + math.log(total)
    return log_sums[0]


@kernel(EXACT)
def best_path(lattice, trace, choice, path):
    """path[k] = (position, next position, target start, target end) of each chunk pair; how many there are."""
    place, count = np.int32(0), 0
    while choice[place] != NONE:
        to = trace.arc_to[choice[place]]
        path[count, 0], path[count, 1] = lattice.position[trace.state[place]], lattice.position[trace.state[to]]
        path[count, 2], path[count, 3] = trace.written[place], trace.written[to]
        place, count = to, count + 1
    return count


@kernel(EXACT)
def posteriors(lattice, trace, log_sums, table):
    """table[i, j]: the probability that source symbol i and target symbol j are in one chunk pair, given the target."""
    mass = np.zeros(trace.state.shape[0])
    mass[0] = 1.0
    for place in trace.order:
        if mass[place] == 0.0:
            continue
        for arc in range(trace.arc_first[place], trace.arc_end[place]):
            to = trace.arc_to[arc]
            moved = mass[place] * trace.arc_prob[arc] * math.exp(log_sums[to] - log_sums[place])
            mass[to] += moved
            for i in range(lattice.position[trace.state[place]], lattice.position[trace.state[to]]):
                for j in range(trace.written[place], trace.written[to]):
                    table[i, j] += moved
