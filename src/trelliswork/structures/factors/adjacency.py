"""A factor graph as flat arrays, for the kernels that walk from variables to factors."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from trelliswork.runtime.arrays import Array
from trelliswork.structures.factors.graph import Graph


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
