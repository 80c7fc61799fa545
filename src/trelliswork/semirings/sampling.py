"""The sampling semiring: it sums like `Log`, but its gradient is one structure drawn from the distribution."""

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
        # Gumbel-max: the argmax of scores plus Gumbel noise is a draw from softmax(scores).
        gumbel = -torch.log(-torch.log(uniform.clamp_min(torch.finfo(scores.dtype).tiny)))
        drawn = (scores + gumbel).argmax(dim, keepdim=True)
        return torch.zeros_like(scores).scatter_(dim, drawn, grads[0].unsqueeze(dim)), None, None


class Sampling(Log):
    """`Log` in the forward pass; in the backward pass each ⊕ picks one of its summands in proportion to its weight.

    The gradient of the total is therefore the indicator of the parts of one exact sample. This is ancestral sampling,
    written once for every structure.

    Args:
        generator: Source of the random numbers; the default generator of torch if None.
    """

    def __init__(self, generator: torch.Generator | None = None):
        self.generator = generator

    def sum(self, elements: Tensor, dim: int) -> Tensor:
        return _DrawInBackward.apply(elements, dim, self.generator)
