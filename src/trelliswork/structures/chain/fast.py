"""The chain's queries by kernel: torch tensors in and out, float64 arrays inside, analytic gradients.

`LogPartition`, `LogProb` and `Marginals` are autograd functions. Their gradients come from the kernels; when a
gradient is itself differentiated, the reference of `structure.py` takes over, so derivatives of every order are
exact. Autograd keeps O(batch n c) numbers.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from trelliswork.runtime import buffers
from trelliswork.runtime.bridge import as_array, as_tensor, by_reference, to_tensors
from trelliswork.runtime.kernel_math import first_not_a_score
from trelliswork.runtime.threads import over_rows, row_ranges, side_by_side
from trelliswork.structures.chain import kernels, path_kernels, structure
from trelliswork.structures.chain.structure import Chain
from trelliswork.structures.chain.tangents import run_tangents

Array = np.ndarray[Any, Any]
ArcsBy = Literal["batch", "row", "position"]
SUMMED_AXES: dict[ArcsBy, tuple[int, ...]] = {"batch": (0, 1), "row": (1,), "position": ()}
NO_ROWS, NO_ALPHAS = np.empty(0, np.int64), np.empty((0, 0, 0))


class ChainArrays(NamedTuple):
    """A chain's scores as C-contiguous arrays; `transitions` is [1, 1, c, c] or [batch, n-1, c, c]."""

    emissions: Array
    transitions: Array
    start: Array
    end: Array
    lengths: Array

    @staticmethod
    def of(chain: Chain, dtype: type | None = np.float64) -> ChainArrays:
        """Arrays in this dtype; None keeps the chain's own."""
        emissions, transitions, start, end = (as_array(scores, dtype) for scores in chain.scores)
        if transitions.ndim == 2:
            transitions = transitions[None, None]
        return ChainArrays(emissions, transitions, start, end, chain.lengths.numpy())

    def first_not_a_score(self) -> tuple[int, int]:
        """(which of the four, flat index) of the first NaN or +inf; (-1, -1) if all are scores."""
        return first_not_a_score(self.emissions.reshape(-1), self.transitions.reshape(-1), self.start, self.end)

    @property
    def work(self) -> int:
        """Multiply-adds of one pass over all arcs."""
        batch, n, c = self.emissions.shape
        return batch * n * c * c


class Forward(NamedTuple):
    """What one forward pass leaves behind: log Z, and α in scaled exp space or, for wide rows, in log space."""

    arcs: Array  # exp of the transitions, rows padded: [1|batch, 1|n-1, c, width]
    alphas: Array
    emits: Array
    finals: Array
    log_z: Array
    wide_rows: Array  # indices into the batch
    log_alphas: Array  # [len(wide_rows), n, c]
    arrivals: Array


def run_forward(arrays: ChainArrays) -> Forward:
    """log Z of every row, in scaled exp space where that is exact and in log space where it is not."""
    emissions, transitions = arrays.emissions, arrays.transitions
    batch, n, c = emissions.shape
    arcs = buffers.empty((*transitions.shape[:3], (c + 7) // 8 * 8))
    arc_shifts = np.empty(transitions.shape[:2])
    kernels.exp_arcs(transitions, arcs, arc_shifts)
    alphas, emits = buffers.empty((batch, n, c)), buffers.empty((batch, n, c))
    finals, log_z, wide = np.empty(batch), np.empty(batch), np.empty(batch, np.bool_)
    over_rows(
        kernels.forward_scaled, batch, arrays.work,
        emissions, transitions, arcs, arc_shifts, arrays.start, arrays.end, arrays.lengths,
        alphas, emits, finals, log_z, wide,
    )  # fmt: skip
    if not wide.any():
        return Forward(arcs, alphas, emits, finals, log_z, NO_ROWS, NO_ALPHAS, NO_ALPHAS)
    wide_rows = np.flatnonzero(wide)
    log_alphas, arrivals = np.empty((len(wide_rows), n, c)), np.empty((len(wide_rows), n, c))
    alphas[wide_rows] = 0.0
    kernels.forward_log(
        wide_rows,
        emissions,
        transitions,
        arrays.start,
        arrays.end,
        arrays.lengths,
        log_alphas,
        arrivals,
        log_z,
    )
    return Forward(arcs, alphas, emits, finals, log_z, wide_rows, log_alphas, arrivals)


def run_backward(
    arrays: ChainArrays, forward: Forward, grad: Array, arcs_by: ArcsBy
) -> tuple[Array, Array, Array, Array]:
    """Gradients of Σ_b grad[b] log Z[b] by emissions, transitions, start and end [S4.115-120; S1, log Z gradient].

    Arc gradients are summed over all arcs ("batch": [1, 1, c, c]), over each row's arcs ("row": [batch, 1, c, c]),
    or kept apart ("position": [batch, n-1, c, c]).
    """
    batch, n, c = forward.alphas.shape
    arcs = forward.arcs
    apart = arcs_by == "position" or arcs.shape[:2] != (1, 1)
    outgoing = buffers.empty((batch if apart else 0, n, arcs.shape[3]))
    d_emissions = buffers.empty(forward.alphas.shape)
    sums = over_rows(
        kernels.backward_scaled, batch, arrays.work,
        forward.alphas, forward.emits, arcs, arrays.end, forward.finals, arrays.lengths, grad, d_emissions, outgoing,
        arcs_by == "row",
    )  # fmt: skip
    if apart:
        d_transitions = np.empty((batch, n - 1, c, c))
        kernels.arc_posteriors(forward.alphas, arcs, outgoing, d_transitions)
        d_transitions = d_transitions.sum(SUMMED_AXES[arcs_by], keepdims=True)
    else:
        d_transitions = (np.concatenate(sums) if arcs_by == "row" else sum(sums))[:, None, :, :c] * arcs[..., :c]
    if len(forward.wide_rows):
        kernels.backward_log(
            forward.wide_rows, arrays.transitions, arrays.end, arrays.lengths, forward.log_alphas, forward.arrivals,
            forward.log_z, grad, d_emissions, d_transitions,
        )  # fmt: skip
    d_start, d_end = np.zeros(arrays.start.shape), np.zeros(arrays.end.shape)
    kernels.edge_gradients(d_emissions, arrays.lengths, d_start, d_end)
    return d_emissions, d_transitions, d_start, d_end


def _arcs_of(chain: Chain) -> ArcsBy:
    return "batch" if chain.transitions.dim() == 2 else "position"


class LogPartition(torch.autograd.Function):
    """log Z [batch]; `LogPartition.apply(chain, arrays, run_forward(arrays), *chain.scores)`."""

    @staticmethod
    def forward(ctx: Any, chain: Chain, arrays: ChainArrays, run: Forward, *scores: Tensor) -> Tensor:
        ctx.chain, ctx.arrays, ctx.run = chain, arrays, run
        ctx.save_for_backward(*scores)
        return as_tensor(run.log_z.copy(), scores[0].dtype)  # `run` is used again: its numbers are not handed out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        scores = ctx.saved_tensors
        if torch.is_grad_enabled():
            return None, None, None, *by_reference(structure.log_partition, ctx.chain, scores, grads)
        grad = as_array(grads[0], np.float64)
        found = run_backward(ctx.arrays, ctx.run, grad, _arcs_of(ctx.chain))
        return None, None, None, *to_tensors(found, scores)


class LogProb(torch.autograd.Function):
    """score(tags) - log Z [batch] [S4.114] in one node, from `run_forward` and `run_path_scores` of the same chain."""

    @staticmethod
    def forward(
        ctx: Any, chain: Chain, arrays: ChainArrays, run: Forward, tags: Tensor, path_scores: Array, *scores: Tensor
    ) -> Tensor:
        ctx.chain, ctx.arrays, ctx.run, ctx.tags = chain, arrays, run, tags
        ctx.save_for_backward(*scores)
        log_prob = np.full(len(path_scores), -np.inf)
        np.subtract(path_scores, run.log_z, out=log_prob, where=path_scores > -np.inf)
        return as_tensor(np.minimum(log_prob, 0.0), scores[0].dtype)  # rounding must not pass certainty

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        scores = ctx.saved_tensors
        if torch.is_grad_enabled():
            found = by_reference(lambda chain: structure.log_prob(chain, ctx.tags), ctx.chain, scores, grads)
            return None, None, None, None, None, *found
        grad = as_array(grads[0], np.float64)
        found = run_backward(ctx.arrays, ctx.run, -grad, _arcs_of(ctx.chain))
        path_kernels.add_path_gradients(ctx.tags.numpy(), ctx.arrays.lengths, grad, *found)
        return None, None, None, None, None, *to_tensors(found, scores)


def sum_arcs(arcs: Tensor, arcs_by: ArcsBy) -> Tensor:
    """Arc posteriors [batch, n-1, c, c] summed as asked, axes kept."""
    axes = SUMMED_AXES[arcs_by]
    return arcs.sum(axes, keepdim=True) if axes else arcs


class Marginals(torch.autograd.Function):
    """p(y_t | x) [batch, n, c] [S4.107] and arc posteriors [S4.106], summed as `arcs_by` says (see `run_backward`).

    The kernels compute them and their gradient; the gradient is differentiated through the reference.
    """

    @staticmethod
    def forward(
        ctx: Any, chain: Chain, arrays: ChainArrays, run: Forward, arcs_by: ArcsBy, *scores: Tensor
    ) -> tuple[Tensor, Tensor]:
        ctx.chain, ctx.arrays, ctx.run, ctx.arcs_by = chain, arrays, run, arcs_by
        ctx.save_for_backward(*scores)
        unary, arcs, _, _ = run_backward(arrays, run, np.ones(len(arrays.lengths)), arcs_by)
        dtype = scores[0].dtype
        return as_tensor(unary, dtype), as_tensor(arcs, dtype)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        def marginals(chain: Chain) -> tuple[Tensor, Tensor]:
            unary, arcs = structure.marginals(chain)
            return unary, sum_arcs(arcs, ctx.arcs_by)

        scores = ctx.saved_tensors
        if torch.is_grad_enabled():
            return None, None, None, None, *by_reference(marginals, ctx.chain, scores, grads)
        found = run_tangents(ctx.arrays, ctx.run, *(as_array(grad, np.float64) for grad in grads))
        return None, None, None, None, *to_tensors(found, scores)


def run_path_scores(arrays: ChainArrays, tags: Tensor) -> tuple[Array, int]:
    """score(tags) of every row, and the flat index of the first tag out of range (-1: none is)."""
    scores = np.empty(len(arrays.lengths))
    bad: int = path_kernels.path_scores(
        arrays.emissions, arrays.transitions, arrays.start, arrays.end, arrays.lengths, tags.numpy(), scores
    )
    return scores, bad


def best_paths(arrays: ChainArrays) -> tuple[Array, Array]:
    """Viterbi paths [batch, n] (0 at padding) and whether each row has any path at all."""
    batch, n, _ = arrays.emissions.shape
    tags, possible = np.zeros((batch, n), np.int64), np.empty(batch, np.bool_)
    over_rows(
        path_kernels.best_paths, batch, arrays.work,
        arrays.emissions, arrays.transitions, arrays.start, arrays.end, arrays.lengths, tags, possible,
    )  # fmt: skip
    return tags, possible


def decode(emissions: Tensor, others: tuple[Array, Array, Array], mask: Tensor | None) -> list[list[int]] | None:
    """`best_paths` as lists, with the least work per call; None where `decode_rows` wants the general way instead.

    `others` are transitions [1, 1, c, c], start and end, in the dtype of the emissions.
    """
    batch, n, c = emissions.shape
    valid = np.ones((batch, n), np.bool_) if mask is None else as_array(mask if mask.dtype == torch.bool else mask != 0)
    scores = as_array(emissions)
    ranges = row_ranges(batch, batch * n * c * c)
    if len(ranges) == 1:
        fine, lengths, tags = path_kernels.decode_rows(scores, *others, valid)
    else:
        calls = [partial(path_kernels.decode_rows, scores[a:z], *others, valid[a:z]) for a, z in ranges]
        fines, *found = zip(*side_by_side(calls), strict=True)
        fine, lengths, tags = all(fines), *map(np.concatenate, found)
    if not fine:
        return None
    return [row[:length] for row, length in zip(tags.tolist(), lengths.tolist(), strict=True)]


def top_paths(arrays: ChainArrays, k: int) -> tuple[Tensor, Array]:
    """The k best paths [k, batch, n] and their scores [k, batch], -inf where a row has fewer."""
    batch, n, _ = arrays.emissions.shape
    tags, scores = np.zeros((k, batch, n), np.int64), np.empty((k, batch))
    over_rows(
        path_kernels.top_paths, batch, arrays.work * k,
        arrays.emissions, arrays.transitions, arrays.start, arrays.end, arrays.lengths, tags, scores,
    )  # fmt: skip
    return torch.from_numpy(tags), scores


def sample_paths(arrays: ChainArrays, forward: Forward, n_samples: int, generator: torch.Generator | None) -> Tensor:
    """Exact samples [samples, batch, n] (0 at padding) by backward sampling."""
    batch, n, c = arrays.emissions.shape
    with np.errstate(divide="ignore"):
        log_alphas = np.log(forward.alphas)
    if len(forward.wide_rows):
        log_alphas[forward.wide_rows] = forward.log_alphas
    uniforms = torch.rand((n_samples, batch, n), generator=generator, dtype=torch.float64).numpy()
    tags = np.zeros((n_samples, batch, n), np.int64)
    over_rows(
        path_kernels.sample_paths, batch, n_samples * batch * n * c,
        log_alphas, arrays.transitions, arrays.end, arrays.lengths, uniforms, tags,
    )  # fmt: skip
    return torch.from_numpy(tags)
