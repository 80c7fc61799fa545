"""The order in which sums over paths visit a machine: strongly connected parts, level by level."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import Array
from trelliswork.structures.automata import kernels

MOST_ON_CYCLES = 4000  # a closure has this many numbers squared, and takes their cube in time


class Component(NamedTuple):
    """A strongly connected part with cycles."""

    places: Array  # of its states in the level
    arcs: Array  # [m, m, most parallel arcs]: arcs between its states; the number of arcs where there is none


class Level(NamedTuple):
    """States that only earlier levels lead to, apart from cycles within one component."""

    states: Array  # those without a cycle first, then the components one after the other
    n_single: int
    arcs: Array  # [states, most arcs in]: arcs from earlier levels; the number of arcs where there is none
    components: list[Component]


def levels_of(source: Array, target: Array, n_states: int) -> list[Level]:
    """Return all levels; a state's level is the longest way to its component through other components.

    Args:
        source: source state of each arc [arcs].
        target: target state of each arc [arcs].
        n_states: number of states.

    Returns:
        The levels in the order of visits.
    """
    label = _components(source, target, n_states)
    height = _heights(source, target, label)[label] if n_states else label
    cyclic = np.zeros(n_states, bool)
    cyclic[source[label[source] == label[target]]] = True
    grouped = np.lexsort((label, cyclic, height))
    ends = np.searchsorted(height[grouped], np.arange(height.max(initial=-1) + 2))
    outside = label[source] != label[target]
    into = kernels.group(target, n_states)
    between = _matrices(source, target, label, cyclic)
    return [_level(grouped[first:last], label, cyclic, outside, into, between) for first, last in pairwise(ends)]


def _components(source: Array, target: Array, n_states: int) -> Array:
    graph = csr_matrix((np.ones(len(source), np.int8), (source, target)), shape=(n_states, n_states))
    return connected_components(graph, directed=True, connection="strong")[1].astype(np.int64)


def _heights(source: Array, target: Array, label: Array) -> Array:
    """Return for every component the most steps between components that lead to it."""
    begin, end = label[source], label[target]
    begin, end = begin[begin != end], end[begin != end]
    n = int(label.max()) + 1
    height = np.zeros(n, np.int64)
    everywhere, free = np.ones(n, bool), np.zeros(len(begin))
    offsets, order = kernels.group(begin, n)
    for component in kernels.topological((offsets, order), begin, end, free, everywhere):
        nexts = end[order[offsets[component] : offsets[component + 1]]]
        height[nexts] = np.maximum(height[nexts], height[component] + 1)
    return height


def _level(
    states: Array, label: Array, cyclic: Array, outside: Array, into: tuple[Array, Array], between: dict[int, Array]
) -> Level:
    offsets, order = into
    coming = [arcs[outside[arcs]] for arcs in (order[offsets[q] : offsets[q + 1]] for q in states)]
    n_single = int((~cyclic[states]).sum())
    components = []
    for component in dict.fromkeys(label[states[n_single:]].tolist()):
        places = np.flatnonzero((label[states] == component) & cyclic[states])
        components.append(Component(places, between[component]))
    return Level(states, n_single, _pad(coming, len(order)), components)


def _pad(rows: list[Array], filler: int) -> Array:
    table = np.full((len(rows), max(map(len, rows), default=0)), filler, np.int64)
    for row, values in zip(table, rows, strict=True):
        row[: len(values)] = values
    return table


def _matrices(source: Array, target: Array, label: Array, cyclic: Array) -> dict[int, Array]:
    """Return for each component with cycles [m, m, most parallel arcs], its states in rising order."""
    matrices = {}
    inside = np.flatnonzero(label[source] == label[target])
    for component in np.unique(label[cyclic]).tolist():
        states = np.flatnonzero(label == component)
        if len(states) > MOST_ON_CYCLES:
            raise ScoreError(
                f"{len(states)} states lie on cycles with one another; their closure takes at most {MOST_ON_CYCLES}; "
                "compose the machine with its input first, or break it up"
            )
        place = {int(q): i for i, q in enumerate(states)}
        cells: dict[tuple[int, int], list[int]] = {}
        for arc in inside[label[source[inside]] == component].tolist():
            cells.setdefault((place[int(source[arc])], place[int(target[arc])]), []).append(arc)
        table = np.full((len(states), len(states), max(map(len, cells.values()))), len(source), np.int64)
        for (p, q), arcs in cells.items():
            table[p, q, : len(arcs)] = arcs
        matrices[component] = table
    return matrices
