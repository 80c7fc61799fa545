"""The summed loss of a softmax and its gradient in one pass, some rows at a time.

The scores of all rows, [m, v], are never in memory at once. The gradient is computed together with the loss, since both
need the same probabilities.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from trelliswork.runtime.autograd import fused
from trelliswork.runtime.shapes import Float, Int

ROWS = 512  # at a time


def summed_loss(
    hidden: Float[Tensor, "m d"],
    weight: Float[Tensor, "v d"],
    bias: Float[Tensor, " v"],
    targets: Int[Tensor, " m"],
    smoothing: float,
) -> Float[Tensor, ""]:
    """Return Σ_i -ln p(target_i | hidden_i) of a softmax layer.

    Args:
        hidden: Input of the layer.
        weight: Weight of the layer.
        bias: Bias of the layer.
        targets: The symbols.
        smoothing: Share of each target that is spread over all symbols (label smoothing).

    >>> summed_loss(torch.zeros(2, 3), torch.zeros(4, 3), torch.zeros(4), torch.tensor([1, 2]), 0.0)  # 2 ln 4
    tensor(2.7726)
    """
    total: Tensor = fused(SoftmaxLoss(targets, smoothing), hidden, weight, bias)
    return total


class SoftmaxLoss(NamedTuple):
    """`summed_loss` as one step of autograd; the forward pass keeps the gradient."""

    targets: Int[Tensor, " m"]
    smoothing: float

    def forward(
        self, hidden: Float[Tensor, "m d"], weight: Float[Tensor, "v d"], bias: Float[Tensor, " v"]
    ) -> tuple[Float[Tensor, ""], tuple[Tensor, ...]]:
        grads = torch.empty_like(hidden), torch.zeros_like(weight), torch.zeros_like(bias)
        total = hidden.new_zeros(())
        for start in range(0, len(hidden), ROWS):
            rows = slice(start, start + ROWS)
            scores = torch.addmm(bias, hidden[rows], weight.t())
            loss, errors = _errors(scores, self.targets[rows, None], self.smoothing)
            total += loss
            torch.mm(errors, weight, out=grads[0][rows])
            grads[1].addmm_(errors.t(), hidden[rows])
            grads[2].add_(errors.sum(0))
        return total, grads

    def backward(
        self, tensors: tuple[Tensor, ...], kept: tuple[Tensor, ...], grads: tuple[Float[Tensor, ""]]
    ) -> tuple[Tensor, ...]:
        return tuple(gradient * grads[0] for gradient in kept)

    def reference(self, hidden: Tensor, weight: Tensor, bias: Tensor) -> Float[Tensor, ""]:
        scores = F.linear(hidden, weight, bias)
        return F.cross_entropy(scores, self.targets, reduction="sum", label_smoothing=self.smoothing)


def _errors(
    scores: Float[Tensor, "m v"], targets: Int[Tensor, "m 1"], smoothing: float
) -> tuple[Float[Tensor, ""], Float[Tensor, "m v"]]:
    """Return the summed loss and its gradient by the scores, p - target; `scores` are overwritten."""  # [S4.388]
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
