"""log Z, log p and posteriors of arcs as autograd functions, for every family of dependency trees.

Values and first derivatives come from a family's kernels; everything beyond that is differentiated through its
reference, so derivatives of every order are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from trelliswork.runtime.bridge import as_array
from trelliswork.structures.arc_kernels import expected_gradient, likelihood_gradient, tree_scores
from trelliswork.structures.arc_rows import ArcArrays, ArcRows, Array
from trelliswork.structures.arcs import Arcs


class Family(NamedTuple):
    """How a family of trees computes: sums(arrays, with_marginals) gives (log Z, marginals or an empty array)."""

    sums: Callable[[ArcArrays, bool], tuple[Array, Array]]
    reference_marginals: Callable[[Arcs], Tensor]
    projective: bool


class LogPartition(torch.autograd.Function):
    """log Z [batch] in float64; `LogPartition.apply(family, rows, rows.scores)`."""

    @staticmethod
    def forward(ctx: Any, family: Family, rows: ArcRows, scores: Tensor) -> Tensor:
        ctx.family, ctx.rows = family, rows
        log_z, ctx.posteriors = family.sums(rows.arrays, ctx.needs_input_grad[2])
        ctx.save_for_backward(scores)
        return torch.from_numpy(log_z)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, None, Tensor]:
        (scores,) = ctx.saved_tensors
        if torch.is_grad_enabled():
            posteriors = Marginals.apply(ctx.family, ctx.rows, scores)
            return None, None, (grads[0][:, None, None] * posteriors).to(scores.dtype)
        gradient = torch.empty_like(scores, memory_format=torch.contiguous_format)
        expected_gradient(as_array(grads[0]), ctx.posteriors, gradient.numpy())
        return None, None, gradient


class LogLikelihood(torch.autograd.Function):
    """log p(heads) [batch] in float64, given what `log_likelihood` has computed."""

    @staticmethod
    def forward(
        ctx: Any, family: Family, rows: ArcRows, heads: Array, log_probs: Array, posteriors: Array, scores: Tensor
    ) -> Tensor:
        ctx.family, ctx.rows, ctx.heads, ctx.log_probs, ctx.posteriors = family, rows, heads, log_probs, posteriors
        ctx.save_for_backward(scores)
        return torch.from_numpy(log_probs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, None, None, None, None, Tensor]:
        (scores,) = ctx.saved_tensors
        arguments = ctx.heads, ctx.rows.arrays.lengths, ctx.log_probs
        if not torch.is_grad_enabled():
            gradient = torch.empty_like(scores, memory_format=torch.contiguous_format)
            likelihood_gradient(as_array(grads[0]), *arguments, ctx.posteriors, gradient.numpy())
            return None, None, None, None, None, gradient
        ones, observed = np.ones(len(ctx.log_probs)), torch.empty(scores.shape, dtype=torch.float64)
        likelihood_gradient(ones, *arguments, np.zeros(scores.shape), observed.numpy())
        possible = torch.from_numpy(ctx.log_probs > -np.inf)
        expected = Marginals.apply(ctx.family, ctx.rows, scores)
        weights = torch.where(possible, grads[0], 0.0)[:, None, None]
        return None, None, None, None, None, (weights * (observed - expected)).to(scores.dtype)


def log_likelihood(family: Family, rows: ArcRows, heads: Tensor) -> Tensor | None:
    """log p(heads) [batch]: sums, score and all that the gradient needs in two kernels; None if heads are no trees."""
    arrays, found = rows.arrays, as_array(heads)
    scores = np.empty(len(found))
    if not tree_scores(arrays.scores, arrays.lengths, arrays.single_root, family.projective, found, scores):
        return None
    log_z, posteriors = family.sums(arrays, torch.is_grad_enabled() and rows.scores.requires_grad)
    possible = scores > -np.inf
    log_probs = np.where(possible, np.minimum(scores - np.where(possible, log_z, 0.0), 0.0), -np.inf)
    return LogLikelihood.apply(family, rows, found, log_probs, posteriors, rows.scores)


class Marginals(torch.autograd.Function):
    """p(arc | x) [batch, n+1, n+1] in float64; `Marginals.apply(family, rows, rows.scores)`."""

    @staticmethod
    def forward(ctx: Any, family: Family, rows: ArcRows, scores: Tensor) -> Tensor:
        ctx.family, ctx.rows = family, rows
        ctx.save_for_backward(scores)
        return torch.from_numpy(family.sums(rows.arrays, True)[1])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, None, Tensor]:
        (scores,) = ctx.saved_tensors
        again = torch.is_grad_enabled()
        with torch.enable_grad():
            leaf = scores if again else scores.detach().requires_grad_()
            posteriors = ctx.family.reference_marginals(ctx.rows.with_scores(leaf).trees)
            (found,) = torch.autograd.grad(posteriors, leaf, grads[0], create_graph=again)
        return None, None, found
