"""The shape of a factor graph: which variables there are, which factors see which, and where their scores lie.

All scores of a row lie in one vector: first `n * c` entries for the variables themselves (variable v, value x at
v * c + x; what is beyond a variable's own size is never read), then the tables of the factors, one behind the other,
last variable fastest.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from trelliswork.runtime.arrays import Array

# A factor graph as flat arrays, for the kernels that walk from variables to factors.


class GraphArrays(NamedTuple):
    """Factor a has the variables scopes[scope_ptr[a]:scope_ptr[a + 1]] with these strides in its table at offsets[a];
    variable v is in the factors touches[touch_ptr[v]:touch_ptr[v + 1]], with its stride in each."""

    sizes: Array
    c: int
    offsets: Array
    scope_ptr: Array
    scopes: Array
    strides: Array
    touch_ptr: Array
    touches: Array
    touch_strides: Array


@lru_cache(maxsize=64)
def graph_arrays(graph: Graph) -> GraphArrays:
    touches: list[list[tuple[int, int]]] = [[] for _ in graph.sizes]
    for factor, scope in enumerate(graph.scopes):
        for variable, stride in zip(scope, graph.strides(scope), strict=True):
            touches[variable].append((factor, stride))
    return GraphArrays(
        sizes=whole_numbers(graph.sizes),
        c=graph.c,
        offsets=whole_numbers(graph.offsets[:-1]),
        scope_ptr=starts_of(len(scope) for scope in graph.scopes),
        scopes=whole_numbers(variable for scope in graph.scopes for variable in scope),
        strides=whole_numbers(stride for scope in graph.scopes for stride in graph.strides(scope)),
        touch_ptr=starts_of(len(each) for each in touches),
        touches=whole_numbers(factor for each in touches for factor, _ in each),
        touch_strides=whole_numbers(stride for each in touches for _, stride in each),
    )


def whole_numbers(numbers: Iterable[int]) -> Array:
    return np.array(list(numbers), np.int64)


def starts_of(sizes: Iterable[int]) -> Array:
    """Return the place where each of several runs of these sizes begins, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(whole_numbers(sizes))]).astype(np.int64)


@dataclass(frozen=True)
class Graph:
    """`sizes[v]` values for variable v, at most c; `scopes[a]` are the variables of factor a, y_a."""  # [S4.65]

    sizes: tuple[int, ...]
    c: int
    scopes: tuple[tuple[int, ...], ...]

    @property
    def n(self) -> int:
        return len(self.sizes)

    def shape(self, scope: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(self.sizes[variable] for variable in scope)

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """The place in the score vector where each factor's table begins; one more for the end of it."""
        starts = [self.n * self.c]
        for scope in self.scopes:
            starts.append(starts[-1] + math.prod(self.shape(scope)))
        return tuple(starts)

    @property
    def n_scores(self) -> int:
        return self.offsets[-1]

    def strides(self, scope: tuple[int, ...]) -> tuple[int, ...]:
        """Return the distance of neighbouring values of each variable in a table over `scope`."""
        shape = self.shape(scope)
        return tuple(math.prod(shape[place + 1 :]) for place in range(len(shape)))

    def index_within(self, scope: tuple[int, ...], part: tuple[int, ...]) -> Array:
        """Return the places of a table's entries in a smaller one.

        For each entry of a table over `scope` that is its entry in a table over `part`, some of the same variables.
        """
        entries = np.zeros(self.shape(scope), np.int64)
        for variable, stride in zip(part, self.strides(part), strict=True):
            place = scope.index(variable)
            axis = np.arange(self.sizes[variable]) * stride
            entries += axis.reshape([-1 if other == place else 1 for other in range(len(scope))])
        return entries.reshape(-1)
