"""Bilinear scores of pairs of vectors, a few pairs at a time, so that nothing leaves the cache of the processor.

W_y v of all pairs at once is a tensor of [pairs, labels, d]: writing it, reading it again and the same for its gradient
takes longer than the products themselves.
"""

from __future__ import annotations

import torch
from torch import Tensor

from trelliswork.runtime.autograd import fused
from trelliswork.runtime.shapes import Float

PAIRS = 256  # at a time


def pair_scores(
    left: Float[Tensor, "pairs d"], right: Float[Tensor, "pairs d"], weight: Float[Tensor, "labels*d d"]
) -> Float[Tensor, "pairs labels"]:
    """left · W_y right for each pair and each y, W_y being the rows [y d, (y + 1) d) of `weight`.

    >>> pair_scores(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0]]), torch.eye(2)).tolist()
    [[11.0]]
    """
    kinds = {(each.device.type, each.dtype) for each in (left, right, weight)}
    if len(kinds) > 1 or torch.is_autocast_enabled(left.device.type):
        return plain_pair_scores(left, right, weight)
    found: Tensor = fused(PairScores(), left, right, weight)
    return found


def plain_pair_scores(left: Tensor, right: Tensor, weight: Tensor) -> Float[Tensor, "pairs labels"]:
    """The same in operations of torch."""
    return torch.einsum("pd,pyd->py", left, (right @ weight.T).unflatten(-1, (-1, left.shape[-1])))


class PairScores:
    """`plain_pair_scores`; the products W_y v are computed again for the gradient instead of being kept."""

    reference = staticmethod(plain_pair_scores)

    def forward(
        self, left: Tensor, right: Tensor, weight: Tensor
    ) -> tuple[Float[Tensor, "pairs labels"], tuple[Tensor, ...]]:
        scores = left.new_empty(len(left), weight.shape[0] // weight.shape[1])
        for u, v, found in zip(left.split(PAIRS), right.split(PAIRS), scores.split(PAIRS), strict=True):
            torch.bmm(_turned(v, weight), u[:, :, None], out=found[:, :, None])
        return scores, ()

    def backward(
        self, tensors: tuple[Tensor, Tensor, Tensor], kept: tuple[()], grads: tuple[Float[Tensor, "pairs labels"]]
    ) -> tuple[Tensor, Tensor, Tensor]:
        left, right, weight = tensors
        by_left, by_right, by_weight = torch.empty_like(left), torch.empty_like(right), torch.zeros_like(weight)
        parts = (each.split(PAIRS) for each in (left, right, grads[0], by_left, by_right))
        for u, v, g, by_u, by_v in zip(*parts, strict=True):
            turned = _turned(v, weight)
            torch.bmm(g[:, None], turned, out=by_u[:, None])
            by_turned = torch.mul(g[:, :, None], u[:, None], out=turned).flatten(1)
            torch.mm(by_turned, weight, out=by_v)
            by_weight.addmm_(by_turned.T, v)
        return by_left, by_right, by_weight


def _turned(right: Float[Tensor, "pairs d"], weight: Tensor) -> Float[Tensor, "pairs labels d"]:
    """W_y v for each y."""
    return (right @ weight.T).unflatten(1, (-1, right.shape[1]))
