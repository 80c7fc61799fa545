"""The exact queries of factor graphs by kernel: torch tensors in and out, analytic gradients.

Gradients come from the kernels; when a gradient is itself differentiated, the reference of `structure.py` takes over,
so derivatives of every order are exact.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from trelliswork.runtime import buffers
from trelliswork.runtime.autograd import differentiable
from trelliswork.runtime.bridge import Array, as_array
from trelliswork.runtime.threads import over_rows
from trelliswork.structures.factors import kernels, path_kernels, structure
from trelliswork.structures.factors.adjacency import starts_of, whole_numbers
from trelliswork.structures.factors.elimination import JunctionTree
from trelliswork.structures.factors.structure import Factors


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
    """Cached for each tree: building the maps costs more than a pass over them."""
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
    """What messages towards the roots leave behind."""

    tree: TreeArrays
    tables: Array  # [rows, entries of all buckets]
    messages: Array  # [rows, entries of all separators]
    totals: Array  # [rows]

    @property
    def work(self) -> int:
        """Multiply-adds of one pass, an exponential counted as a dozen."""
        return 16 * self.tables.size


def run_collect(parts: Factors, tree: JunctionTree, *, best: bool = False) -> Collected:
    """log Z of every row, or its best score, and what the way back needs."""
    arrays, flat = tree_arrays(tree), as_array(parts.flat, np.float64)
    rows = len(flat)
    tables = buffers.empty((rows, int(arrays.table_start[-1])))
    found = Collected(arrays, tables, np.empty((rows, int(arrays.message_start[-1]))), np.empty(rows))
    over_rows(kernels.collect, rows, found.work, flat, arrays, best, tables, found.messages, found.totals)
    return found


def run_distribute(found: Collected, weights: Array, n_scores: int) -> Array:
    """weights[row] times the marginals, laid out like the scores: the gradient of Σ_row weights[row] log Z[row]."""
    rows = len(found.totals)
    marginals = buffers.empty((rows, n_scores))
    marginals.fill(0.0)
    over_rows(
        kernels.distribute, rows, found.work,
        found.tree, found.tables, found.totals, weights, marginals,
    )  # fmt: skip
    return marginals


def log_partition(parts: Factors, tree: JunctionTree, found: Collected) -> Tensor:
    """log Z [rows], from `run_collect(parts, tree)`."""
    n_scores = parts.flat.shape[-1]
    return differentiable(
        torch.from_numpy(found.totals.copy()),
        (parts.flat,),
        lambda grad: (run_distribute(found, grad, n_scores),),
        lambda flat: structure.log_partition(parts.with_scores(flat), tree),
    )


def marginals(parts: Factors, tree: JunctionTree, found: Collected) -> Tensor:
    """Posteriors laid out like the scores; computed by kernel, differentiated through the reference."""
    return differentiable(
        torch.from_numpy(run_distribute(found, np.ones(len(found.totals)), parts.flat.shape[-1])),
        (parts.flat,),
        None,
        lambda flat: structure.marginals(parts.with_scores(flat), tree),
    )


def best(parts: Factors, tree: JunctionTree) -> tuple[Tensor, Tensor]:
    """Best assignments [rows, n] and their scores [rows]."""
    found = run_collect(parts, tree, best=True)
    values = np.zeros((len(found.totals), tree.graph.n), np.int64)
    over_rows(kernels.descend_best, len(values), values.size * 10, found.tree, found.tables, values)
    return torch.from_numpy(values), torch.from_numpy(found.totals)


def sample(found: Collected, tree: JunctionTree, n_samples: int, generator: torch.Generator | None = None) -> Tensor:
    """Exact independent samples [samples, rows, n]."""
    rows, n = len(found.totals), tree.graph.n
    uniforms = torch.rand((n_samples, rows, n), generator=generator, dtype=torch.float64).numpy()
    values = np.zeros((n_samples, rows, n), np.int64)
    over_rows(
        kernels.descend_sample, rows, values.size * 100,
        found.tree, found.tables, uniforms, values,
    )  # fmt: skip
    return torch.from_numpy(values)


def top_k(parts: Factors, tree: JunctionTree, k: int) -> tuple[Tensor, Tensor]:
    """The k best assignments [k, rows, n] and their scores [k, rows]; -inf, and zeros, where a row has fewer."""
    arrays, flat = tree_arrays(tree), as_array(parts.flat, np.float64)
    found, totals = np.zeros((k, len(flat), tree.graph.n), np.int64), np.empty((k, len(flat)))
    most_children = max(len(tree.roots), *(len(bucket.children) for bucket in tree.buckets))
    work = len(flat) * int(arrays.table_start[-1]) * 20 * k
    over_rows(path_kernels.top_k, len(flat), work, flat, arrays, most_children, found, totals)
    return torch.from_numpy(found), torch.from_numpy(totals)
