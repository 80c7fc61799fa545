"""The passes of the kernels of labelled trees over arrays."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from trelliswork.runtime import buffers
from trelliswork.runtime.bridge import Array, as_array
from trelliswork.runtime.threads import row_ranges, side_by_side
from trelliswork.structures.constituency import label_kernels, nary_kernels, scaled_kernels
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


def over_blocks(kernel: Any, arrays: SpanArrays, blocks: Blocks, work: int, *others: Any) -> None:
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
    over_blocks(label_kernels.highest_labels, arrays, tops.blocks, arrays.spans.size // 2, tops.fine)
    return tops


def run_inside(arrays: SpanArrays, tops: Tops, try_exp: bool = True) -> Inside:
    """log Z of every row and what its gradient needs: in exp space where that is exact, else in log space."""
    batch = len(arrays.lengths)
    blocks: Blocks = [(rows, top, np.empty((3, *top.shape))) for rows, top in tops.blocks]
    run = Inside(blocks, buffers.empty(arrays.spans.shape), np.empty(batch, np.bool_), np.empty(batch))
    over_blocks(scaled_kernels.inside, arrays, blocks, arrays.work, try_exp, *run[1:])
    return run


def run_outside(arrays: SpanArrays, run: Inside, grad: Array, dtype: Any = None) -> Array:
    """The gradient of Σ_b grad[b] log Z[b] by spans, in their dtype or another."""
    d_spans = np.zeros(arrays.spans.shape, dtype or arrays.spans.dtype)
    weighed = arrays._replace(spans=run.weights)
    over_blocks(scaled_kernels.outside, weighed, run.blocks, arrays.work // 2, run.is_scaled, grad, d_spans)
    return d_spans


def run_changes(arrays: SpanArrays, run: Inside, directions: Array) -> tuple[Array, Array]:
    """How the marginals change along directions [batch, n, n, c], and whether a row's could be found in exp space."""
    changes, done = np.zeros(directions.shape), np.empty(len(directions), np.bool_)
    weighed, kernel = arrays._replace(spans=run.weights), scaled_kernels.posterior_changes
    over_blocks(kernel, weighed, run.blocks, 4 * arrays.work, run.is_scaled, directions, changes, done)
    return changes, done


class NaryInside(NamedTuple):
    """What one inside pass over trees of any arity leaves behind."""

    blocks: Blocks  # with the highest labels, and five planes
    weights: Array
    log_z: Array


def run_nary_inside(arrays: SpanArrays, tops: Tops, empty: int) -> NaryInside:
    """log Z of every row, in log space, and what its gradient needs."""
    blocks: Blocks = [(rows, top, np.empty((5, *top.shape))) for rows, top in tops.blocks]
    run = NaryInside(blocks, buffers.empty(arrays.spans.shape), np.empty(len(arrays.lengths)))
    over_blocks(nary_kernels.inside, arrays, blocks, arrays.work, empty, *run[1:])
    return run


def run_nary_outside(arrays: SpanArrays, run: NaryInside, empty: int, grad: Array, dtype: Any = None) -> Array:
    """The gradient of Σ_b grad[b] log Z[b] by spans, in their dtype or another."""
    d_spans = np.zeros(arrays.spans.shape, dtype or arrays.spans.dtype)
    over_blocks(nary_kernels.outside, arrays, run.blocks, arrays.work // 2, empty, run.weights, grad, d_spans)
    return d_spans
