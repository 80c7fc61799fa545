"""The summed loss of a softmax and its gradient in one pass, a part of the rows at a time.

The scores of all rows, [m, v], are never in memory at once, and the gradient is found together with the loss, since
both need the same probabilities.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from trelliswork.runtime.shapes import Float, Int

ROWS = 512  # at a time


class SoftmaxLoss(torch.autograd.Function):
    """Σ_i -ln p(target_i | hidden_i), with a share `smoothing` of each target spread over all symbols."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Float[Tensor, "m d"],
        weight: Float[Tensor, "v d"],
        bias: Float[Tensor, " v"],
        targets: Int[Tensor, " m"],
        smoothing: float,
    ) -> Float[Tensor, ""]:
        grads = torch.empty_like(hidden), torch.zeros_like(weight), torch.zeros_like(bias)
        total = hidden.new_zeros(())
        for start in range(0, len(hidden), ROWS):
            rows = slice(start, start + ROWS)
            loss, errors = _errors(torch.addmm(bias, hidden[rows], weight.t()), targets[rows, None], smoothing)
            total += loss
            torch.mm(errors, weight, out=grads[0][rows])
            grads[1].addmm_(errors.t(), hidden[rows])
            grads[2].add_(errors.sum(0))
        ctx.save_for_backward(*grads)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, above: Float[Tensor, ""]) -> tuple[Tensor | None, ...]:
        return (*(each * above for each in ctx.saved_tensors), None, None)


def _errors(
    scores: Float[Tensor, "m v"], targets: Int[Tensor, "m 1"], smoothing: float
) -> tuple[Float[Tensor, ""], Float[Tensor, "m v"]]:
    """The summed loss, and its gradient by the scores: what is expected less what is wanted."""  # [S4.388]
    scores.sub_(scores.amax(1, keepdim=True))
    wanted = (1 - smoothing) * scores.gather(1, targets)
    if smoothing:
        wanted = wanted + smoothing * scores.mean(1, keepdim=True)
    odds = scores.exp_()
    sums = odds.sum(1, keepdim=True)
    errors = odds.div_(sums)
    if smoothing:
        errors.sub_(smoothing / errors.shape[1])
    errors.scatter_add_(1, targets, errors.new_full(targets.shape, smoothing - 1))
    return (sums.log() - wanted).sum(), errors
