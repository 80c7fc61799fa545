"""The queries of segmentations by kernel: torch tensors in and out, float64 arrays inside, analytic gradients.

`LogPartition`, `LogProb` and `Marginals` are autograd functions. Their gradients come from the kernels; when a
gradient is itself differentiated, the reference of `structure.py` takes over, so derivatives of every order are
exact. Beside the scores autograd keeps O(batch n c) numbers: segment weights are computed again on the way back.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from trelliswork.structures import buffers
from trelliswork.structures.bridge import Array, as_array, as_tensor, by_reference, to_tensors
from trelliswork.structures.kernel_math import first_not_a_score
from trelliswork.structures.segments import kernels, path_kernels, structure
from trelliswork.structures.segments.structure import Segments
from trelliswork.structures.segments.tangents import run_tangents
from trelliswork.structures.threads import over_rows


class SegmentArrays(NamedTuple):
    """The scores as C-contiguous arrays; `transitions` is [c, c], or [0, 0] for the 0th order."""

    segments: Array
    transitions: Array
    start: Array
    end: Array
    lengths: Array

    @staticmethod
    def of(parts: Segments, dtype: type | None = np.float64) -> SegmentArrays:
        """Arrays in this dtype; None keeps the scores' own."""
        segments, start, end = (as_array(each, dtype) for each in (parts.segments, parts.start, parts.end))
        given = parts.transitions
        transitions = np.empty((0, 0), segments.dtype) if given is None else as_array(given, dtype)
        return SegmentArrays(segments, transitions, start, end, parts.lengths.numpy())

    def first_not_a_score(self) -> tuple[int, int]:
        """(which of the four, flat index) of the first NaN or +inf; (-1, -1) if all are scores."""
        return first_not_a_score(self.segments.reshape(-1), self.transitions.reshape(-1), self.start, self.end)

    @property
    def work(self) -> int:
        """Multiply-adds of one pass, an exponential counted as a dozen."""
        batch, n, k, c = self.segments.shape
        return batch * n * c * (12 * k + len(self.transitions))


class Forward(NamedTuple):
    """What one forward pass leaves behind: log Z, and α, γ in log space, shifted by the sums of `steps`."""

    arcs: Array  # exp of the transitions, [c, c]
    arc_shift: float
    alphas: Array  # [batch, n+1, c], of boundaries 1..L
    gammas: Array  # [batch, n, c], of boundaries 0..L-1
    steps: Array  # [batch, n+1]
    log_z: Array


def run_forward(arrays: SegmentArrays) -> Forward:
    """log Z of every row and what its gradient needs."""
    batch, n, _, c = arrays.segments.shape
    arcs = np.empty(arrays.transitions.shape)
    arc_shift = kernels.exp_arcs(arrays.transitions, arcs)
    alphas, gammas = buffers.empty((batch, n + 1, c)), buffers.empty((batch, n, c))
    run = Forward(arcs, arc_shift, alphas, gammas, np.empty((batch, n + 1)), np.empty(batch))
    over_rows(
        kernels.forward_log, batch, arrays.work,
        arrays.segments, arrays.transitions, arcs, arc_shift, arrays.start, arrays.end, arrays.lengths,
        alphas, gammas, run.steps, run.log_z,
    )  # fmt: skip
    return run


def run_backward(arrays: SegmentArrays, run: Forward, grad: Array) -> tuple[Array, Array, Array, Array]:
    """Gradients of Σ_b grad[b] log Z[b] [S0.7-8, 10] by segments, and for each row by arcs, start and end."""
    batch, n, k, c = arrays.segments.shape
    d_segments = buffers.empty((batch, n, k, c))
    d_arcs, d_start, d_end = np.zeros((batch, *run.arcs.shape)), np.zeros((batch, c)), np.zeros((batch, c))
    over_rows(
        kernels.backward_log, batch, arrays.work,
        arrays.segments, arrays.transitions, run.arcs, run.arc_shift, arrays.end, arrays.lengths,
        run.alphas, run.gammas, run.steps, run.log_z, grad, d_segments, d_arcs, d_start, d_end,
    )  # fmt: skip
    return d_segments, d_arcs, d_start, d_end


def _summed(found: tuple[Array, Array, Array, Array], like: tuple[Tensor | None, ...]) -> tuple[Tensor | None, ...]:
    """Gradients of the shared scores added up over rows [S0.8], as tensors."""
    d_segments, *shared = found
    return to_tensors((d_segments, *(each.sum(0) for each in shared)), like)


class LogPartition(torch.autograd.Function):
    """log Z [batch]; `LogPartition.apply(parts, arrays, run_forward(arrays), *parts.scores)`."""

    @staticmethod
    def forward(ctx: Any, parts: Segments, arrays: SegmentArrays, run: Forward, *scores: Tensor | None) -> Tensor:
        ctx.parts, ctx.arrays, ctx.run = parts, arrays, run
        ctx.save_for_backward(*scores)
        return as_tensor(run.log_z, parts.segments.dtype)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        scores = ctx.saved_tensors
        if torch.is_grad_enabled():
            return None, None, None, *by_reference(structure.log_partition, ctx.parts, scores, grads)
        found = run_backward(ctx.arrays, ctx.run, as_array(grads[0], np.float64))
        return None, None, None, *_summed(found, scores)


class LogProb(torch.autograd.Function):
    """G(s, x) - log Z [batch] [S0, likelihood] in one node; its gradient is [S0.7]."""

    @staticmethod
    def forward(
        ctx: Any, parts: Segments, arrays: SegmentArrays, run: Forward, starts: Tensor, *scores: Tensor | None
    ) -> Tensor:
        ctx.parts, ctx.arrays, ctx.run, ctx.starts = parts, arrays, run, starts
        ctx.save_for_backward(*scores)
        path_scores = run_path_scores(arrays, starts)
        log_prob = np.full(len(path_scores), -np.inf)
        np.subtract(path_scores, run.log_z, out=log_prob, where=path_scores > -np.inf)
        return as_tensor(np.minimum(log_prob, 0.0), parts.segments.dtype)  # rounding must not pass certainty

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        scores = ctx.saved_tensors
        if torch.is_grad_enabled():
            found = by_reference(lambda parts: structure.log_prob(parts, ctx.starts), ctx.parts, scores, grads)
            return None, None, None, None, *found
        grad = as_array(grads[0], np.float64)
        by_part = run_backward(ctx.arrays, ctx.run, -grad)
        path_kernels.add_path_gradients(ctx.starts.numpy(), ctx.arrays.lengths, grad, *by_part)
        return None, None, None, None, *_summed(by_part, scores)


class Marginals(torch.autograd.Function):
    """p(segment | x) [batch, n, k, c] [S0.6, 10] and the expected number of each label pair [batch, c, c].

    The kernels compute them and their gradient; the gradient is differentiated through the reference.
    """

    @staticmethod
    def forward(
        ctx: Any, parts: Segments, arrays: SegmentArrays, run: Forward, *scores: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        ctx.parts = parts
        ctx.save_for_backward(*scores)
        segments, arcs, _, _ = run_backward(arrays, run, np.ones(len(arrays.lengths)))
        dtype = parts.segments.dtype
        return as_tensor(segments, dtype), as_tensor(arcs, dtype)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        if torch.is_grad_enabled():
            return None, None, None, *by_reference(structure.marginals, ctx.parts, ctx.saved_tensors, grads)
        return None, None, None, *run_tangents(ctx.saved_tensors, ctx.parts.lengths, grads)


def run_path_scores(arrays: SegmentArrays, starts: Tensor) -> Array:
    """G(s, x) of every row."""
    scores = np.empty(len(arrays.lengths))
    path_kernels.path_scores(
        arrays.segments, arrays.transitions, arrays.start, arrays.end, arrays.lengths, starts.numpy(), scores
    )
    return scores


def best_starts(arrays: SegmentArrays) -> tuple[Tensor, Tensor]:
    """Viterbi segmentations [batch, n] as starts, and whether each row has any at all."""
    batch, n, _, _ = arrays.segments.shape
    starts, possible = np.full((batch, n), -1), np.empty(batch, np.bool_)
    over_rows(
        path_kernels.best_starts, batch, arrays.work // 6,
        arrays.segments, arrays.transitions, arrays.start, arrays.end, arrays.lengths, starts, possible,
    )  # fmt: skip
    return torch.from_numpy(starts), torch.from_numpy(possible)


def top_starts(arrays: SegmentArrays, k_best: int) -> tuple[Tensor, Tensor]:
    """The k best [k, batch, n] as starts and their scores [k, batch], -inf where a row has fewer."""
    batch, n, _, _ = arrays.segments.shape
    starts, scores = np.full((k_best, batch, n), -1), np.empty((k_best, batch))
    over_rows(
        path_kernels.top_starts, batch, arrays.work * k_best,
        arrays.segments, arrays.transitions, arrays.start, arrays.end, arrays.lengths, starts, scores,
    )  # fmt: skip
    return torch.from_numpy(starts), torch.from_numpy(scores)


def sample_starts(arrays: SegmentArrays, run: Forward, n_samples: int, generator: torch.Generator | None) -> Tensor:
    """Exact samples [samples, batch, n] as starts, by backward sampling."""
    batch, n, k, c = arrays.segments.shape
    uniforms = torch.rand((n_samples, batch, 2 * n), generator=generator, dtype=torch.float64).numpy()
    starts = np.full((n_samples, batch, n), -1)
    over_rows(
        path_kernels.sample_starts, batch, n_samples * batch * n * (c + k),
        arrays.segments, arrays.transitions, arrays.end, arrays.lengths, run.alphas, run.gammas, run.steps,
        uniforms, starts,
    )  # fmt: skip
    return torch.from_numpy(starts)
