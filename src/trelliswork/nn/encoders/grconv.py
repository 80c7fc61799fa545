"""Vectors of segments by a gated recursive convolution, a pyramid over the tokens."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from trelliswork.errors import ScoreError
from trelliswork.nn.encoders.grconv_fused import fused_pyramid, plain_pyramid
from trelliswork.nn.kernel_math import can_fuse
from trelliswork.runtime.shapes import Float


class GatedRecursiveConvolution(nn.Module):
    """Computes the vector z of each segment from those of the two segments that are one token shorter.

        z_k^(d) = θ_L ∘ z_k^(d-1) + θ_R ∘ z_{k+1}^(d-1) + θ_M ∘ tanh(W_L z_k^(d-1) + W_R z_{k+1}^(d-1) + b_W)
        θ_L, θ_R, θ_M = softmax, in each dimension, of G_L z_k^(d-1) + G_R z_{k+1}^(d-1) + b_G

    z^(1) are the vectors of tokens, and all levels share their weights. The result [batch, n, k, dim] has the segment
    of d tokens from token i at [i, d-1], the layout of the scores of `SemiMarkov`. It is 0 where a segment would extend
    past the last token. A segment depends on its own tokens only, so that padding changes no segment inside a sentence.

    Args:
        dim: Width of tokens and segments.
        max_length: k, the largest number of tokens in a segment.

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
        w_left = _minus_middle_gate(self.gate_left.weight, self.left.weight)
        w_right = _minus_middle_gate(self.gate_right.weight, self.right.weight)
        bias = _minus_middle_gate(self.gate_left.bias, self.left.bias)
        pyramid = fused_pyramid if can_fuse(tokens, bias) else plain_pyramid
        return pyramid(tokens.transpose(0, 1), w_left, w_right, bias, self.max_length).permute(2, 1, 0, 3)


def _minus_middle_gate(gates: Float[Tensor, "3dim ..."], new: Float[Tensor, "dim ..."]) -> Float[Tensor, "3dim ..."]:
    """Return the weights of gates L and R minus those of gate M, then those of the new vector.

    A softmax does not change if one of its scores is subtracted from all: only two gates are left to compute.
    """
    left, right, middle = gates.chunk(3)
    return torch.cat([left - middle, right - middle, new])
