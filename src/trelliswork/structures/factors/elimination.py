"""From a factor graph to a junction tree: an order of elimination, and the buckets that it makes.

Eliminating a variable joins all its neighbours into one clique, its *bucket*: the variable itself and the separator,
those of its neighbours that are still there. A bucket hangs below that of the separator variable which goes first.
Every two buckets with a common variable are joined through buckets that contain it (running intersection), so messages
along this tree are exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

from trelliswork.runtime.arrays import Array
from trelliswork.structures.factors.graph import Graph

Neighbours = dict[int, set[int]]
Cost = Callable[[int, Neighbours, tuple[int, ...]], tuple[float, ...]]


@dataclass(frozen=True, eq=False)
class Bucket:
    """One clique of the tree; its table has the separator first and the eliminated variable last.

    `reads` are the scores that it takes in, the variable's own first: for each entry of the table, the place in the
    score vector. `children` are buckets below it: for each entry, the place in the child's message.
    """

    variable: int
    separator: tuple[int, ...]
    n_separator: int  # entries over the separator
    n_values: int
    reads: tuple[Array, ...]
    children: tuple[tuple[int, Array], ...]

    @property
    def scope(self) -> tuple[int, ...]:
        return (*self.separator, self.variable)

    @property
    def n_entries(self) -> int:
        return self.n_separator * self.n_values


@dataclass(frozen=True, eq=False)
class JunctionTree:
    """Buckets in the order of elimination: children before their parents."""

    graph: Graph
    buckets: tuple[Bucket, ...]
    roots: tuple[int, ...]

    @cached_property
    def width(self) -> int:
        """Variables in the largest clique, less one."""
        return max(len(bucket.separator) for bucket in self.buckets)


@dataclass(frozen=True)
class Elimination:
    """An order, and the clique that each step makes (the separator of its bucket)."""

    order: tuple[int, ...]
    separators: tuple[tuple[int, ...], ...]
    n_entries: int

    @property
    def width(self) -> int:
        return max(len(separator) for separator in self.separators)


def neighbours_of(graph: Graph) -> Neighbours:
    neighbours: Neighbours = {variable: set() for variable in range(graph.n)}
    for scope in graph.scopes:
        for variable in scope:
            neighbours[variable] |= set(scope) - {variable}
    return neighbours


def _table(variable: int, near: Neighbours, sizes: tuple[int, ...]) -> float:
    return math.log(sizes[variable]) + sum(math.log(sizes[other]) for other in near[variable])


def min_weight(variable: int, near: Neighbours, sizes: tuple[int, ...]) -> tuple[float, ...]:
    """Return the size of the table that eliminating the variable makes.

    Args:
        variable: the variable to eliminate.
        near: the neighbours of each variable that is left.
        sizes: number of values of each variable.

    Returns:
        A tuple to compare; the lowest is eliminated first.
    """
    return (_table(variable, near, sizes),)


def min_fill(variable: int, near: Neighbours, sizes: tuple[int, ...]) -> tuple[float, ...]:
    """Return how many pairs of neighbours it joins that were apart; then the size of the table.

    Args:
        variable: the variable to eliminate.
        near: the neighbours of each variable that is left.
        sizes: number of values of each variable.

    Returns:
        A tuple to compare; the lowest is eliminated first.
    """
    around = near[variable]
    apart = sum(len(around - near[other]) - 1 for other in around)
    return apart, _table(variable, near, sizes)


def eliminate(graph: Graph, cost: Cost) -> Elimination:
    """Eliminate greedily, the cheapest variable next; costs are renewed only where the graph has changed."""
    near = neighbours_of(graph)
    costs = {variable: cost(variable, near, graph.sizes) for variable in near}
    order, separators = [], []
    while costs:
        variable = min(costs, key=lambda each: (*costs[each], each))
        around = near.pop(variable)
        del costs[variable]
        for other in around:
            near[other] |= around - {other}
            near[other].discard(variable)
        for other in around.union(*(near[each] for each in around)) if around else ():
            costs[other] = cost(other, near, graph.sizes)
        order.append(variable)
        separators.append(around)
    place = {variable: step for step, variable in enumerate(order)}
    sorted_separators = tuple(tuple(sorted(each, key=place.__getitem__, reverse=True)) for each in separators)
    pairs = zip(order, sorted_separators, strict=True)
    n_entries = sum(math.prod(graph.shape((*separator, variable))) for variable, separator in pairs)
    return Elimination(tuple(order), sorted_separators, n_entries)


@lru_cache(maxsize=256)
def cheapest_elimination(graph: Graph) -> Elimination:
    """Return the better of min-fill and min-weight: neither is always."""
    return min(
        (eliminate(graph, cost) for cost in (min_fill, min_weight)), key=lambda elimination: elimination.n_entries
    )


@lru_cache(maxsize=64)
def junction_tree(graph: Graph) -> JunctionTree:
    """Return the tree of the cheapest elimination.

    Each factor goes to the bucket of its variable that is eliminated first.
    """
    elimination = cheapest_elimination(graph)
    place = {variable: step for step, variable in enumerate(elimination.order)}
    factors: list[list[int]] = [[] for _ in elimination.order]
    for factor, scope in enumerate(graph.scopes):
        factors[min(place[variable] for variable in scope)].append(factor)
    below: list[list[int]] = [[] for _ in elimination.order]
    roots = []
    for step, separator in enumerate(elimination.separators):
        if separator:
            below[min(place[variable] for variable in separator)].append(step)
        else:
            roots.append(step)
    buckets = tuple(_bucket(graph, elimination, step, factors[step], below[step]) for step in range(graph.n))
    return JunctionTree(graph, buckets, tuple(roots))


def _bucket(graph: Graph, elimination: Elimination, step: int, factors: list[int], below: list[int]) -> Bucket:
    variable, separator = elimination.order[step], elimination.separators[step]
    scope = (*separator, variable)
    own = graph.index_within(scope, (variable,)) + variable * graph.c
    tables = [graph.index_within(scope, graph.scopes[factor]) + graph.offsets[factor] for factor in factors]
    children = tuple((child, graph.index_within(scope, elimination.separators[child])) for child in below)
    n_separator = math.prod(graph.shape(separator))
    return Bucket(variable, separator, n_separator, graph.sizes[variable], (own, *tables), children)
