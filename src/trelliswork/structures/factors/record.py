"""Assignments to the variables of a factor graph: both exact solvers, and the record that the distributions read."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from trelliswork.runtime.bridge import Array, as_array
from trelliswork.runtime.threads import over_rows
from trelliswork.structures.factors import kernels, path_kernels, structure
from trelliswork.structures.factors.elimination import JunctionTree
from trelliswork.structures.factors.fast import Collected, run_collect, run_distribute, tree_arrays
from trelliswork.structures.factors.structure import Factors
from trelliswork.structures.kernel_solver import KernelSolver, draw_by, top_by, uniforms
from trelliswork.structures.record import Drawn, Scores, Structure
from trelliswork.structures.reference import Reference


class Kernels(KernelSolver):
    """By kernel. Values are assignments [rows, n]."""

    module = structure
    _parts: Factors

    @property
    def _tree(self) -> JunctionTree:
        tree: JunctionTree = self._others[0]
        return tree

    @cached_property
    def run(self) -> Collected:
        return run_collect(self._parts, self._tree)

    def _gradients(self, grad: Array) -> tuple[Array]:
        return (run_distribute(self.run, grad, self._parts.flat.shape[-1]),)

    def best(self) -> Drawn:
        found = run_collect(self._parts, self._tree, best=True)
        values = self._no_values()
        over_rows(kernels.descend_best, len(values), values.size * 10, found.tree, found.tables, values)
        return torch.from_numpy(values), torch.from_numpy(found.log_z > -np.inf)

    def top_k(self, k: int) -> Drawn:
        tree, arrays, flat = self._tree, tree_arrays(self._tree), as_array(self._parts.flat, np.float64)
        most_children = max(len(tree.roots), *(len(bucket.children) for bucket in tree.buckets))
        work = len(flat) * int(arrays.table_start[-1]) * 20 * k
        return top_by(path_kernels.top_k, work, self._no_values(k), flat, arrays, most_children)

    def sample(self, n_samples: int, generator: torch.Generator | None) -> Tensor:
        values, run = self._no_values(n_samples), self.run
        given = run.tree, run.tables, uniforms(values.shape, generator)
        return draw_by(kernels.descend_sample, values.size * 100, values, *given)

    def _no_values(self, *lead: int) -> Array:
        return np.zeros((*lead, len(self._parts.flat), self._tree.graph.n), np.int64)


class FactorReference(Reference):
    """In plain torch; values are chosen from the roots down."""

    def __init__(self, parts: Factors, tree: JunctionTree) -> None:
        super().__init__(structure, parts, tree)

    def best(self) -> Drawn:
        return structure.best(*self._parts)

    def sample(self, n_samples: int, generator: torch.Generator | None) -> Tensor:
        parts, tree = self._parts
        return structure.sample(parts, tree, n_samples, generator)


def example(scores: Scores) -> dict[str, Any]:
    return {"unary": scores(2, 3, 2), "factors": [((0, 1), scores(2, 2)), ((1, 2), scores(2, 2))]}


STRUCTURE = Structure("factors", FactorReference, Kernels, example)
