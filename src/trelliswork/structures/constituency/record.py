"""Labelled binary trees: both solvers of their queries, and the record that the distributions read."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from trelliswork.runtime.autograd import rows_by_reference
from trelliswork.runtime.bridge import Array, as_array
from trelliswork.structures.constituency import kernels, nary_kernels, structure, tree_kernels
from trelliswork.structures.constituency.fast import (
    Blocks,
    Inside,
    NaryInside,
    SpanArrays,
    Tops,
    highest_labels,
    over_blocks,
    run_changes,
    run_inside,
    run_nary_inside,
    run_nary_outside,
    run_outside,
)
from trelliswork.structures.constituency.structure import Spans
from trelliswork.structures.kernel_solver import KernelSolver, seeds, top_by
from trelliswork.structures.record import Drawn, Scores, Structure
from trelliswork.structures.reference import Reference


class Kernels(KernelSolver):
    """By kernel. Values are nodes [rows, 2n-1, 3]: (start, end, label), -1 at padding."""

    module = structure
    _parts: Spans

    @cached_property
    def arrays(self) -> SpanArrays:
        return SpanArrays.of(self._parts)

    @cached_property
    def tops(self) -> Tops:
        return highest_labels(self.arrays)

    @cached_property
    def run(self) -> Inside:
        return run_inside(self.arrays, self.tops)

    def _outside(self, grad: Array, dtype: Any = None) -> Array:
        """The gradient of Σ_b grad[b] log Z[b] by spans, in their dtype or another."""
        return run_outside(self.arrays, self.run, grad, dtype)

    def _gradients(self, grad: Array) -> tuple[Array, ...]:
        return (self._outside(grad),)

    def marginals(self) -> Tensor:
        found = self._outside(np.ones(len(self.run.log_z)), np.float64)
        posteriors: Tensor = self._posteriors(torch.from_numpy(found), self._changes)
        return posteriors

    def _changes(self, directions: Array) -> tuple[Array]:
        """Of the marginals along directions; rows too wide for exp space by the reference."""
        changes, done = run_changes(self.arrays, self.run, directions)
        lengths = self._parts.lengths
        rows_by_reference(
            changes,
            ~done,
            self._parts.spans,
            directions,
            lambda spans, rows: structure.marginals(Spans(spans, lengths[rows])),
        )
        return (changes,)

    def log_prob(self, values: Tensor) -> Tensor:
        """Its gradient is the tree's nodes less their posteriors."""
        nodes, scores = as_array(values), np.empty(len(values))
        kernels.tree_scores(self.arrays.spans, nodes, scores)

        def vjp(grad: Array) -> tuple[Array]:
            d_spans = self._outside(-grad)
            kernels.add_trees(nodes, grad, d_spans)
            return (d_spans,)

        return self._log_probs(scores, values, vjp)

    def best(self) -> Drawn:
        arrays, nodes, possible = self.arrays, _no_nodes(self.arrays), np.empty(len(self.arrays.lengths), np.bool_)
        over_blocks(tree_kernels.best_trees, arrays, self.tops.blocks, arrays.work // 12, nodes, possible)
        return torch.from_numpy(nodes), torch.from_numpy(possible)

    def top_k(self, k: int) -> Drawn:
        return top_by(tree_kernels.top_trees, self.arrays.work * k, _no_nodes(self.arrays, k), *self.arrays)

    def sample(self, n_samples: int, generator: torch.Generator | None) -> Tensor:
        """From charts in log space."""
        batch, n, _, c = self.arrays.spans.shape
        nodes = _no_nodes(self.arrays, n_samples)
        run = run_inside(self.arrays, self.tops, try_exp=False)
        blocks: Blocks = [(rows, planes) for rows, _, planes in run.blocks]
        work = n_samples * batch * n * (n + c) * 12
        over_blocks(tree_kernels.sample_trees, self.arrays, blocks, work, seeds(n_samples, batch, generator), nodes)
        return torch.from_numpy(nodes)


class NaryKernels(Kernels):
    """Where one label is empty: trees of any arity."""

    @cached_property
    def run(self) -> NaryInside:  # type: ignore[override]
        return run_nary_inside(self.arrays, self.tops, self._empty)

    @property
    def _empty(self) -> int:
        empty: int = self._parts.empty  # type: ignore[assignment]
        return empty

    def _outside(self, grad: Array, dtype: Any = None) -> Array:
        return run_nary_outside(self.arrays, self.run, self._empty, grad, dtype)

    def marginals(self) -> Tensor:
        found: Tensor = self._posteriors(torch.from_numpy(self._outside(np.ones(len(self.run.log_z)), np.float64)))
        return found

    def best(self) -> Drawn:
        values, scores = self.top_k(1)
        return values[0], scores[0] > -np.inf

    def top_k(self, k: int) -> Drawn:
        arrays = self.arrays
        return top_by(nary_kernels.top_trees, arrays.work * k, _no_nodes(arrays, k), *arrays, self._empty)

    def sample(self, n_samples: int, generator: torch.Generator | None) -> Tensor:
        return Reference(structure, self._parts).sample(n_samples, generator)


def _kernels(parts: Spans) -> Kernels:
    return Kernels(parts) if parts.empty is None else NaryKernels(parts)


def _no_nodes(arrays: SpanArrays, *lead: int) -> Array:
    batch, n = arrays.spans.shape[:2]
    return np.full((*lead, batch, 2 * n - 1, 3), -1)


def example(scores: Scores) -> dict[str, Any]:
    return {"spans": scores(2, 3, 3, 2)}


STRUCTURE = Structure("constituency", partial(Reference, structure), _kernels, example)
