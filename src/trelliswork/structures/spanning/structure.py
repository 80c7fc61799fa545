"""Spanning trees in plain torch: the matrix-tree theorem by elimination without subtraction, in log space.

The Laplacian's determinant is the sum over trees. Gaussian elimination would subtract numbers that
may agree in all digits: two words that prefer each other by 40 nats leave 0 of the true determinant. Grassmann,
Taksar and Heyman eliminate the same matrix with sums of positive numbers only, so it works on logarithms: exact for
any range of scores, with real -inf, differentiable as often as you like. Equations are in `math.md`.
"""  # [S2, matrix-tree]

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from trelliswork.runtime.arrays import INF, Bool, Float
from trelliswork.semirings.log import logsumexp
from trelliswork.structures.arcs import Arcs
from trelliswork.structures.reference import posteriors


class Step(NamedTuple):
    """One node taken out: which (one-hot, all False in rows that have no more), and log A[v, m] - log d_v."""

    node: Bool[Tensor, "batch size"]
    log_ratio: Float[Tensor, "batch size"]


def log_laplacian_determinant(trees: Arcs) -> Float[Tensor, "batch"]:
    """log Z over trees in which any number of words hang from the root: det(diag(ρ + column sums) - A)."""
    eliminable = torch.cat([torch.zeros_like(trees.word_mask[:, :1]), trees.word_mask], 1)
    log_det, _, _ = _eliminate(trees.arcs, eliminable, trees.lengths)
    return log_det


def log_single_root_sum(trees: Arcs) -> Float[Tensor, "batch"]:
    """log Z over trees with one root word: log Σ_r ρ_r τ_r, τ_r the weight of all trees over the words rooted in r.

    τ_r = τ_u π_r for the stationary π of the walk from words to their heads (Markov chain tree theorem), and u the
    word that is left at the end: π_u = 1, π_v = Σ_m π_m A[v, m] / d_v in the reverse order of elimination.
    """
    log_det, steps, last = _eliminate(trees.arcs[:, 1:, 1:], trees.word_mask, trees.lengths - 1)
    log_pi = torch.where(last, torch.zeros_like(trees.arcs[:, 0, 1:]), -INF)
    for step in reversed(steps):
        entered = logsumexp(log_pi + step.log_ratio, dim=-1)
        log_pi = torch.where(step.node, entered[:, None], log_pi)
    return log_det + logsumexp(trees.arcs[:, 0, 1:] + log_pi, dim=-1)


def _eliminate(
    log_arcs: Float[Tensor, "batch size size"], eliminable: Bool[Tensor, "batch size"], n_steps: Tensor
) -> tuple[Tensor, list[Step], Bool[Tensor, "batch size"]]:
    """Σ log d_v, the steps, and what is left; -inf if nodes without a head are in the way.

    d_v = Σ_h A[h, v];   A[h, m] += A[h, v] A[v, m] / d_v  (h ≠ m);   det = Π_v d_v
    """
    place = torch.arange(log_arcs.shape[1], device=log_arcs.device)
    log_det, steps = log_arcs.new_zeros(len(log_arcs)), []
    for i in range(int(n_steps.max()) if len(n_steps) else 0):
        heads_of = logsumexp(log_arcs.detach(), dim=1)
        pivot = torch.where(eliminable, heads_of, -INF)
        pivot = torch.where(eliminable & (pivot == -INF), torch.finfo(pivot.dtype).min, pivot).argmax(1)
        active = i < n_steps
        node = (place == pivot[:, None]) & active[:, None]
        column = _gather(log_arcs, pivot, axis=2)
        log_d = logsumexp(column, dim=-1)
        log_ratio = _gather(log_arcs, pivot, axis=1) - torch.where(log_d > -INF, log_d, 0.0)[:, None]
        around = torch.stack([log_arcs, column[:, :, None] + log_ratio[:, None, :]], dim=-1)
        gone = node[:, :, None] | node[:, None, :] | (place[:, None] == place)
        stepped = torch.where(gone, -INF, logsumexp(around, dim=-1))
        log_arcs = torch.where(active[:, None, None], stepped, log_arcs)
        log_det = log_det + torch.where(active, log_d, 0.0)
        eliminable = eliminable & ~node
        steps.append(Step(node, torch.where(active[:, None], log_ratio, -INF)))
    return log_det, steps, eliminable


def _gather(matrix: Tensor, index: Tensor, axis: int) -> Tensor:
    """matrix[b, index[b], :] or matrix[b, :, index[b]]."""
    shape = [-1, 1, matrix.shape[2]] if axis == 1 else [-1, matrix.shape[1], 1]
    return matrix.gather(axis, index[:, None, None].expand(shape)).squeeze(axis)


def log_partition(trees: Arcs) -> Float[Tensor, "batch"]:
    """log Z, single- or multi-root; -inf, with gradient 0, in rows without a tree."""  # [S2, matrix-tree]
    log_z = log_single_root_sum(trees) if trees.single_root else log_laplacian_determinant(trees)
    return torch.where(log_z.detach() > -INF, log_z, -INF)


def marginals(trees: Arcs) -> Float[Tensor, "batch n+1 n+1"]:
    """p(arc h -> m | x): the derivative of log Z by the arc's score."""  # [S2, matrix-tree marginals]
    return posteriors(log_partition, trees)


def laplacian(weights: Float[Tensor, "n+1 n+1"]) -> Float[Tensor, "n n"]:
    """The matrix whose determinant is Z over single-root trees, as corrected; weights are exp(arcs).

    L[1, j] = ρ_j;   L[j, j] = Σ_{k≠j} A[k, j];   L[i, j] = -A[i, j]. For small, well-conditioned inputs and tests.
    """  # [S2, matrix-tree]
    words = weights[1:, 1:] - torch.diag(weights[1:, 1:].diagonal())
    matrix = torch.diag(words.sum(0)) - words
    return torch.cat([weights[:1, 1:], matrix[1:]])
