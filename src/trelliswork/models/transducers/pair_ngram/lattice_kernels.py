"""All targets of a source at once: the lattice of positions and n-gram histories, and what follows each state in sum.

Positions are numbered so that every chunk pair leads to a later one. Without pins they are places of the source; a pin
has several positions at one place, by how much of it is written. A state is (position, history). Histories are nodes of
the trie of `ngram_arrays`, and the states of a position are a tree by their suffixes: what was not seen after a history
is as probable as after its suffix, times the back-off weight. So a state has arcs of its own for the chunk pairs that
were seen after it, and all others are those of its suffix: this is exact, and needs no arcs for them.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from trelliswork.runtime.compilation import EXACT, FAST, kernel

Array = np.ndarray[Any, Any]
NONE = -1
WORD, FIRST, SUFFIX, STATE = range(4)
PROB, BACKOFF = range(2)


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


@kernel(EXACT)
def longer(array):
    """The same numbers with room for more."""
    found = np.empty(2 * array.shape[0], array.dtype)
    found[: array.shape[0]] = array
    return found


@kernel(EXACT)
def _first_child(model, node, pair):
    """The first child of a node whose word is not below `pair`."""
    low, high = model.nodes[node, FIRST], model.nodes[node + 1, FIRST]
    while low < high:
        middle = (low + high) // 2
        if model.nodes[middle, WORD] < pair:
            low = middle + 1
        else:
            high = middle
    return low


@kernel(EXACT)
def _length(levels, node):
    length = 0
    while levels[length + 1] <= node:
        length += 1
    return length


@kernel(EXACT)
def rehashed(keys, values):
    """Tables of twice the size."""
    new_keys, new_values = np.full(2 * keys.shape[0], NONE, np.int64), np.empty(2 * keys.shape[0], np.int32)
    for slot in range(keys.shape[0]):
        if keys[slot] != NONE:
            at = find(new_keys, keys[slot])
            new_keys[at], new_values[at] = keys[slot], values[slot]
    return new_keys, new_values


@kernel(EXACT)
def explore(model, spans):
    """All states that the source can reach; spans[i, slot] is a range of chunk pairs that fit at position i, and the
    position behind them."""
    n, n_slots = spans.shape[0], spans.shape[1]
    keys, values = np.full(4096, NONE, np.int64), np.empty(4096, np.int32)
    position, node, parent, following, arc_first, arc_end = (
        np.empty(2048, np.int32), np.empty(2048, np.int32), np.empty(2048, np.int32),
        np.empty(2048, np.int32), np.empty(2048, np.int32), np.empty(2048, np.int32),
    )  # fmt: skip
    column, pair, to = np.empty(8192, np.int32), np.empty(8192, np.int32), np.empty(8192, np.int32)
    prob = np.empty(8192, np.float64)
    n_levels, n_nodes = model.levels.shape[0] - 1, np.int64(model.weights.shape[0])
    heads = np.full((n + 1, n_levels), NONE, np.int32)
    column_first = np.zeros((n, n_slots + 1), np.int32)
    reached = np.zeros(n + 1, np.bool_)
    n_states, n_arcs = 0, 0
    for begin in (0, model.begin):  # node 0 is the empty history
        length = _length(model.levels, begin)
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
                arc_first[s] = n_arcs
                for a in range(n_slots):
                    low, high, there = spans[i, a, 0], spans[i, a, 1], spans[i, a, 2]
                    child = _first_child(model, here, low) if high > low else model.nodes[here + 1, FIRST]
                    while child < model.nodes[here + 1, FIRST] and model.nodes[child, WORD] < high:
                        goes = model.nodes[child, STATE]
                        if not reached[there]:
                            reached[there] = True
                            goes = 0  # the empty history is a state of every position
                        while True:
                            key = np.int64(there) * n_nodes + goes
                            at = find(keys, key)
                            if keys[at] == NONE:
                                if 2 * (n_states + 1) > keys.shape[0]:
                                    keys, values = rehashed(keys, values)
                                    at = find(keys, key)
                                if n_states == position.shape[0]:
                                    position, node = longer(position), longer(node)
                                    parent, following = longer(parent), longer(following)
                                    arc_first, arc_end = longer(arc_first), longer(arc_end)
                                level = _length(model.levels, goes)
                                keys[at], values[at] = key, n_states
                                position[n_states], node[n_states] = there, goes
                                following[n_states], heads[there, level] = heads[there, level], n_states
                                n_states += 1
                            if goes == model.nodes[child, STATE]:
                                break
                            goes = model.nodes[child, STATE]
                        if n_arcs == column.shape[0]:
                            column, pair, to, prob = (
                                longer(column), longer(pair), longer(to), longer(prob)
                            )  # fmt: skip
                        column[n_arcs] = column_first[i, a] + model.nodes[child, WORD] - low
                        pair[n_arcs], to[n_arcs], prob[n_arcs] = (
                            model.nodes[child, WORD],
                            values[at],
                            model.weights[child, PROB],
                        )
                        n_arcs += 1
                        child += 1
                arc_end[s] = n_arcs
                s = following[s]
    for s in range(n_states):
        here = node[s]
        parent[s] = (
            NONE if here == 0 else values[find(keys, np.int64(position[s]) * n_nodes + model.nodes[here, SUFFIX])]
        )
        if position[s] == n:
            arc_first[s] = arc_end[s] = n_arcs
    return Lattice(
        position[:n_states], node[:n_states], parent[:n_states], following[:n_states], heads, arc_first[:n_states],
        arc_end[:n_states], column[:n_arcs], pair[:n_arcs], to[:n_arcs], prob[:n_arcs],
        np.zeros(n_states), np.full(n + 1, -np.inf), column_first, spans[:, :, 2].copy(),
    )  # fmt: skip


@kernel(EXACT)
def _end_sums(model, lattice, n):
    """Of the last position: the probability of the end, from shorter histories to longer."""
    for length in range(lattice.heads.shape[1]):
        s = lattice.heads[n, length]
        while s != NONE:
            node = lattice.node[s]
            child = _first_child(model, node, model.end)
            if child < model.nodes[node + 1, FIRST] and model.nodes[child, WORD] == model.end:
                lattice.beta[s] = model.weights[child, PROB]
            else:
                lattice.beta[s] = model.weights[node, BACKOFF] * lattice.beta[lattice.parent[s]]
            s = lattice.following[s]
    lattice.scale[n] = 0.0


@kernel(FAST)
def _inherit(row, above, weight):
    """What was not seen after a history, by its suffix."""
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
    """For each column the scale of the position that it leads to, relative to the highest of them."""
    first, top = lattice.column_first[i], -np.inf
    for a in range(lattice.leads.shape[1]):
        if first[a] < first[a + 1]:
            top = max(top, lattice.scale[lattice.leads[i, a]])
    for a in range(lattice.leads.shape[1]):
        if first[a] < first[a + 1]:
            scale = lattice.scale[lattice.leads[i, a]]
            factors[first[a] : first[a + 1]] = math.exp(scale - top) if top > -np.inf else 0.0
    return top


@kernel(EXACT)
def sum_up(model, lattice):
    """Fill beta, from the end to the beginning; log of the sum over all targets and alignments."""
    # [S2, transliteration]
    n = lattice.heads.shape[0] - 1
    _end_sums(model, lattice, n)
    row_of, widest, n_rows = np.empty(lattice.node.shape[0], np.int32), 0, 0
    for i in range(n):
        widest = max(widest, lattice.column_first[i, -1])
    at, count = np.zeros(n + 1, np.int64), 0
    for s in range(lattice.node.shape[0]):
        at[lattice.position[s]] += 1
    n_rows = at.max()
    rows, factors = np.empty((n_rows, max(widest, 1))), np.empty(max(widest, 1))
    for i in range(n - 1, -1, -1):
        width, count, best = lattice.column_first[i, -1], 0, 0.0
        top = column_factors(lattice, i, factors)
        for length in range(lattice.heads.shape[1]):
            s = lattice.heads[i, length]
            while s != NONE:
                row = rows[count, :width]
                row_of[s] = count
                count += 1
                if lattice.parent[s] == NONE:
                    row[:] = 0.0
                else:
                    _inherit(row, rows[row_of[lattice.parent[s]], :width], model.weights[lattice.node[s], BACKOFF])
                for arc in range(lattice.arc_first[s], lattice.arc_end[s]):
                    column = lattice.arc_column[arc]
                    row[column] = lattice.arc_prob[arc] * factors[column] * lattice.beta[lattice.arc_to[arc]]
                lattice.beta[s] = _sum(row)
                best = max(best, lattice.beta[s])
                s = lattice.following[s]
        if best > 0.0:
            lattice.scale[i] = top + math.log(best)
            for length in range(lattice.heads.shape[1]):
                s = lattice.heads[i, length]
                while s != NONE:
                    lattice.beta[s] /= best
                    s = lattice.following[s]
    return lattice.scale[0] + math.log(lattice.beta[1])
