"""Assignments to the variables of a factor graph: a junction tree as arrays, the passes over it, both exact solvers."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from trelliswork.runtime import buffers
from trelliswork.runtime.arrays import Array
from trelliswork.runtime.bridge import as_array
from trelliswork.runtime.threads import over_rows
from trelliswork.structures.factors import kernels, structure
from trelliswork.structures.factors.elimination import JunctionTree
from trelliswork.structures.factors.graph import starts_of, whole_numbers
from trelliswork.structures.factors.structure import Factors
from trelliswork.structures.kernel_solver import KernelSolver, draw_by, top_by, uniforms
from trelliswork.structures.record import Decoded, Example, Scores, Structure
from trelliswork.structures.reference import Reference


class TreeArrays(NamedTuple):
    """A junction tree as flat arrays: see `kernels.py`."""

    variables: Array
    n_values: Array
    is_root: Array
    own: Array
    table_start: Array
    message_start: Array
    separator_ptr: Array
    separators: Array
    strides: Array
    read_ptr: Array
    reads: Array
    child_ptr: Array
    children: Array
    arrivals: Array
    maps: Array
    largest: int


@lru_cache(maxsize=64)
def tree_arrays(tree: JunctionTree) -> TreeArrays:
    """Return the arrays of a tree, cached: building the maps costs more than a pass over them."""
    buckets = tree.buckets
    maps: list[Array] = []
    begins = [0]

    def place(index: Array) -> int:
        maps.append(index)
        begins.append(begins[-1] + len(index))
        return begins[-2]

    reads = [place(index) for bucket in buckets for index in bucket.reads[1:]]
    arrivals = [place(index) for bucket in buckets for _, index in bucket.children]
    maps.append(np.empty(0, np.int64))
    return TreeArrays(
        variables=whole_numbers(bucket.variable for bucket in buckets),
        n_values=whole_numbers(bucket.n_values for bucket in buckets),
        is_root=np.array([not bucket.separator for bucket in buckets]),
        own=whole_numbers(bucket.variable * tree.graph.c for bucket in buckets),
        table_start=starts_of(bucket.n_entries for bucket in buckets),
        message_start=starts_of(bucket.n_separator for bucket in buckets),
        separator_ptr=starts_of(len(bucket.separator) for bucket in buckets),
        separators=whole_numbers(variable for bucket in buckets for variable in bucket.separator),
        strides=whole_numbers(stride for bucket in buckets for stride in tree.graph.strides(bucket.separator)),
        read_ptr=starts_of(len(bucket.reads) - 1 for bucket in buckets),
        reads=whole_numbers(reads),
        child_ptr=starts_of(len(bucket.children) for bucket in buckets),
        children=whole_numbers(child for bucket in buckets for child, _ in bucket.children),
        arrivals=whole_numbers(arrivals),
        maps=np.concatenate(maps).astype(np.int32),
        largest=max(bucket.n_entries for bucket in buckets),
    )


class Collected(NamedTuple):
    """The tables and messages of a pass towards the roots."""

    tree: TreeArrays
    tables: Array  # [rows, entries of all buckets]
    messages: Array  # [rows, entries of all separators]
    log_z: Array  # [rows]; best scores if those were asked for

    @property
    def work(self) -> int:
        """Return the multiply-adds of one pass, an exponential counted as a dozen."""
        return 16 * self.tables.size


def run_collect(parts: Factors, tree: JunctionTree, *, best: bool = False) -> Collected:
    """Return log Z of every row, or its best score, and what the way back needs.

    Args:
        parts: scores of the rows.
        tree: the junction tree of their graph.
        best: whether the best assignment counts alone, instead of the sum over all.

    Returns:
        One number for each row, and the messages.
    """
    arrays, flat = tree_arrays(tree), as_array(parts.flat, np.float64)
    rows = len(flat)
    tables = buffers.empty((rows, int(arrays.table_start[-1])))
    collected = Collected(arrays, tables, np.empty((rows, int(arrays.message_start[-1]))), np.empty(rows))
    over_rows(kernels.collect, rows, collected.work, flat, arrays, best, tables, collected.messages, collected.log_z)
    return collected


def run_distribute(collected: Collected, weights: Array, n_scores: int) -> Array:
    """Return weights[row] times the marginals, laid out like scores: the gradient of Σ_row weights[row] log Z[row].

    Args:
        collected: the messages of the way to the roots.
        weights: weight of each row [rows].
        n_scores: number of scores of a row.

    Returns:
        [rows, n_scores].
    """
    rows = len(collected.log_z)
    marginals = buffers.empty((rows, n_scores))
    marginals.fill(0.0)
    over_rows(
        kernels.distribute, rows, collected.work,
        collected.tree, collected.tables, collected.log_z, weights, marginals,
    )  # fmt: skip
    return marginals


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

    def best(self) -> Decoded:
        collected = run_collect(self._parts, self._tree, best=True)
        values = self._no_values()
        over_rows(kernels.descend_best, len(values), values.size * 10, collected.tree, collected.tables, values)
        return torch.from_numpy(values), torch.from_numpy(collected.log_z > -np.inf)

    def top_k(self, k: int) -> Decoded:
        tree, arrays, flat = self._tree, tree_arrays(self._tree), as_array(self._parts.flat, np.float64)
        most_children = max(len(tree.roots), *(len(bucket.children) for bucket in tree.buckets))
        work = len(flat) * int(arrays.table_start[-1]) * 20 * k
        return top_by(kernels.top_k, work, self._no_values(k), flat, arrays, most_children)

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

    def best(self) -> Decoded:
        return structure.best(*self._parts)

    def sample(self, n_samples: int, generator: torch.Generator | None) -> Tensor:
        parts, tree = self._parts
        return structure.sample(parts, tree, n_samples, generator)


def example(scores: Scores) -> Example:
    return {"unary": scores(2, 3, 2), "factors": [((0, 1), scores(2, 2)), ((1, 2), scores(2, 2))]}


STRUCTURE = Structure("factors", FactorReference, Kernels, example)
