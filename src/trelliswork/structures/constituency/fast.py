"""The queries of labelled trees by kernel: torch tensors in and out, analytic gradients.

Values and first derivatives come from the kernels; when a gradient is itself differentiated, the reference of
`structure.py` takes over, so derivatives of every order are exact.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from trelliswork.runtime import buffers
from trelliswork.runtime.autograd import differentiable
from trelliswork.runtime.bridge import Array, as_array, as_tensor
from trelliswork.runtime.threads import over_rows, row_ranges, side_by_side
from trelliswork.structures.constituency import kernels, label_kernels, scaled_kernels, structure, tree_kernels
from trelliswork.structures.constituency.structure import Spans


class SpanArrays(NamedTuple):
    """The scores as C-contiguous arrays, float32 or float64 as they came."""

    spans: Array
    lengths: Array

    @staticmethod
    def of(parts: Spans) -> SpanArrays:
        return SpanArrays(as_array(parts.spans), as_array(parts.lengths))

    @property
    def work(self) -> int:
        """Multiply-adds of one pass, an exponential counted as a dozen."""
        batch, n, _, c = self.spans.shape
        return 12 * batch * n * n * (n // 6 + c // 2 + 1)

    def blocks(self) -> list[Array]:
        """The rows in groups of similar length."""
        order = np.argsort(-self.lengths, kind="stable")
        return [order[at : at + ROWS_SIDE_BY_SIDE] for at in range(0, len(order), ROWS_SIDE_BY_SIDE)]


ROWS_SIDE_BY_SIDE = 8
Blocks = list[tuple[Array, ...]]  # rows, and charts of each


class Tops(NamedTuple):
    """The highest label of every span, block by block, and whether each row has only numbers and -inf."""

    blocks: Blocks
    fine: Array


class Inside(NamedTuple):
    """What one inside pass leaves behind."""

    blocks: Blocks  # with the highest labels, and three planes
    weights: Array  # exp of spans, relative to the highest label of each, in float64
    is_scaled: Array  # of each row: whether its charts are in exp space
    log_z: Array


def _over_blocks(kernel: Any, arrays: SpanArrays, blocks: Blocks, work: int, *others: Any) -> None:
    """kernel(spans, rows, lengths, *charts, *others) for every block, on as many threads as are worth it."""
    spans, lengths = arrays

    def run(first: int, last: int) -> None:
        for rows, *charts in blocks[first:last]:
            kernel(spans, rows, lengths, *charts, *others)

    side_by_side([partial(run, first, last) for first, last in row_ranges(len(blocks), work)])


def highest_labels(arrays: SpanArrays) -> Tops:
    """What every other pass begins with: reads all scores once, and meets those that are none."""
    charts: Blocks = []
    for rows in arrays.blocks():
        n = int(arrays.lengths[rows[0]])
        charts.append((rows, np.empty((n, n * len(rows)))))
    tops = Tops(charts, np.empty(len(arrays.lengths), np.bool_))
    _over_blocks(label_kernels.highest_labels, arrays, tops.blocks, arrays.spans.size // 2, tops.fine)
    return tops


def run_inside(arrays: SpanArrays, tops: Tops, try_exp: bool = True) -> Inside:
    """log Z of every row and what its gradient needs: in exp space where that is exact, else in log space."""
    batch = len(arrays.lengths)
    blocks: Blocks = [(rows, top, np.empty((3, *top.shape))) for rows, top in tops.blocks]
    run = Inside(blocks, buffers.empty(arrays.spans.shape), np.empty(batch, np.bool_), np.empty(batch))
    _over_blocks(scaled_kernels.inside, arrays, blocks, arrays.work, try_exp, *run[1:])
    return run


def run_outside(arrays: SpanArrays, run: Inside, grad: Array, dtype: Any = None) -> Array:
    """The gradient of Σ_b grad[b] log Z[b] by spans, in their dtype or another."""
    d_spans = np.zeros(arrays.spans.shape, dtype or arrays.spans.dtype)
    weighed = arrays._replace(spans=run.weights)
    _over_blocks(scaled_kernels.outside, weighed, run.blocks, arrays.work // 2, run.is_scaled, grad, d_spans)
    return d_spans


def log_partition(parts: Spans, arrays: SpanArrays, run: Inside) -> Tensor:
    """log Z [batch] in float64, from `run_inside(arrays, tops)`."""
    return differentiable(
        torch.from_numpy(run.log_z.copy()),
        (parts.spans,),
        lambda grad: (run_outside(arrays, run, grad),),
        lambda spans: structure.log_partition(parts.with_scores(spans)),
    )


def log_prob(parts: Spans, arrays: SpanArrays, run: Inside, nodes: Tensor) -> Tensor:
    """score - log Z [batch] in the dtype of spans; its gradient is the tree's nodes less their posteriors."""
    scores, found = np.empty(len(run.log_z)), np.full(len(run.log_z), -np.inf)
    kernels.tree_scores(arrays.spans, as_array(nodes), scores)
    np.subtract(scores, run.log_z, out=found, where=scores > -np.inf)

    def vjp(grad: Array) -> tuple[Array]:
        d_spans = run_outside(arrays, run, -grad)
        kernels.add_trees(as_array(nodes), grad, d_spans)
        return (d_spans,)

    return differentiable(
        as_tensor(np.minimum(found, 0.0), parts.spans.dtype),  # rounding must not pass certainty
        (parts.spans,),
        vjp,
        lambda spans: structure.log_prob(parts.with_scores(spans), nodes),
    )


def marginals(parts: Spans, arrays: SpanArrays, run: Inside) -> Tensor:
    """p(node | x) [batch, n, n, c] in float64 from the kernels, differentiated through the reference."""
    return differentiable(
        torch.from_numpy(run_outside(arrays, run, np.ones(len(run.log_z)), np.float64)),
        (parts.spans,),
        None,
        lambda spans: structure.marginals(parts.with_scores(spans)),
    )


def _no_nodes(arrays: SpanArrays, *lead: int) -> Array:
    batch, n = arrays.spans.shape[:2]
    return np.full((*lead, batch, 2 * n - 1, 3), -1)


def best_trees(arrays: SpanArrays, tops: Tops) -> tuple[Tensor, Tensor]:
    """The best trees [batch, 2n-1, 3] as nodes, and whether each row has any at all."""
    nodes, possible = _no_nodes(arrays), np.empty(len(arrays.lengths), np.bool_)
    _over_blocks(tree_kernels.best_trees, arrays, tops.blocks, arrays.work // 12, nodes, possible)
    return torch.from_numpy(nodes), torch.from_numpy(possible)


def top_trees(arrays: SpanArrays, k: int) -> tuple[Tensor, Tensor]:
    """The k best trees [k, batch, 2n-1, 3] and their scores [k, batch], -inf where a row has fewer."""
    batch = len(arrays.lengths)
    nodes, scores = _no_nodes(arrays, k), np.empty((k, batch))
    over_rows(tree_kernels.top_trees, batch, arrays.work * k, *arrays, nodes, scores)
    return torch.from_numpy(nodes), torch.from_numpy(scores)


def sample_trees(arrays: SpanArrays, run: Inside, n_samples: int, generator: torch.Generator | None) -> Tensor:
    """Exact samples [samples, batch, 2n-1, 3], from charts in log space."""
    batch, n, _, c = arrays.spans.shape
    seeds = torch.randint(2**62, (n_samples, batch), generator=generator).numpy()
    nodes = _no_nodes(arrays, n_samples)
    blocks: Blocks = [(rows, planes) for rows, _, planes in run.blocks]
    _over_blocks(tree_kernels.sample_trees, arrays, blocks, n_samples * batch * n * (n + c) * 12, seeds, nodes)
    return torch.from_numpy(nodes)
