"""log Z and posteriors as autograd functions, for structures whose parts are scored by one tensor.

Values and the gradient of log Z come from a family's kernels; everything beyond that is differentiated through its
reference, so derivatives of every order are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor


class Family(NamedTuple):
    """How a family computes: kernels(parts, with_marginals) gives (log Z, marginals or an empty tensor).

    `parts.with_scores(scores)` must give the same structure with other scores; marginals are shaped like scores.
    """

    kernels: Callable[[Any, bool], tuple[Tensor, Tensor]]
    reference_log_partition: Callable[[Any], Tensor]


class LogPartition(torch.autograd.Function):
    """log Z [batch]; `LogPartition.apply(family, parts, parts.scores)`."""

    @staticmethod
    def forward(ctx: Any, family: Family, parts: Any, scores: Tensor) -> Tensor:
        ctx.family, ctx.parts = family, parts
        log_z, posteriors = family.kernels(parts, ctx.needs_input_grad[2])
        ctx.save_for_backward(scores, posteriors)
        return log_z

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, None, Tensor]:
        scores, posteriors = ctx.saved_tensors
        if torch.is_grad_enabled():
            posteriors = Marginals.apply(ctx.family, ctx.parts, scores)
        return None, None, grads[0].reshape(-1, *[1] * (scores.dim() - 1)) * posteriors


class Marginals(torch.autograd.Function):
    """p(part | x), shaped like the scores; `Marginals.apply(family, parts, parts.scores)`."""

    @staticmethod
    def forward(ctx: Any, family: Family, parts: Any, scores: Tensor) -> Tensor:
        ctx.family, ctx.parts = family, parts
        ctx.save_for_backward(scores)
        return family.kernels(parts, True)[1]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, None, Tensor]:
        (scores,) = ctx.saved_tensors
        again = torch.is_grad_enabled()
        with torch.enable_grad():
            leaf = scores if again else scores.detach().requires_grad_()
            posteriors = reference_marginals(ctx.family, ctx.parts.with_scores(leaf))
            (found,) = torch.autograd.grad(posteriors, leaf, grads[0], create_graph=again)
        return None, None, found


def reference_marginals(family: Family, parts: Any) -> Tensor:
    """p(part | x) as the derivative of log Z; with a graph to differentiate again if one is recorded."""
    again = torch.is_grad_enabled() and parts.scores.requires_grad
    with torch.enable_grad():
        leaf = parts if again else parts.with_scores(parts.scores.detach().requires_grad_())
        log_z = family.reference_log_partition(leaf)
        if not log_z.requires_grad:  # the empty structure alone: no part is in it
            return torch.zeros_like(parts.scores)
        (posteriors,) = torch.autograd.grad(log_z.sum(), leaf.scores, create_graph=again)
    return posteriors if again else posteriors.detach()


def indicators(total: Tensor, scores: Tensor) -> Tensor:
    """Gradients of totals in `Max`, `KBest` or `Sampling`: 1 at each part of the structure that was chosen."""
    if not total.requires_grad:  # the empty structure alone: no part is in it
        return torch.zeros_like(scores)
    (found,) = torch.autograd.grad(total.sum(), scores, retain_graph=True)
    return found
