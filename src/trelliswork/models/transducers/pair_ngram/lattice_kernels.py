"""All targets of a source at once: the lattice of positions and n-gram histories, and what follows each state in sum.

Positions are numbered so that every chunk pair leads to a later one. Without pins they are places of the source; a pin
has several positions at one place, by how much of it is written. A state is (position, history). Histories are nodes of
the trie of `ngram_arrays`, and the states of a position are a tree by their suffixes: what was not seen after a history
is as probable as after its suffix, times the back-off weight. So a state has arcs of its own for the chunk pairs that
were seen after it, and all others are those of its suffix: this is exact, and needs no arcs for them.

Loops work on arrays that are taken out of their tuples before and are never replaced inside: numba counts references
whenever either happens, which takes longer than the arithmetic. Tables that turn out to be too small are made anew, and
filled from the beginning.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from trelliswork.runtime.arrays import Array
from trelliswork.runtime.compilation import EXACT, FAST, kernel

NONE = -1
WORD, FIRST, SUFFIX, STATE = range(4)
PROB, BACKOFF = range(2)
STATES_OF_A_POSITION = 64  # as many as there often are


class JointModel(NamedTuple):
    """The n-gram model of chunk pairs, which are numbered by their source chunks, and the symbols that they write."""

    nodes: Array  # int32 [node + 1, 4]: word, first child, suffix and state, as in NgramArrays, side by side in memory
    weights: Array  # float64 [node, 2]: probability and back-off weight
    levels: Array  # int64 [order + 2]: the first node of each length
    begin: int
    end: int
    target_first: Array  # int32 [chunk pair + 1]: where its target begins
    target_symbols: Array  # int32
    n_symbols: int  # how many target symbols there are


class Lattice(NamedTuple):
    """The states of one source, arcs to chunk pairs that were seen, and sums.

    Chunk pairs that fit at a position have columns, 0 and up; `column_first` has where those of each slot begin.
    """

    position: Array  # int32 [state]
    node: Array  # int32 [state]
    parent: Array  # int32 [state]: the state of its suffix
    following: Array  # int32 [state]: the next state of the same position and length
    heads: Array  # int32 [position, length]
    arc_first: Array  # int32 [state]
    arc_end: Array
    arc_column: Array  # int32 [arc]
    arc_pair: Array  # int32 [arc]: the chunk pair
    arc_to: Array  # int32 [arc]: the state
    arc_prob: Array  # float64 [arc]
    beta: Array  # float64 [state]: the sum over all that may follow, times exp(-scale[position])
    scale: Array  # float64 [position]
    column_first: Array  # int32 [position, slot + 1]
    leads: Array  # int32 [position, slot]: the position behind its chunk pairs


@kernel(EXACT, inline=True)
def find(keys, key):
    mask = keys.shape[0] - 1
    at = ((key * 0x9E3779B97F4A7C1) >> 20) & mask
    while keys[at] != NONE and keys[at] != key:
        at = (at + 1) & mask
    return at


@kernel(EXACT, inline=True)
def _first_child(nodes, node, pair):
    """Return the first child of a node whose word is not below `pair`."""
    low, high = nodes[node, FIRST], nodes[node + 1, FIRST]
    while low < high:
        middle = (low + high) // 2
        if nodes[middle, WORD] < pair:
            low = middle + 1
        else:
            high = middle
    return low


@kernel(EXACT, inline=True)
def _length(levels, node):
    length = 0
    while levels[length + 1] <= node:
        length += 1
    return length


@kernel(EXACT)
def explore(model, spans):
    """Return the lattice of all states that a source reaches.

    Args:
        model: The n-grams of chunk pairs.
        spans: For each position and slot a range of chunk pairs that fit there, and the position behind them
            [positions, slots, 3].

    Returns:
        The states and their arcs, without sums.
    """
    size = 512
    while size < STATES_OF_A_POSITION * spans.shape[0]:
        size *= 2
    while True:
        lattice = _no_states(model, spans, size)
        n_states, n_arcs = _fill(model, spans, lattice)
        if n_states != NONE:
            break
        size *= 2
    return Lattice(
        lattice.position[:n_states], lattice.node[:n_states], lattice.parent[:n_states], lattice.following[:n_states],
        lattice.heads, lattice.arc_first[:n_states], lattice.arc_end[:n_states], lattice.arc_column[:n_arcs],
        lattice.arc_pair[:n_arcs], lattice.arc_to[:n_arcs], lattice.arc_prob[:n_arcs], lattice.beta[:n_states],
        lattice.scale, lattice.column_first, lattice.leads,
    )  # fmt: skip


@kernel(EXACT)
def _no_states(model, spans, size):
    """Return a lattice with room for `size` states and twice as many arcs."""
    n = spans.shape[0]
    return Lattice(
        np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size, np.int32),
        np.full((n + 1, model.levels.shape[0] - 1), NONE, np.int32), np.empty(size, np.int32), np.empty(size, np.int32),
        np.empty(2 * size, np.int32), np.empty(2 * size, np.int32), np.empty(2 * size, np.int32), np.empty(2 * size),
        np.zeros(size), np.full(n + 1, -np.inf), np.zeros((n, spans.shape[1] + 1), np.int32), spans[:, :, 2].copy(),
    )  # fmt: skip


@kernel(EXACT)
def _fill(model, spans, lattice):
    """Fill in states and arcs; how many there are, or `NONE` if there is too little room."""
    n, n_slots = spans.shape[0], spans.shape[1]
    nodes, weights, levels = model.nodes, model.weights, model.levels
    position, node, parent, following = lattice.position, lattice.node, lattice.parent, lattice.following
    arc_first, arc_end, heads, column_first = lattice.arc_first, lattice.arc_end, lattice.heads, lattice.column_first
    column, pair, to, prob = lattice.arc_column, lattice.arc_pair, lattice.arc_to, lattice.arc_prob
    keys, values = np.full(2 * position.shape[0], NONE, np.int64), np.empty(2 * position.shape[0], np.int32)
    n_levels, n_nodes = heads.shape[1], np.int64(weights.shape[0])
    reached = np.zeros(n + 1, np.bool_)
    n_states, n_arcs = 0, 0
    for begin in (0, model.begin):  # node 0 is the empty history
        length = _length(levels, begin)
        position[n_states], node[n_states], following[n_states] = 0, begin, NONE
        heads[0, length] = n_states
        at = find(keys, np.int64(begin))
        keys[at], values[at] = begin, n_states
        n_states += 1
    reached[0] = True
    for i in range(n):
        for a in range(n_slots):
            column_first[i, a + 1] = column_first[i, a] + spans[i, a, 1] - spans[i, a, 0]
        if not reached[i]:
            continue
        for length in range(n_levels):
            s = heads[i, length]
            while s != NONE:
                here = node[s]
                last = nodes[here + 1, FIRST]
                arc_first[s] = n_arcs
                for a in range(n_slots):
                    low, high, there = spans[i, a, 0], spans[i, a, 1], spans[i, a, 2]
                    child = _first_child(nodes, here, low) if high > low else last
                    while child < last and nodes[child, WORD] < high:
                        goes = nodes[child, STATE]
                        if not reached[there]:
                            reached[there] = True
                            goes = 0  # the empty history is a state of every position
                        while True:
                            key = np.int64(there) * n_nodes + goes
                            at = find(keys, key)
                            if keys[at] == NONE:
                                if n_states == position.shape[0]:
                                    return NONE, NONE
                                level = _length(levels, goes)
                                keys[at], values[at] = key, n_states
                                position[n_states], node[n_states] = there, goes
                                following[n_states], heads[there, level] = heads[there, level], n_states
                                n_states += 1
                            if goes == nodes[child, STATE]:
                                break
                            goes = nodes[child, STATE]
                        if n_arcs == column.shape[0]:
                            return NONE, NONE
                        column[n_arcs] = column_first[i, a] + nodes[child, WORD] - low
                        pair[n_arcs], to[n_arcs], prob[n_arcs] = nodes[child, WORD], values[at], weights[child, PROB]
                        n_arcs += 1
                        child += 1
                arc_end[s] = n_arcs
                s = following[s]
    for s in range(n_states):
        here = node[s]
        parent[s] = NONE if here == 0 else values[find(keys, np.int64(position[s]) * n_nodes + nodes[here, SUFFIX])]
        if position[s] == n:
            arc_first[s] = arc_end[s] = n_arcs
    return n_states, n_arcs


@kernel(EXACT)
def _end_sums(model, lattice, n):
    """Fill in the probability of the end at the last position, from shorter histories to longer."""
    nodes, weights, end = model.nodes, model.weights, model.end
    heads, beta, parent, following, node_of = (
        lattice.heads, lattice.beta, lattice.parent, lattice.following, lattice.node
    )  # fmt: skip
    for length in range(heads.shape[1]):
        s = heads[n, length]
        while s != NONE:
            node = node_of[s]
            child = _first_child(nodes, node, end)
            if child < nodes[node + 1, FIRST] and nodes[child, WORD] == end:
                beta[s] = weights[child, PROB]
            else:
                beta[s] = weights[node, BACKOFF] * beta[parent[s]]
            s = following[s]
    lattice.scale[n] = 0.0


@kernel(FAST)
def _inherit(row, above, weight):
    """Score what was not seen after a history by its suffix."""
    for g in range(row.shape[0]):
        row[g] = weight * above[g]


@kernel(FAST)
def _sum(row):
    total = 0.0
    for g in range(row.shape[0]):
        total += row[g]
    return total


@kernel(EXACT)
def column_factors(lattice, i, factors):
    """Fill in for each column the scale of the position that it leads to, relative to the highest; return that one.

    Args:
        lattice: The states, with their sums.
        i: The position.
        factors: One for each column of the position, float64, filled in.
    """
    first, scale_of, leads, top = lattice.column_first[i], lattice.scale, lattice.leads[i], -np.inf
    for a in range(leads.shape[0]):
        if first[a] < first[a + 1]:
            top = max(top, scale_of[leads[a]])
    for a in range(leads.shape[0]):
        if first[a] < first[a + 1]:
            scale = scale_of[leads[a]]
            factors[first[a] : first[a + 1]] = math.exp(scale - top) if top > -np.inf else 0.0
    return top


@kernel(EXACT)
def sum_up(model, lattice):
    """Sum over all that may follow each state; return the log of the sum over all targets and alignments.

    Args:
        model: The n-grams of chunk pairs.
        lattice: The states; its beta and scale are filled in.
    """
    # [S2, transliteration]
    heads, position, node, parent, following = (
        lattice.heads, lattice.position, lattice.node, lattice.parent, lattice.following
    )  # fmt: skip
    arc_first, arc_end, arc_column, arc_to, arc_prob = (
        lattice.arc_first, lattice.arc_end, lattice.arc_column, lattice.arc_to, lattice.arc_prob
    )  # fmt: skip
    beta, scale_of, weights, column_first = lattice.beta, lattice.scale, model.weights, lattice.column_first
    n = heads.shape[0] - 1
    _end_sums(model, lattice, n)
    row_of, widest, n_rows = np.empty(node.shape[0], np.int32), 0, 0
    for i in range(n):
        widest = max(widest, column_first[i, -1])
    at, count = np.zeros(n + 1, np.int64), 0
    for s in range(node.shape[0]):
        at[position[s]] += 1
    n_rows = at.max()
    rows, factors = np.empty((n_rows, max(widest, 1))), np.empty(max(widest, 1))
    for i in range(n - 1, -1, -1):
        width, count, best = column_first[i, -1], 0, 0.0
        top = column_factors(lattice, i, factors)
        for length in range(heads.shape[1]):
            s = heads[i, length]
            while s != NONE:
                row = rows[count, :width]
                row_of[s] = count
                count += 1
                if parent[s] == NONE:
                    row[:] = 0.0
                else:
                    _inherit(row, rows[row_of[parent[s]], :width], weights[node[s], BACKOFF])
                for arc in range(arc_first[s], arc_end[s]):
                    column = arc_column[arc]
                    row[column] = arc_prob[arc] * factors[column] * beta[arc_to[arc]]
                beta[s] = _sum(row)
                best = max(best, beta[s])
                s = following[s]
        if best > 0.0:
            scale_of[i] = top + math.log(best)
            for length in range(heads.shape[1]):
                s = heads[i, length]
                while s != NONE:
                    beta[s] /= best
                    s = following[s]
    return scale_of[0] + math.log(beta[1])
