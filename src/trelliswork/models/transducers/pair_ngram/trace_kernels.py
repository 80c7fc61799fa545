"""All alignments of a source with one target: the exact log p(target | source), the best alignment, and posteriors.

A place is (state, target symbols written). Places are met in the order of their positions, so that sums need no second
look; they are of logarithms, for targets of any length.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from trelliswork.models.transducers.pair_ngram.lattice_kernels import NONE, find
from trelliswork.models.transducers.pair_ngram.step_kernels import START, add_steps, no_steps
from trelliswork.runtime.arrays import Array
from trelliswork.runtime.compilation import EXACT, kernel


class Trace(NamedTuple):
    """Places, in no order but that of `order`, and the arcs between them."""

    state: Array  # int32 [place]
    written: Array  # int32 [place]
    order: Array  # int32: the places by position
    arc_first: Array  # int32 [place]
    arc_end: Array
    arc_to: Array  # int32 [arc]: a place
    arc_prob: Array  # float64 [arc]


@kernel(EXACT, inline=True)
def _writes(symbols, first, end, target, j):
    """Return whether a chunk pair that writes symbols[first:end] writes what the target has from j on."""
    if j + end - first > target.shape[0]:
        return False
    for k in range(first, end):
        if symbols[k] != target[j + k - first]:
            return False
    return True


@kernel(EXACT)
def trace(model, lattice, target, band):
    """Return all places and arcs of the alignments with a target, and of beginnings that lead nowhere.

    Where i source symbols are read, what is written is at most `band` symbols away from i / n of the target.

    Args:
        model: The n-grams of chunk pairs.
        lattice: The states of the source, with their sums.
        target: Symbols of the target, whole numbers.
        band: How many symbols what is written may be away from i / n of the target.

    Returns:
        The places, in an order in which arcs lead forwards.
    """
    size = 1024
    while True:
        room = Trace(
            np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size, np.int32),
            np.empty(size, np.int32), np.empty(2 * size, np.int32), np.empty(2 * size),
        )  # fmt: skip
        n, n_arcs = _fill(model, lattice, target, band, room)
        if n != NONE:
            break
        size *= 2
    return Trace(
        room.state[:n], room.written[:n], room.order[:n], room.arc_first[:n], room.arc_end[:n], room.arc_to[:n_arcs],
        room.arc_prob[:n_arcs],
    )  # fmt: skip


@kernel(EXACT)
def _fill(model, lattice, target, band, room):
    """Fill in places and arcs; how many there are, or `NONE` if there is too little room."""
    n, m, size = lattice.heads.shape[0] - 1, np.int64(target.shape[0]), room.state.shape[0]
    state, written, order, first, end = room.state, room.written, room.order, room.arc_first, room.arc_end
    to, prob, target_first, target_symbols = room.arc_to, room.arc_prob, model.target_first, model.target_symbols
    keys, values, position = np.full(2 * size, NONE, np.int64), np.empty(2 * size, np.int32), lattice.position
    steps, heads, following = no_steps(lattice, 2 * size), np.full(n + 1, NONE, np.int32), np.empty(size, np.int32)
    step_first, step_end, step_pair, step_to, step_prob = steps.first, steps.end, steps.pair, steps.to, steps.prob
    state[0], written[0], following[0], heads[0] = START, 0, NONE, 0
    n_places, n_arcs, n_ordered = 1, 0, 0
    for i in range(n + 1):
        place = heads[i]
        while place != NONE:
            order[n_ordered], first[place] = place, n_arcs
            n_ordered += 1
            here, j = state[place], written[place]
            if i < n and step_first[here] == NONE and not add_steps(model, lattice, steps, here):
                return NONE, NONE
            for k in range(step_first[here], step_end[here] if i < n else step_first[here]):
                begin, until = target_first[step_pair[k]], target_first[step_pair[k] + 1]
                if not _writes(target_symbols, begin, until, target, j):
                    continue
                goes, written_there = step_to[k], j + until - begin
                if abs(written_there * n - np.int64(position[goes]) * m) > band * n:
                    continue
                key = np.int64(goes) * (m + 1) + written_there
                at = find(keys, key)
                if keys[at] == NONE:
                    if n_places == size:
                        return NONE, NONE
                    keys[at], values[at], there = key, n_places, position[goes]
                    state[n_places], written[n_places] = goes, written_there
                    following[n_places], heads[there] = heads[there], n_places
                    n_places += 1
                if n_arcs == to.shape[0]:
                    return NONE, NONE
                to[n_arcs], prob[n_arcs] = values[at], step_prob[k]
                n_arcs += 1
            end[place] = n_arcs
            place = following[place]
    return n_places, n_arcs


@kernel(EXACT)
def follow(lattice, trace, m, log_sums, best, choice):
    """Fill in what follows each place, in sum and at best, with the arc of the best; return log p(target | source).

    Args:
        lattice: The states of the source.
        trace: Places and arcs of the alignments.
        m: Number of target symbols.
        log_sums: Log of the sum over all that may follow each place, float64 [places], filled in.
        best: The same of the best way alone, float64 [places], filled in.
        choice: First arc of the best way, int [places], NONE at the end; filled in.
    """
    position, state, written, order = lattice.position, trace.state, trace.written, trace.order
    first, end, arc_to, arc_prob = trace.arc_first, trace.arc_end, trace.arc_to, trace.arc_prob
    n = lattice.heads.shape[0] - 1
    for place in order[::-1]:
        final = position[state[place]] == n and written[place] == m
        log_sums[place] = best[place] = 0.0 if final else -np.inf
        choice[place] = NONE
        top, total = -np.inf, 0.0
        for arc in range(first[place], end[place]):
            to, log_prob = arc_to[arc], math.log(arc_prob[arc])
            if log_prob + best[to] > best[place]:
                best[place], choice[place] = log_prob + best[to], arc
            top = max(top, log_prob + log_sums[to])
        if top > -np.inf:
            for arc in range(first[place], end[place]):
                total += math.exp(math.log(arc_prob[arc]) + log_sums[arc_to[arc]] - top)
            log_sums[place] = top + math.log(total)
    return log_sums[0]


@kernel(EXACT)
def best_path(lattice, trace, choice, path):
    """List the chunk pairs of the best alignment; return how many there are.

    Args:
        lattice: The states of the source.
        trace: Places and arcs of the alignments.
        choice: First arc of the best way from each place [places].
        path: (position, next position, target start, target end) of each chunk pair, int [pairs, 4], filled in.
    """
    place, count = np.int32(0), 0
    while choice[place] != NONE:
        to = trace.arc_to[choice[place]]
        path[count, 0], path[count, 1] = lattice.position[trace.state[place]], lattice.position[trace.state[to]]
        path[count, 2], path[count, 3] = trace.written[place], trace.written[to]
        place, count = to, count + 1
    return count


@kernel(EXACT)
def posteriors(lattice, trace, log_sums, table):
    """Add to table[i, j] the probability that source symbol i and target symbol j are in one chunk pair.

    Args:
        lattice: The states of the source.
        trace: Places and arcs of the alignments.
        log_sums: Log of the sum over all that may follow each place, float64 [places].
        table: Float64 [source symbols, target symbols], added to.
    """
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
