"""Every assignment of a factor graph, one by one: the truth that the tests compare with. Exponential; tests only."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor

from trelliswork.structures.factors.structure import Factors


def assignments(parts: Factors) -> list[tuple[int, ...]]:
    return list(itertools.product(*(range(size) for size in parts.graph.sizes)))


def score(parts: Factors, row: int, values: tuple[int, ...]) -> Tensor:
    """Scores added up variable by variable and factor by factor."""
    graph, flat = parts.graph, parts.flat[row]
    found = torch.zeros((), dtype=flat.dtype)
    for variable, value in enumerate(values):
        found = found + flat[variable * graph.c + value]
    for scope, first, last in zip(graph.scopes, graph.offsets, graph.offsets[1:], strict=False):
        found = found + flat[first:last].reshape(graph.shape(scope))[tuple(values[variable] for variable in scope)]
    return found


def scores(parts: Factors, row: int) -> Tensor:
    """The score of every assignment of `assignments`, in the same order."""
    return torch.stack([score(parts, row, values) for values in assignments(parts)])
