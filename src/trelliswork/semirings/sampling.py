"""The sampling semiring: sums like `Log`, but its gradient is one structure drawn from the distribution."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from trelliswork.semirings.log import Log, logsumexp


class _DrawInBackward(torch.autograd.Function):
    """logsumexp whose backward pass sends the gradient to one entry, drawn from softmax(scores)."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, dim: int, generator: torch.Generator | None) -> Tensor:
        ctx.save_for_backward(scores)
        ctx.dim, ctx.generator = dim, generator
        return logsumexp(scores, dim)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        (scores,), dim = ctx.saved_tensors, ctx.dim
        uniform = torch.rand(scores.shape, generator=ctx.generator, dtype=scores.dtype, device=scores.device)
        gumbel = -torch.log(-torch.log(uniform.clamp_min(torch.finfo(scores.dtype).tiny)))
        drawn = (scores + gumbel).argmax(dim, keepdim=True)
        return torch.zeros_like(scores).scatter_(dim, drawn, grads[0].unsqueeze(dim)), None, None


class Sampling(Log):
    """`Log` on the way up; on the way down each ⊕ picks one of its summands in proportion to its weight.

    The gradient of the total is therefore the indicator of one exact sample, part by part [ancestral
    sampling, written once for every structure].
    """

    def __init__(self, generator: torch.Generator | None = None):
        self.generator = generator

    def sum(self, elements: Tensor, dim: int) -> Tensor:
        return _DrawInBackward.apply(elements, dim, self.generator)
