"""Bilinear scores of pairs of vectors, some pairs at a time, so that products stay in the processor's cache.

W_y v of all pairs at once is a tensor of [pairs, labels, d]; writing and reading it, and its gradient, takes longer
than the products themselves.
"""

from __future__ import annotations

import torch
from torch import Tensor

from trelliswork.runtime.autograd import fused
from trelliswork.runtime.shapes import Float

PAIRS = 256  # pairs at a time


def pair_scores(
    left: Float[Tensor, "pairs d"], right: Float[Tensor, "pairs d"], weight: Float[Tensor, "labels*d d"]
) -> Float[Tensor, "pairs labels"]:
    """Return left · W_y right for each pair and label y, where W_y is the rows [y d, (y + 1) d) of `weight`.

    >>> pair_scores(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0]]), torch.eye(2)).tolist()
    [[11.0]]
    """
    kinds = {(tensor.device.type, tensor.dtype) for tensor in (left, right, weight)}
    if len(kinds) > 1 or torch.is_autocast_enabled(left.device.type):
        return plain_pair_scores(left, right, weight)
    scores: Tensor = fused(PairScores(), left, right, weight)
    return scores


def plain_pair_scores(left: Tensor, right: Tensor, weight: Tensor) -> Float[Tensor, "pairs labels"]:
    """Compute `pair_scores` with plain torch operations."""
    return torch.einsum("pd,pyd->py", left, (right @ weight.T).unflatten(-1, (-1, left.shape[-1])))


class PairScores:
    """`pair_scores` as one step of autograd; the gradient recomputes the products W_y v instead of keeping them."""

    reference = staticmethod(plain_pair_scores)

    def forward(
        self, left: Tensor, right: Tensor, weight: Tensor
    ) -> tuple[Float[Tensor, "pairs labels"], tuple[Tensor, ...]]:
        scores = left.new_empty(len(left), weight.shape[0] // weight.shape[1])
        for u, v, block in zip(left.split(PAIRS), right.split(PAIRS), scores.split(PAIRS), strict=True):
            torch.bmm(_products(v, weight), u[:, :, None], out=block[:, :, None])
        return scores, ()

    def backward(
        self, tensors: tuple[Tensor, Tensor, Tensor], kept: tuple[()], grads: tuple[Float[Tensor, "pairs labels"]]
    ) -> tuple[Tensor, Tensor, Tensor]:
        left, right, weight = tensors
        by_left, by_right, by_weight = torch.empty_like(left), torch.empty_like(right), torch.zeros_like(weight)
        blocks = (tensor.split(PAIRS) for tensor in (left, right, grads[0], by_left, by_right))
        for u, v, g, by_u, by_v in zip(*blocks, strict=True):
            products = _products(v, weight)
            torch.bmm(g[:, None], products, out=by_u[:, None])
            by_products = torch.mul(g[:, :, None], u[:, None], out=products).flatten(1)
            torch.mm(by_products, weight, out=by_v)
            by_weight.addmm_(by_products.T, v)
        return by_left, by_right, by_weight


def _products(right: Float[Tensor, "pairs d"], weight: Tensor) -> Float[Tensor, "pairs labels d"]:
    """Return W_y v for each y."""
    return (right @ weight.T).unflatten(1, (-1, right.shape[1]))
