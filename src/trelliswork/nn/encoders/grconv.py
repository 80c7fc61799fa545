"""Features of segments by a gated recursive convolution: a pyramid of vectors over the tokens."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from trelliswork.errors import ScoreError
from trelliswork.nn.encoders.fusing import can_fuse
from trelliswork.nn.encoders.grconv_fused import fused_pyramid, plain_pyramid
from trelliswork.runtime.shapes import Float


class GatedRecursiveConvolution(nn.Module):
    """z of each segment from z of the two segments that are one token shorter, gates choosing between them.

        z_k^(d) = θ_L ∘ z_k^(d-1) + θ_R ∘ z_{k+1}^(d-1) + θ_M ∘ tanh(W_L z_k^(d-1) + W_R z_{k+1}^(d-1) + b_W)
        θ_L, θ_R, θ_M = softmax, in each dimension, of G_L z_k^(d-1) + G_R z_{k+1}^(d-1) + b_G

    z^(1) are the vectors of tokens, and all levels share their weights. The result [batch, n, k, dim] has the segment
    of d tokens from token i at [i, d-1], as `SemiMarkov` wants its scores; a linear layer makes scores of it. It is 0
    where a segment would run past the last token. A segment sees its own tokens only: what stands behind the end of
    a sentence changes none that lies inside. The gradients, written out: `tests/hand_gradients/grconv.py`.

        >>> pyramid = GatedRecursiveConvolution(dim=16, max_length=4)
        >>> pyramid(torch.zeros(2, 7, 16)).shape
        torch.Size([2, 7, 4, 16])

    Zhuo et al. (2016), Segment-level sequence modeling using gated recursive semi-Markov conditional random fields.
    """

    def __init__(self, dim: int, max_length: int) -> None:
        super().__init__()
        if dim < 1 or max_length < 1:
            raise ScoreError(f"dim and max_length must be at least 1; got {dim} and {max_length}")
        self.dim, self.max_length = dim, max_length
        self.left, self.right = nn.Linear(dim, dim), nn.Linear(dim, dim, bias=False)
        self.gate_left, self.gate_right = nn.Linear(dim, 3 * dim), nn.Linear(dim, 3 * dim, bias=False)

    def forward(self, tokens: Float[Tensor, "batch n dim"]) -> Float[Tensor, "batch n k dim"]:
        if tokens.dim() != 3 or tokens.shape[2] != self.dim or tokens.shape[1] == 0:
            raise ScoreError(f"tokens must be [batch, n, {self.dim}] with n >= 1; got {tuple(tokens.shape)}")
        w_left = _less_last(self.gate_left.weight, self.left.weight)
        w_right = _less_last(self.gate_right.weight, self.right.weight)
        bias = _less_last(self.gate_left.bias, self.left.bias)
        pyramid = fused_pyramid if can_fuse(tokens, bias) else plain_pyramid
        return pyramid(tokens.transpose(0, 1), w_left, w_right, bias, self.max_length).permute(2, 1, 0, 3)


def _less_last(gates: Float[Tensor, "3dim ..."], new: Float[Tensor, "dim ..."]) -> Float[Tensor, "3dim ..."]:
    """Gates L and R, both less gate M, then the new vector."""
    left, right, middle = gates.chunk(3)
    return torch.cat([left - middle, right - middle, new])
