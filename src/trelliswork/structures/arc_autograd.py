"""log Z and posteriors of arcs as autograd functions, for every family of dependency trees.

Values and the gradient of log Z come from a family's kernels; everything beyond that is differentiated through its
reference, so derivatives of every order are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from trelliswork.structures.arcs import Arcs


class Family(NamedTuple):
    """How a family of trees computes: kernels(trees, with_marginals) gives (log Z, marginals or an empty tensor)."""

    kernels: Callable[[Arcs, bool], tuple[Tensor, Tensor]]
    reference_marginals: Callable[[Arcs], Tensor]


class LogPartition(torch.autograd.Function):
    """log Z [batch]; `LogPartition.apply(family, trees, trees.arcs)`."""

    @staticmethod
    def forward(ctx: Any, family: Family, trees: Arcs, arcs: Tensor) -> Tensor:
        ctx.family, ctx.trees = family, trees
        log_z, posteriors = family.kernels(trees, ctx.needs_input_grad[2])
        ctx.save_for_backward(arcs, posteriors)
        return log_z

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, None, Tensor]:
        arcs, posteriors = ctx.saved_tensors
        if torch.is_grad_enabled():
            posteriors = Marginals.apply(ctx.family, ctx.trees, arcs)
        return None, None, grads[0][:, None, None] * posteriors


class Marginals(torch.autograd.Function):
    """p(arc | x) [batch, n+1, n+1]; `Marginals.apply(family, trees, trees.arcs)`."""

    @staticmethod
    def forward(ctx: Any, family: Family, trees: Arcs, arcs: Tensor) -> Tensor:
        ctx.family, ctx.trees = family, trees
        ctx.save_for_backward(arcs)
        return family.kernels(trees, True)[1]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, None, Tensor]:
        (arcs,) = ctx.saved_tensors
        again = torch.is_grad_enabled()
        with torch.enable_grad():
            leaf = arcs if again else arcs.detach().requires_grad_()
            posteriors = ctx.family.reference_marginals(ctx.trees.with_arcs(leaf))
            (found,) = torch.autograd.grad(posteriors, leaf, grads[0], create_graph=again)
        return None, None, found
