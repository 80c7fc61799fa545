"""log Z and posteriors of structures whose parts are scored by one tensor.

Values and the gradient of log Z come from a family's kernels; everything beyond that is differentiated through its
reference, so derivatives of every order are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from trelliswork.runtime.autograd import differentiable
from trelliswork.runtime.bridge import Array, as_array


class Family(NamedTuple):
    """How a family computes: kernels(parts, with_marginals) gives (log Z, marginals or an empty tensor).

    `parts.with_scores(scores)` must give the same structure with other scores; marginals are shaped like scores.
    """

    kernels: Callable[[Any, bool], tuple[Tensor, Tensor]]
    reference_log_partition: Callable[[Any], Tensor]


def log_partition(family: Family, parts: Any) -> Tensor:
    """log Z [batch] in float64."""
    scores = parts.scores
    log_z, posteriors = family.kernels(parts, torch.is_grad_enabled() and scores.requires_grad)

    def vjp(grad: Array) -> tuple[Array]:
        return (grad.reshape(-1, *[1] * (scores.dim() - 1)) * as_array(posteriors),)

    return differentiable(
        log_z, (scores,), vjp, lambda scores: family.reference_log_partition(parts.with_scores(scores))
    )


def marginals(family: Family, parts: Any) -> Tensor:
    """p(part | x) in float64, shaped like the scores."""
    return differentiable(
        family.kernels(parts, True)[1],
        (parts.scores,),
        None,
        lambda scores: reference_marginals(family, parts.with_scores(scores)),
    )


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
