"""Segmentations: the passes of the kernels over float64 arrays, both solvers of the queries, and the record.

Besides the scores autograd keeps O(batch n c) numbers: segment weights are computed again on the way back.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from trelliswork.runtime import buffers
from trelliswork.runtime.arrays import Array
from trelliswork.runtime.autograd import differentiable
from trelliswork.runtime.bridge import as_array, as_tensor
from trelliswork.runtime.kernel_math import first_not_a_score, shifted_exp
from trelliswork.runtime.threads import over_rows, row_ranges
from trelliswork.semirings import Max
from trelliswork.structures.chain.scan import kind_of
from trelliswork.structures.kernel_solver import KernelSolver, best_by, top_by, uniforms
from trelliswork.structures.record import Decoded, Example, Scores, Structure
from trelliswork.structures.reference import Reference
from trelliswork.structures.segments import dual_kernels, kernels, path_kernels, scaled_kernels, scan, structure
from trelliswork.structures.segments.factored import Factored
from trelliswork.structures.segments.likelihood_kernels import backward_rows, forward_rows
from trelliswork.structures.segments.structure import SegmentationScores, Segments

# log p(segmentation) of a plain batch in one kernel forward and one backward.
#
# A training step on a small batch takes some 200 µs of arithmetic, and a kernel for each part as long again.

Run = tuple[Array, ...]  # arcs, shifts, alphas, gammas, levels and finals of `forward_rows`


def log_likelihood(scores: SegmentationScores, arrays: SegmentArrays, starts: Tensor) -> Tensor | None:
    """Return log p(starts) [batch], for whole scores and their arrays; None where the general way is needed instead.

    That is for work for several threads, wide scores, and segmentations that are wrong or forbidden.

    Args:
        scores: segments [batch, n, k, c], transitions, start and end.
        arrays: the same scores as arrays, and the lengths.
        starts: the label at each token that starts a segment [batch, n], negative elsewhere.

    Returns:
        Log probabilities, differentiable by the scores; or None.
    """  # [S0, likelihood]
    batch, n, _, c = arrays.shape
    if len(row_ranges(batch, arrays.work)) > 1:
        return None
    gold, own, log_probs = as_array(starts), arrays[:4], np.empty(batch)
    run = (
        np.empty(arrays.transitions.shape), np.empty(3), buffers.empty((batch, n + 1, c)), buffers.empty((batch, n, c)),
        np.empty((batch, n + 1)), np.empty(batch),
    )  # fmt: skip
    if not forward_rows(own, arrays.lengths, gold, run, log_probs):
        return None

    def reference(segments: Tensor, transitions: Tensor | None, start: Tensor, end: Tensor) -> Tensor:
        parts = Segments(segments, transitions, start, end, torch.from_numpy(arrays.lengths))
        return structure.log_prob(parts, torch.from_numpy(gold))

    vjp = partial(_gradients, scores=own, lengths=arrays.lengths, starts=gold, run=run)
    log_prob: Tensor = differentiable(as_tensor(log_probs, scores[0].dtype), scores, vjp, reference)
    return log_prob


def _gradients(grad: Array, scores: tuple[Any, ...], lengths: Array, starts: Array, run: Run) -> tuple[Array, ...]:
    """Return the gradients of Σ grad · log p(starts), by segments, transitions, start and end."""
    d_segments = buffers.empty(scores[0].shape)
    return d_segments, *backward_rows(scores, lengths, starts, grad, run, d_segments)


Parts = Segments | Factored
PartArrays = Array | tuple[Array, Array, Array, Array]
Gradients = tuple[PartArrays, Array, Array, Array]  # of the parts, and for each row of arcs, start and end scores
NO_SHIFTS = np.zeros(3)


class SegmentArrays(NamedTuple):
    """The scores as C-contiguous arrays; `transitions` is [c, c], or [0, 0] for the 0th order.

    `parts` are the scores of segments [batch, n, k, c], or what they are made of: `part_kernels.py`.
    """

    parts: PartArrays
    transitions: Array
    start: Array
    end: Array
    lengths: Array

    @staticmethod
    def of(given: Parts, dtype: type | None = np.float64) -> SegmentArrays:
        """Return arrays in this dtype; None keeps the scores' own. Factored scores are always float64."""
        dtype = dtype if isinstance(given, Segments) else np.float64
        start, end = as_array(given.start, dtype), as_array(given.end, dtype)
        own = given.transitions
        transitions = np.empty((0, 0), start.dtype) if own is None else as_array(own, dtype)
        parts: PartArrays
        if isinstance(given, Segments):
            parts = as_array(given.segments, dtype)
        else:
            nothing = np.empty((0, 0, 0))
            starts, ends = (nothing if each is None else as_array(each, dtype) for each in (given.starts, given.ends))
            parts = as_array(given.tokens, dtype), as_array(given.durations, dtype), starts, ends
        return SegmentArrays(parts, transitions, start, end, given.lengths.numpy())

    def first_not_a_score(self) -> tuple[int, int]:
        """Return (which array, flat index) of the first NaN or +inf; (-1, -1) if all are scores."""
        parts = self.parts if isinstance(self.parts, tuple) else (self.parts,)
        arrays = (*parts, self.transitions, self.start, self.end)
        return first_not_a_score(tuple(each.reshape(-1) for each in arrays))

    def rows(self, rows: Array) -> SegmentArrays:
        """Return some rows of a batch of whole scores."""
        assert not isinstance(self.parts, tuple)
        return self._replace(parts=self.parts[rows], lengths=self.lengths[rows])

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """batch, n, k, c."""
        if isinstance(self.parts, tuple):
            (batch, n, c), k = self.parts[0].shape, len(self.parts[1])
        else:
            batch, n, k, c = self.parts.shape
        return batch, n, k, c

    @property
    def work(self) -> int:
        """Return the multiply-adds of one pass, an exponential counted as a dozen."""
        batch, n, k, c = self.shape
        return batch * n * c * (12 * k + len(self.transitions))


class LogForward(NamedTuple):
    """Results of a forward pass in log space: log Z, and α, γ, shifted by the sums of `steps`."""

    arcs: Array  # exp of the transitions, [c, c]
    arc_shift: float
    alphas: Array  # [batch, n+1, c], of boundaries 1..L
    gammas: Array  # [batch, n, c], of boundaries 0..L-1
    steps: Array  # [batch, n+1]
    log_z: Array


class Forward(NamedTuple):
    """Results of a forward pass in scaled exp space, and of one in log space for the rows that need it."""

    arcs: Array
    shifts: Array  # of arcs, start and end scores
    alphas: Array
    gammas: Array
    levels: Array
    finals: Array
    log_z: Array
    wide: Array
    again: LogForward | None  # of the rows where `wide` is True


def _passes(run: Forward | LogForward) -> tuple[tuple[Array, Array, Array], Array]:
    """Return α, γ and their levels (or steps), and which rows are left to the pass in log space."""
    if isinstance(run, LogForward):
        return (run.alphas, run.gammas, run.steps), np.zeros(len(run.log_z), np.bool_)
    return (run.alphas, run.gammas, run.levels), run.wide


def _shifts(run: Forward | LogForward) -> Array:
    return NO_SHIFTS if isinstance(run, LogForward) else run.shifts


def run_log_forward(arrays: SegmentArrays) -> LogForward:
    """Return log Z of every row and what its gradient and sampling need."""
    batch, n, _, c = arrays.shape
    arcs = np.empty(arrays.transitions.shape)
    arc_shift = shifted_exp(arrays.transitions.ravel(), arcs.ravel()) if arcs.size else 0.0
    alphas, gammas = buffers.empty((batch, n + 1, c)), buffers.empty((batch, n, c))
    run = LogForward(arcs, arc_shift, alphas, gammas, np.empty((batch, n + 1)), np.empty(batch))
    over_rows(
        kernels.forward_log, batch, arrays.work,
        tuple(arrays), arcs, arc_shift, (alphas, gammas, run.steps, run.log_z),
    )  # fmt: skip
    return run


def run_forward(arrays: SegmentArrays) -> Forward | LogForward:
    """Return log Z of every row and what its gradient needs.

    In scaled exp space where scores are whole and not too wide.
    """
    if isinstance(arrays.parts, tuple):
        return run_log_forward(arrays)
    batch, n, k, c = arrays.shape
    arcs, shifts = np.empty(arrays.transitions.shape), np.empty(3)
    scaled_kernels.exp_arcs(arrays.transitions, arrays.start, arrays.end, arcs, shifts)
    run = Forward(
        arcs, shifts, buffers.empty((batch, n + 1, c)), buffers.empty((batch, n, c)), np.empty((batch, n + 1)),
        np.empty(batch), np.empty(batch), np.empty(batch, np.bool_), None,
    )  # fmt: skip
    over_rows(
        scaled_kernels.forward_scaled, batch, arrays.work,
        tuple(arrays), arrays.parts.reshape(batch, n, k * c), arcs, shifts, tuple(run[2:8]),
    )  # fmt: skip
    if not run.wide.any():
        return run
    again = run_log_forward(arrays.rows(run.wide))
    run.log_z[run.wide] = again.log_z
    return run._replace(again=again)


def run_backward(arrays: SegmentArrays, run: Forward | LogForward, grad: Array) -> Gradients:
    """Return gradients of Σ_b grad[b] log Z[b] by the parts, and for each row by arcs, start and end.

    Args:
        arrays: the scores of the rows.
        run: the pass that computed log Z.
        grad: weight of each row [batch].

    Returns:
        Gradients shaped like the scores.
    """  # [S0.7-8, 10]
    if isinstance(run, LogForward):
        return _run_log_backward(arrays, run, grad)
    batch, n, k, c = arrays.shape
    assert not isinstance(arrays.parts, tuple)
    d_segments = buffers.empty((batch, n, k, c))
    d_arcs, d_start, d_end = np.zeros((batch, *run.arcs.shape)), np.zeros((batch, c)), np.zeros((batch, c))
    over_rows(
        scaled_kernels.backward_scaled, batch, arrays.work,
        arrays.parts.reshape(batch, n, k * c), run.arcs, run.shifts, arrays.end, arrays.lengths,
        (run.alphas, run.gammas, run.levels, run.finals, run.wide), grad,
        (d_segments, d_segments.reshape(batch, n, k * c), d_arcs, d_start, d_end),  # two shapes of the same memory
    )  # fmt: skip
    if run.again is not None:
        of_wide_rows = _run_log_backward(arrays.rows(run.wide), run.again, grad[run.wide])
        for whole, some in zip((d_segments, d_arcs, d_start, d_end), of_wide_rows, strict=True):
            whole[run.wide] = some
    return d_segments, d_arcs, d_start, d_end


def _run_log_backward(arrays: SegmentArrays, run: LogForward, grad: Array) -> Gradients:
    batch, n, k, c = arrays.shape
    gradients: PartArrays
    if isinstance(arrays.parts, tuple):
        tokens, _, starts, ends = arrays.parts
        gradients = np.zeros(tokens.shape), np.zeros((batch, k, c)), np.zeros(starts.shape), np.zeros(ends.shape)
    else:
        gradients = buffers.empty((batch, n, k, c))
        gradients.fill(0.0)
    d_arcs, d_start, d_end = np.zeros((batch, *run.arcs.shape)), np.zeros((batch, c)), np.zeros((batch, c))
    over_rows(
        kernels.backward_log, batch, arrays.work,
        tuple(arrays), run.arcs, run.arc_shift, (run.alphas, run.gammas, run.steps, run.log_z), grad,
        (gradients, d_arcs, d_start, d_end),
    )  # fmt: skip
    return gradients, d_arcs, d_start, d_end


def sum_shared(gradients: Gradients) -> tuple[Array, ...]:
    """Return gradients of the shared scores added up over rows."""  # [S0.8]
    parts, *shared = gradients
    own: tuple[Array, ...]
    if isinstance(parts, tuple):
        tokens, durations, starts, ends = parts
        own = (tokens, durations.sum(0), starts, ends)
    else:
        own = (parts,)
    return *own, *(each.sum(0) for each in shared)


def run_jvp(
    arrays: SegmentArrays, run: Forward | LogForward, v_segments: Array, v_arcs: Array
) -> tuple[Array, Array, Array, Array]:
    """Return gradients of Σ v · (posteriors of segments, expected label pairs) by segments, transitions, start and end.

    Args:
        arrays: the scores of the rows.
        run: the pass that computed log Z.
        v_segments: weights of the posteriors of segments [batch, n, k, c].
        v_arcs: weights of the expected label pairs [c, c] of each row.

    Returns:
        Gradients shaped like the scores.
    """
    batch, _, _, c = arrays.shape
    passed, left_out = _passes(run)
    arcs = run.arcs
    if not len(arcs):  # the 0th order: all arcs score 0, and there are no pairs to ask for
        arrays, arcs, v_arcs = arrays._replace(transitions=np.zeros((c, c))), np.ones((c, c)), np.zeros((batch, c, c))
    d_segments = np.zeros(v_segments.shape)
    of_blocks = over_rows(
        dual_kernels.marginals_jvp, batch, 8 * arrays.work,
        isinstance(run, LogForward), tuple(arrays), (arcs, _shifts(run)), passed, left_out | (run.log_z == -np.inf),
        v_segments, v_arcs, d_segments,
    )  # fmt: skip
    others: list[Array] = [sum(each) for each in zip(*of_blocks, strict=True)]
    if isinstance(run, Forward) and run.again is not None:
        wide = run.wide
        d_segments[wide], *more = run_jvp(arrays.rows(wide), run.again, v_segments[wide], v_arcs[wide])
        others = [mine + each for mine, each in zip(others, more, strict=True)]
    return d_segments, others[0], others[1], others[2]


def run_path_scores(arrays: SegmentArrays, starts: Tensor) -> Array:
    """Return G(s, x) of every row."""
    scores = np.empty(len(arrays.lengths))
    path_kernels.path_scores(
        arrays.parts, arrays.transitions, arrays.start, arrays.end, arrays.lengths, starts.numpy(), scores
    )
    return scores


def run_samples(arrays: SegmentArrays, run: Forward | LogForward, uniforms: Array) -> Array:
    """Return the segmentations [samples, batch, n] that uniform numbers [samples, batch, 2 n] pick.

    Args:
        arrays: the scores of the rows.
        run: the pass that computed log Z.
        uniforms: numbers in [0, 1), two for each token of a sample.

    Returns:
        The label at each token that starts a segment, negative elsewhere.
    """
    starts = _no_starts(arrays, len(uniforms))
    passed, left_out = _passes(run)
    over_rows(
        path_kernels.sample_starts, len(left_out), starts.size * 4,
        isinstance(run, LogForward), tuple(arrays), run.arcs, _shifts(run), passed, left_out, uniforms, starts,
    )  # fmt: skip
    if isinstance(run, Forward) and run.again is not None:
        starts[:, run.wide] = run_samples(arrays.rows(run.wide), run.again, uniforms[:, run.wide])
    return starts


class Kernels(KernelSolver):
    """By kernel. Values are starts [rows, n]: the label where a segment starts, -1 elsewhere."""

    module = structure
    _parts: Segments | Factored

    @cached_property
    def arrays(self) -> SegmentArrays:
        return SegmentArrays.of(self._parts)

    @cached_property
    def run(self) -> Forward | LogForward:
        return run_forward(self.arrays)

    def _moved(self, scores: tuple[Tensor | None, ...]) -> tuple[Any, ...]:
        parts: Any = self._parts
        return (parts.with_scores(*scores).whole(),)

    def _gradients(self, grad: Array) -> tuple[Array, ...]:
        return sum_shared(run_backward(self.arrays, self.run, grad))

    def fused_log_prob(self, values: Tensor) -> Tensor | None:
        """Return `log_prob` of a plain batch of whole scores in one kernel; None where that does not do."""
        return log_likelihood(self._parts.scores, self.arrays, values) if isinstance(self._parts, Segments) else None

    def log_prob(self, values: Tensor) -> Tensor:
        """Return G(s, x) - log Z; its gradient is observed less expected."""  # [S0, likelihood; S0.7]

        def vjp(grad: Array) -> tuple[Array, ...]:
            by_part = run_backward(self.arrays, self.run, -grad)
            path_kernels.add_path_gradients(values.numpy(), self.arrays.lengths, grad, *by_part)
            return sum_shared(by_part)

        return self._log_probs(run_path_scores(self.arrays, values), values, vjp)

    def marginals(self) -> tuple[Tensor, Tensor]:
        """p(segment | x) [batch, n, k, c] and the expected number of each label pair [batch, c, c]."""  # [S0.6, 10]
        parts = self._parts
        if isinstance(parts, Factored):  # the answer has a number for each segment: nothing is saved by factors
            return Kernels(parts.double().whole()).marginals()
        segments, arcs, _, _ = run_backward(self.arrays, self.run, np.ones(len(self.arrays.lengths)))
        assert not isinstance(segments, tuple)

        def vjp(*grads: Array) -> tuple[Array, ...]:
            return run_jvp(self.arrays, self.run, *grads)

        posteriors: tuple[Tensor, Tensor] = self._posteriors((torch.from_numpy(segments), torch.from_numpy(arcs)), vjp)
        return posteriors

    def score(self, values: Tensor) -> Tensor:
        return self._parts.path_score(values)

    def best(self) -> Decoded:
        """Return the best by Viterbi."""
        arrays = SegmentArrays.of(self._parts, None)  # comparisons need no more digits than the scores have
        return best_by(path_kernels.best_starts, arrays.work // 6, _no_starts(arrays), *arrays)

    def top_k(self, k: int) -> Decoded:
        return top_by(path_kernels.top_starts, self.arrays.work * k, _no_starts(self.arrays, k), *self.arrays)

    def sample(self, n_samples: int, generator: torch.Generator | None) -> Tensor:
        """Draw by backward sampling."""
        batch, n, _, _ = self.arrays.shape
        drawn = run_samples(self.arrays, self.run, uniforms((n_samples, batch, 2 * n), generator))
        return torch.from_numpy(drawn)


def _no_starts(arrays: SegmentArrays, *lead: int) -> Array:
    return np.full((*lead, *arrays.shape[:2]), -1)


class SegmentReference(Reference):
    """In plain torch."""

    def __init__(self, parts: Segments | Factored) -> None:
        super().__init__(structure, parts.double().whole())

    def best(self) -> Decoded:
        """Return the best segmentations; ties are broken as by kernel on the CPU, elsewhere in any way."""
        if kind_of(self._parts[0].start.device) != "cpu" and scan.applies(self._parts[0], Max()):
            return super().best()
        starts, scores = structure.viterbi(*self._parts)
        return starts, scores.detach() > -np.inf


def example(scores: Scores) -> Example:
    return {"segments": scores(2, 3, 2, 2), "transitions": scores(2, 2)}


STRUCTURE = Structure("segments", SegmentReference, Kernels, example)
