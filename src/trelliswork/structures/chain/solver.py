"""Tag sequences: the passes of the kernels over float64 arrays, both solvers of the queries, and the record.

Autograd keeps O(batch n c) numbers.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from trelliswork.runtime import buffers
from trelliswork.runtime.arrays import Array
from trelliswork.runtime.bridge import as_array, converted
from trelliswork.runtime.kernel_math import first_not_a_score
from trelliswork.runtime.threads import over_rows
from trelliswork.structures.chain import dual_kernels, kernels, path_kernels, structure
from trelliswork.structures.chain.structure import SUMMED_AXES, ArcsBy, Chain
from trelliswork.structures.kernel_solver import KernelSolver, draw_by, top_by, uniforms
from trelliswork.structures.record import Decoded, Example, Scores, Structure
from trelliswork.structures.reference import Reference

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
        """Return arrays in this dtype; None keeps the chain's own."""
        emissions, transitions, start, end = [as_array(scores, dtype) for scores in chain.scores]
        if transitions.ndim == 2:
            transitions = transitions[None, None]
        return ChainArrays(emissions, transitions, start, end, chain.lengths.numpy())

    def double(self) -> ChainArrays:
        """Return the same in float64."""
        if self.emissions.dtype == np.float64:
            return self
        emissions, transitions, start, end = [converted(each, np.float64) for each in self[:4]]
        return ChainArrays(emissions, transitions, start, end, self.lengths)

    def first_not_a_score(self) -> tuple[int, int]:
        """Return (which of the four, flat index) of the first NaN or +inf; (-1, -1) if all are scores."""
        flat = self.emissions.reshape(-1), self.transitions.reshape(-1), self.start, self.end
        return first_not_a_score(flat)

    @property
    def work(self) -> int:
        """Return the multiply-adds of one pass over all arcs."""
        batch, n, c = self.emissions.shape
        return batch * n * c * c


class Forward(NamedTuple):
    """Results of one forward pass: log Z, and α in scaled exp space or, for wide rows, in log space."""

    arcs: Array  # exp of the transitions, rows padded: [1|batch, 1|n-1, c, width]
    alphas: Array
    emits: Array
    finals: Array
    log_z: Array
    wide_rows: Array  # indices into the batch
    log_alphas: Array  # [len(wide_rows), n, c]
    arrivals: Array

    @property
    def wide_at(self) -> Array:
        """The place of each row in log_alphas and arrivals; -1 for rows in scaled exp space."""
        places = np.full(len(self.log_z), -1)
        places[self.wide_rows] = np.arange(len(self.wide_rows))
        return places


def run_forward(arrays: ChainArrays) -> Forward:
    """Return log Z of every row, in scaled exp space where that is exact and in log space where it is not."""
    emissions, transitions = arrays.emissions, arrays.transitions
    batch, n, c = emissions.shape
    arcs = buffers.matrices((*transitions.shape[:3], (c + 7) // 8 * 8))  # rows of whole vector registers
    arc_shifts = np.empty(transitions.shape[:2])
    kernels.exp_arcs(transitions, arcs, arc_shifts)
    alphas, emits = buffers.empty((batch, n, c)), buffers.empty((batch, n, c))
    finals, log_z, wide = np.empty(batch), np.empty(batch), np.empty(batch, np.bool_)
    over_rows(
        kernels.forward_scaled, batch, arrays.work,
        tuple(arrays), arcs, arc_shifts, (alphas, emits, finals, log_z, wide),
    )  # fmt: skip
    if not wide.any():
        return Forward(arcs, alphas, emits, finals, log_z, NO_ROWS, NO_ALPHAS, NO_ALPHAS)
    wide_rows = np.flatnonzero(wide)
    log_alphas, arrivals = np.empty((len(wide_rows), n, c)), np.empty((len(wide_rows), n, c))
    alphas[wide_rows] = 0.0  # what the scaled pass wrote before it gave up; `arc_posteriors` reads every row
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
    """Return gradients of Σ_b grad[b] log Z[b] by emissions, transitions, start and end.

    Arc gradients are summed over all arcs ("batch": [1, 1, c, c]), over each row's arcs ("row": [batch, 1, c, c]),
    or kept apart ("position": [batch, n-1, c, c]).

    Args:
        arrays: the scores of the rows.
        forward: the pass that computed log Z.
        grad: weight of each row [batch].
        arcs_by: whether arcs are summed by "batch", by "row", or kept by "position".

    Returns:
        Gradients [batch, n, c], as said above, [batch, c] and [batch, c].
    """  # [S4.115-120; S1, log Z gradient]
    batch, n, c = forward.alphas.shape
    arcs = forward.arcs
    # Arcs that are shared, and summed, need no factors position by position: the kernel adds up their products.
    apart = arcs_by == "position" or arcs.shape[:2] != (1, 1)
    outgoing = buffers.empty((batch if apart else 0, n, arcs.shape[3]))
    d_emissions = buffers.empty(forward.alphas.shape)
    sums = over_rows(
        kernels.backward_scaled, batch, arrays.work,
        (forward.alphas, forward.emits, forward.finals), arcs, arrays.end, arrays.lengths, grad, d_emissions,
        outgoing, arcs_by == "row",
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


def run_jvp(
    arrays: ChainArrays, forward: Forward, v_emissions: Array, v_arcs: Array
) -> tuple[Array, Array, Array, Array]:
    """Return gradients of Σ v · marginals by emissions, transitions, start and end; v_arcs is [1|batch, 1|n-1, c, c].

    Marginals μ are the gradient of log Z, so their Jacobian is its Hessian, which is symmetric: the product of a vector
    v with it is how μ changes when the scores move along v. One pass forwards and one backwards find that, exactly.

    Args:
        arrays: the scores of the rows.
        forward: the pass that computed log Z.
        v_emissions: weights of the marginals [batch, n, c].
        v_arcs: weights of the pairwise marginals [1|batch, 1|n-1, c, c].

    Returns:
        Gradients shaped like the scores of each row.
    """
    batch, n, c = arrays.emissions.shape
    is_shared = arrays.transitions.shape[:2] == (1, 1) and forward.arcs.shape[0] == 1
    d_emissions = np.zeros((batch, n, c))
    d_transitions = np.zeros((0 if is_shared else batch, n - 1, c, c))
    of_blocks = over_rows(
        dual_kernels.marginals_jvp, batch, 4 * arrays.work,
        forward.wide_at, (arrays.transitions, arrays.end, arrays.lengths), forward.arcs,
        (forward.alphas, forward.emits, forward.log_alphas, forward.arrivals, forward.log_z),
        v_emissions, v_arcs, d_emissions, d_transitions,
    )  # fmt: skip
    shared, d_start, d_end = (sum(each) for each in zip(*of_blocks, strict=True))
    return d_emissions, shared if is_shared else d_transitions, d_start, d_end


def run_path_scores(arrays: ChainArrays, tags: Tensor) -> tuple[Array, int]:
    """Return score(tags) of every row, and the flat index of the first tag out of range (-1: none is)."""
    scores = np.empty(len(arrays.lengths))
    bad: int = path_kernels.path_scores(
        arrays.emissions, arrays.transitions, arrays.start, arrays.end, arrays.lengths, tags.numpy(), scores
    )
    return scores, bad


def run_best(arrays: ChainArrays) -> tuple[Array, Array]:
    """Return the best tags [batch, n], and whether a row has any."""
    batch, n, _ = arrays.emissions.shape
    tags, possible = np.zeros((batch, n), np.int64), np.empty(batch, np.bool_)
    over_rows(path_kernels.best_paths, batch, arrays.work, *arrays, tags, possible)
    return tags, possible


class Kernels(KernelSolver):
    """By kernel."""

    validates_values = True
    module = structure
    _parts: Chain

    def __init__(self, chain: Chain, arrays: ChainArrays | None = None) -> None:
        """`arrays` are those of the chain in its own dtype, if they have been made already."""
        super().__init__(chain)
        if arrays is not None:
            self.given = arrays

    @cached_property
    def given(self) -> ChainArrays:
        """The scores in their own dtype, as searches read them."""
        return ChainArrays.of(self._parts, None)

    @cached_property
    def arrays(self) -> ChainArrays:
        """The scores in float64, as sums read them."""
        return self.given.double()

    @cached_property
    def run(self) -> Forward:
        return run_forward(self.arrays)

    def _gradients(self, grad: Array) -> tuple[Array, ...]:
        return run_backward(self.arrays, self.run, grad, "batch" if self._parts.transitions.dim() == 2 else "position")

    def log_prob(self, values: Tensor) -> Tensor | None:
        """Return score(tags) - log Z; None if a tag is out of range."""  # [S4.114]
        path_scores, bad = run_path_scores(self.arrays, values)
        if bad >= 0:
            return None

        def vjp(grad: Array) -> tuple[Array, ...]:
            by_part = self._gradients(-grad)
            path_kernels.add_path_gradients(values.numpy(), self.arrays.lengths, grad, *by_part)
            return by_part

        return self._log_probs(path_scores, values, vjp)

    def marginals(self, arcs_by: ArcsBy = "position") -> tuple[Tensor, Tensor]:
        """Return p(y_t | x) [batch, n, c] and arc posteriors, summed as `arcs_by` says."""  # [S4.106-107]
        unary, arcs, _, _ = run_backward(self.arrays, self.run, np.ones(len(self.arrays.lengths)), arcs_by)

        def vjp(*grads: Array) -> tuple[Array, ...]:
            return run_jvp(self.arrays, self.run, *grads)

        posteriors: tuple[Tensor, Tensor] = self._posteriors(
            (torch.from_numpy(unary), torch.from_numpy(arcs)), vjp, arcs_by
        )
        return posteriors

    def best(self) -> Decoded:
        tags, possible = run_best(self.given)
        return torch.from_numpy(tags), torch.from_numpy(possible)

    def top_k(self, k: int) -> Decoded:
        return top_by(path_kernels.top_paths, self.arrays.work * k, _no_tags(self.arrays, k), *self.arrays)

    def sample(self, n_samples: int, generator: torch.Generator | None) -> Tensor:
        """Draw by backward sampling."""
        arrays, run, tags = self.arrays, self.run, _no_tags(self.arrays, n_samples)
        scores = arrays.transitions, arrays.end, arrays.lengths
        given = scores, run.arcs, run.wide_at, (run.alphas, run.log_alphas, run.arrivals)
        return draw_by(path_kernels.sample_paths, tags.size, tags, *given, uniforms(tags.shape, generator))


def _no_tags(arrays: ChainArrays, *lead: int) -> Array:
    return np.zeros((*lead, *arrays.emissions.shape[:2]), np.int64)


class ChainReference(Reference):
    """In plain torch."""

    def __init__(self, chain: Chain) -> None:
        super().__init__(structure, chain.double())

    def marginals(self, arcs_by: ArcsBy = "position") -> tuple[Tensor, Tensor]:
        return structure.marginals(self._parts[0], arcs_by)

    def best(self) -> Decoded:
        tags, scores = structure.viterbi(*self._parts)
        return tags, scores.detach() > -np.inf


def example(scores: Scores) -> Example:
    return {"emissions": scores(2, 3, 2), "transitions": scores(2, 2)}


STRUCTURE = Structure("chain", ChainReference, Kernels, example)
