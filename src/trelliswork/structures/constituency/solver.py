"""Labelled binary trees: the passes over arrays, both solvers of the queries, and the record."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import DTypeLike
from torch import Tensor

from trelliswork.runtime import buffers
from trelliswork.runtime.arrays import Array
from trelliswork.runtime.autograd import rows_by_reference
from trelliswork.runtime.bridge import as_array
from trelliswork.runtime.compilation import Kernel
from trelliswork.runtime.threads import row_ranges, side_by_side
from trelliswork.structures.constituency import (
    kernels,
    label_kernels,
    scaled_kernels,
    structure,
    tree_kernels,
)
from trelliswork.structures.constituency.structure import Spans
from trelliswork.structures.derivation_kernels import PAIR
from trelliswork.structures.derivations import Plan, top_of_rows
from trelliswork.structures.kernel_solver import KernelSolver, seeds
from trelliswork.structures.record import Decoded, Example, Scores, Structure
from trelliswork.structures.reference import Reference

# The k best span trees: charts whose derivations are asked for lazily.

SPLITS, LEFT, RIGHT, SOME, ALL = range(5)  # SOME: the labels of trees that may be left children, or the root
ANY_ARITY = Plan.of(
    [(LEFT, RIGHT, 0, 1, 1)],  # (i, s) and (s + 1, j)
    [(SOME, SPLITS, 0, 0, PAIR)],
    [(ALL, SPLITS, 0, 0, PAIR)],
)
TREE, LABELS = 1, 2
BINARY = Plan.of([(TREE, TREE, 0, 1, 1)], [(LABELS, SPLITS, 0, 0, PAIR)])


def top_trees(spans: Array, empty: int | None, k: int) -> tuple[Array, Array]:
    """Return the k best trees, nodes [k, 2n-1, 3], and their scores [k], or all if there are fewer.

    `spans` are scores [n, n, c]; the label `empty`, if there is one, stands on tokens and right children only.

    Args:
        spans: scores [n, n, c] of labelled spans, by first and last token.
        empty: a label that stands on tokens and right children only; None if there is none.
        k: how many trees to return.

    Returns:
        Nodes (start, end, label) and scores, best first.
    """
    n, scores = len(spans), spans[None].astype(np.float64)
    if empty is None:
        plan, root, shown = BINARY, TREE, LABELS
    else:
        plan, root, shown = ANY_ARITY, LEFT, SOME
        scores = np.concatenate([scores, scores])
        scores[0, ~np.eye(n, dtype=bool), empty] = -np.inf
    nodes, totals = plan.top(k, np.zeros((shown + len(scores), n, n)), scores, (root, 0, n - 1), shown)
    return nodes[:, : 2 * n - 1, 1:] + np.array([0, 1, 0]), totals


class SpanArrays(NamedTuple):
    """The scores as C-contiguous arrays, float32 or float64 as they came."""

    spans: Array
    lengths: Array

    @staticmethod
    def of(parts: Spans) -> SpanArrays:
        return SpanArrays(as_array(parts.spans), as_array(parts.lengths))

    @property
    def work(self) -> int:
        """Return the multiply-adds of one pass, an exponential counted as a dozen."""
        batch, n, _, c = self.spans.shape
        return 12 * batch * n * n * (n // 6 + c // 2 + 1)

    def blocks(self) -> list[Array]:
        """Return the rows in groups of similar length."""
        order = np.argsort(-self.lengths, kind="stable")  # the first row of a block is as long as its charts
        return [order[at : at + ROWS_SIDE_BY_SIDE] for at in range(0, len(order), ROWS_SIDE_BY_SIDE)]


ROWS_SIDE_BY_SIDE = 8
Blocks = list[tuple[Array, ...]]  # rows, and charts of each


class Tops(NamedTuple):
    """The highest label of every span, block by block, and whether each row has only numbers and -inf."""

    blocks: Blocks
    fine: Array


class Inside(NamedTuple):
    """Results of one inside pass."""

    blocks: Blocks  # with the highest labels, and three planes
    weights: Array  # exp of spans, relative to the highest label of each, in float64
    is_scaled: Array  # of each row: whether its charts are in exp space
    log_z: Array


def over_blocks(
    kernel: Kernel, arrays: SpanArrays, blocks: Sequence[tuple[Array, ...]], work: int, *others: object
) -> None:
    """Call kernel(spans, rows, lengths, *charts, *others) for every block, on as many threads as are worth it.

    Args:
        kernel: what is called.
        arrays: scores [batch, n, n, c] and lengths.
        blocks: for each block of rows its numbers, and its charts.
        work: about how many operations all blocks take.
        others: further arguments of the kernel.
    """
    spans, lengths = arrays

    def run(first: int, last: int) -> None:
        for rows, *charts in blocks[first:last]:
            kernel(spans, rows, lengths, *charts, *others)

    side_by_side([partial(run, first, last) for first, last in row_ranges(len(blocks), work)])


def highest_labels(arrays: SpanArrays) -> Tops:
    """Read all scores once, which every other pass begins with, and note those that are none."""
    charts: Blocks = []
    for rows in arrays.blocks():
        n = int(arrays.lengths[rows[0]])
        charts.append((rows, np.empty((n, n * len(rows)))))
    tops = Tops(charts, np.empty(len(arrays.lengths), np.bool_))
    over_blocks(label_kernels.highest_labels, arrays, tops.blocks, arrays.spans.size // 2, tops.fine)
    return tops


def run_inside(arrays: SpanArrays, tops: Tops) -> Inside:
    """Return log Z of every row and what its gradient needs: in exp space where that is exact, else in log space."""
    batch = len(arrays.lengths)
    blocks: Blocks = [(rows, top, np.empty((3, *top.shape))) for rows, top in tops.blocks]
    run = Inside(blocks, buffers.empty(arrays.spans.shape), np.empty(batch, np.bool_), np.empty(batch))
    over_blocks(scaled_kernels.inside, arrays, blocks, arrays.work, *run[1:])
    return run


def run_outside(arrays: SpanArrays, run: Inside, grad: Array, dtype: DTypeLike | None = None) -> Array:
    """Return the gradient of Σ_b grad[b] log Z[b] by spans, in their dtype or another.

    Args:
        arrays: scores [batch, n, n, c] and lengths.
        run: the pass that computed log Z.
        grad: weight of each row [batch].
        dtype: dtype of the gradient; None for that of the scores.

    Returns:
        Gradient [batch, n, n, c].
    """
    d_spans = np.zeros(arrays.spans.shape, dtype or arrays.spans.dtype)
    weighed = arrays._replace(spans=run.weights)  # scores are not read again: their exponentials were kept
    over_blocks(scaled_kernels.outside, weighed, run.blocks, arrays.work // 2, run.is_scaled, grad, d_spans)
    return d_spans


def run_changes(arrays: SpanArrays, run: Inside, directions: Array) -> tuple[Array, Array]:
    """Return the changes of marginals along directions [batch, n, n, c], and which rows fitted into exp space.

    Args:
        arrays: scores [batch, n, n, c] and lengths.
        run: the pass that computed log Z.
        directions: how the scores move [batch, n, n, c].

    Returns:
        How the marginals move [batch, n, n, c], and True for each row that fitted [batch].
    """
    changes, done = np.zeros(directions.shape), np.empty(len(directions), np.bool_)
    weighed, kernel = arrays._replace(spans=run.weights), scaled_kernels.posterior_changes
    over_blocks(kernel, weighed, run.blocks, 4 * arrays.work, run.is_scaled, directions, changes, done)
    return changes, done


class NaryInside(NamedTuple):
    """Results of one inside pass over trees of any arity."""

    blocks: Blocks  # with the highest labels, and five planes
    weights: Array
    log_z: Array


def run_nary_inside(arrays: SpanArrays, tops: Tops, empty: int) -> NaryInside:
    """Return log Z of every row, in log space, and what its gradient needs.

    Args:
        arrays: scores [batch, n, n, c] and lengths.
        tops: highest scores of the rows, by which they are shifted.
        empty: the label of nodes that only make a tree binary.

    Returns:
        log Z [batch] and the charts.
    """
    blocks: Blocks = [(rows, top, np.empty((5, *top.shape))) for rows, top in tops.blocks]
    run = NaryInside(blocks, buffers.empty(arrays.spans.shape), np.empty(len(arrays.lengths)))
    over_blocks(kernels.nary_inside, arrays, blocks, arrays.work, empty, *run[1:])
    return run


def run_nary_outside(
    arrays: SpanArrays, run: NaryInside, empty: int, grad: Array, dtype: DTypeLike | None = None
) -> Array:
    """Return the gradient of Σ_b grad[b] log Z[b] by spans, in their dtype or another.

    Args:
        arrays: scores [batch, n, n, c] and lengths.
        run: the pass that computed log Z.
        empty: the label of nodes that only make a tree binary.
        grad: weight of each row [batch].
        dtype: dtype of the gradient; None for that of the scores.

    Returns:
        Gradient [batch, n, n, c].
    """
    d_spans = np.zeros(arrays.spans.shape, dtype or arrays.spans.dtype)
    over_blocks(kernels.nary_outside, arrays, run.blocks, arrays.work // 2, empty, run.weights, grad, d_spans)
    return d_spans


class Kernels(KernelSolver):
    """By kernel. Values are nodes [rows, 2n-1, 3]: (start, end, label), -1 at padding."""

    module, finds_fewer = structure, True
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

    def _outside(self, grad: Array, dtype: DTypeLike | None = None) -> Array:
        """Return the gradient of Σ_b grad[b] log Z[b] by spans, in their dtype or another."""
        return run_outside(self.arrays, self.run, grad, dtype)

    def _gradients(self, grad: Array) -> tuple[Array, ...]:
        return (self._outside(grad),)

    def marginals(self) -> Tensor:
        expected = self._outside(np.ones(len(self.run.log_z)), np.float64)
        posteriors: Tensor = self._posteriors(torch.from_numpy(expected), self._changes)
        return posteriors

    def _changes(self, directions: Array) -> tuple[Array]:
        """Return changes of the marginals along directions; rows too wide for exp space by the reference."""
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
        """Return log p(tree), whose gradient is the tree's nodes less their posteriors."""
        nodes, scores = as_array(values), np.empty(len(values))
        kernels.tree_scores(self.arrays.spans, nodes, scores)

        def vjp(grad: Array) -> tuple[Array]:
            d_spans = self._outside(-grad)
            kernels.add_trees(nodes, grad, d_spans)
            return (d_spans,)

        return self._log_probs(scores, values, vjp)

    def best(self) -> Decoded:
        arrays, nodes, possible = self.arrays, _no_nodes(self.arrays), np.empty(len(self.arrays.lengths), np.bool_)
        some = self._some_labels()
        some_tops = self.tops if some is arrays.spans else highest_labels(arrays._replace(spans=some))
        blocks: Blocks = [(*mine, theirs[1]) for mine, theirs in zip(self.tops.blocks, some_tops.blocks, strict=True)]
        over_blocks(tree_kernels.best_trees, arrays, blocks, arrays.work // 12, some, nodes, possible)
        return torch.from_numpy(nodes), torch.from_numpy(possible)

    def _some_labels(self) -> Array:
        """Return the labels that left children and the root may have, and tokens."""
        return self.arrays.spans

    def top_k(self, k: int) -> Decoded:
        spans, lengths = self.arrays
        batch, n, _, _ = spans.shape

        def row(b: int) -> tuple[Array, Array]:
            return top_trees(spans[b, : lengths[b], : lengths[b]], self._parts.empty, k)

        nodes, scores = top_of_rows(row, batch, self.arrays.work, (2 * n - 1, 3), -1)
        return torch.from_numpy(nodes), torch.from_numpy(scores)

    def sample(self, n_samples: int, generator: torch.Generator | None) -> Tensor:
        """Draw from the charts and the weights of labels that log Z left."""
        batch, n, _, c = self.arrays.spans.shape
        run, nodes, work = self.run, _no_nodes(self.arrays, n_samples), n_samples * batch * n * (n + c) * 2
        weighed, chosen = self.arrays._replace(spans=run.weights), seeds(n_samples, batch, generator)
        blocks: Blocks = [(rows, planes) for rows, _, planes in run.blocks]
        over_blocks(tree_kernels.sample_trees, weighed, blocks, work, run.is_scaled, chosen, nodes)
        return torch.from_numpy(nodes)


class NaryKernels(Kernels):
    """Queries where one label is empty: trees of any arity."""

    @cached_property
    def run(self) -> NaryInside:  # type: ignore[override]
        return run_nary_inside(self.arrays, self.tops, self._empty)

    @property
    def _empty(self) -> int:
        empty: int = self._parts.empty  # type: ignore[assignment]
        return empty

    def _outside(self, grad: Array, dtype: DTypeLike | None = None) -> Array:
        return run_nary_outside(self.arrays, self.run, self._empty, grad, dtype)

    def marginals(self) -> Tensor:
        # Without a `vjp`, which `_changes` has for binary trees only: the reference differentiates these.
        posteriors: Tensor = self._posteriors(torch.from_numpy(self._outside(np.ones(len(self.run.log_z)), np.float64)))
        return posteriors

    def _some_labels(self) -> Array:
        spans = self.arrays.spans.copy()  # the scores may be the caller's own memory
        spans[:, ~np.eye(spans.shape[1], dtype=bool), self._empty] = -np.inf
        return spans

    def sample(self, n_samples: int, generator: torch.Generator | None) -> Tensor:
        return Reference(structure, self._parts).sample(n_samples, generator)


def _kernels(parts: Spans) -> Kernels:
    return Kernels(parts) if parts.empty is None else NaryKernels(parts)


def _no_nodes(arrays: SpanArrays, *lead: int) -> Array:
    batch, n = arrays.spans.shape[:2]
    return np.full((*lead, batch, 2 * n - 1, 3), -1)


def example(scores: Scores) -> Example:
    return {"spans": scores(2, 3, 3, 2)}


STRUCTURE = Structure("constituency", partial(Reference, structure), _kernels, example)
