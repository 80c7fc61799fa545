"""Vectors of segments by a gated recursive convolution, a pyramid over the tokens.

A level is stored with the segment as first axis, [m, batch, dim]: then all left neighbours are one matrix, and all
right neighbours are the same memory, shifted by one batch. The scores of all gates and new vectors take two matrix
products without copies, and a kernel does the rest in one pass.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from trelliswork.errors import ScoreError
from trelliswork.nn.encoders import grconv_kernels as kernels
from trelliswork.nn.kernel_math import can_fuse
from trelliswork.runtime.arrays import Float
from trelliswork.runtime.autograd import fused


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


# The whole pyramid of a gated recursive convolution as one step of autograd, on the CPU.


def fused_pyramid(
    tokens: Float[Tensor, "n batch dim"], w_left: Tensor, w_right: Tensor, bias: Tensor, n_levels: int
) -> Float[Tensor, "k n batch dim"]:
    """Compute `Pyramid` with its kernels.

    Args:
        tokens: Vectors of the tokens, [n, batch, d].
        w_left: Weights of the left child, [3 d, d].
        w_right: Weights of the right child, [3 d, d].
        bias: Bias, [3 d].
        n_levels: Number of levels.

    Returns:
        Vectors of segments, [n_levels, n, batch, d].
    """
    levels: Tensor = fused(Pyramid(n_levels), tokens, w_left, w_right, bias)
    return levels


@dataclass(frozen=True)
class Pyramid:
    """z of all segments [k, n, batch, dim], 0 where they would extend past the end; k levels from the tokens up.

    `w_left` and `w_right` [3 dim, dim] and `bias` [3 dim] have the weights of gates L and R, minus those of gate M,
    then those of the new vector.
    """

    n_levels: int

    def forward(
        self,
        tokens: Float[Tensor, "n batch dim"],
        w_left: Float[Tensor, "3dim dim"],
        w_right: Float[Tensor, "3dim dim"],
        bias: Float[Tensor, "3dim"],
    ) -> tuple[Float[Tensor, "k n batch dim"], tuple[Tensor, ...]]:
        """Compute the vectors of all segments, from the tokens up.

        Args:
            tokens: Vectors of the tokens [n, batch, dim].
            w_left: Weights of the left part [3 dim, dim].
            w_right: Weights of the right part [3 dim, dim].
            bias: Of gates and new vectors [3 dim].

        Returns:
            Vectors [k, n, batch, dim], and what `backward` needs.
        """
        n, batch, dim = tokens.shape
        levels = tokens.new_zeros(self.n_levels, n, batch, dim)
        levels[0] = tokens
        states = []
        for d in range(1, min(self.n_levels, n)):
            left, right = _neighbours(levels[d - 1], n - d)
            scores = torch.mm(left, w_left.T).addmm_(right, w_right.T)
            kernels.mix(scores.numpy(), bias.numpy(), left.numpy(), right.numpy(), _rows(levels[d], n - d).numpy())
            states.append(scores)
        return levels, (levels, *states)

    def backward(
        self, tensors: tuple[Tensor, ...], kept: tuple[Tensor, ...], grads: tuple[Tensor]
    ) -> tuple[Tensor, ...]:
        """Return the gradient by each of the tensors.

        Args:
            tensors: Tokens, w_left, w_right, bias, as `forward` was given them.
            kept: Gates, new vectors and outputs of each level.
            grads: Gradient by each of the results.

        Returns:
            One tensor for each of `tensors`, shaped like it.
        """
        tokens, w_left, w_right, bias = tensors
        levels, *states = kept
        n, batch, dim = tokens.shape
        by_levels = grads[0].clone(memory_format=torch.contiguous_format)  # becomes dL/dz, from the top down
        by_weights = [torch.zeros_like(weight) for weight in (w_left, w_right, bias)]
        workspace = tokens.new_empty(max(n - 1, 0) * batch, 3 * dim)
        for d in range(len(states), 0, -1):
            left, right = _neighbours(levels[d - 1], n - d)
            to_left, to_right = _neighbours(by_levels[d - 1], n - d)
            own, state = _rows(by_levels[d], n - d).numpy(), states[d - 1].numpy()
            by_scores = workspace[: len(left)]
            output = _rows(levels[d], n - d).numpy()
            kernels.unmix(own, state, left.numpy(), right.numpy(), output, by_scores.numpy())
            kernels.add_gated(own, state, 0, to_left.numpy())
            kernels.add_gated(own, state, 1, to_right.numpy())
            to_left.addmm_(by_scores, w_left)
            to_right.addmm_(by_scores, w_right)
            by_weights[0].addmm_(by_scores.T, left)
            by_weights[1].addmm_(by_scores.T, right)
            by_weights[2] += by_scores.sum(0)
        return by_levels[0], *by_weights

    def reference(self, tokens: Tensor, w_left: Tensor, w_right: Tensor, bias: Tensor) -> Tensor:
        """Compute the results of `forward` with torch operations.

        Args:
            tokens: Vectors of the tokens [n, batch, dim].
            w_left: Weights of the left part [3 dim, dim].
            w_right: Weights of the right part [3 dim, dim].
            bias: Of gates and new vectors [3 dim].

        Returns:
            The results, differentiable by autograd.
        """
        return plain_pyramid(tokens, w_left, w_right, bias, self.n_levels)


def _rows(level: Float[Tensor, "n batch dim"], m: int) -> Float[Tensor, "mbatch dim"]:
    """Return the first m segments of a level as one matrix."""
    return level[:m].flatten(0, 1)


def _neighbours(level: Float[Tensor, "n batch dim"], m: int) -> tuple[Tensor, Tensor]:
    """Return segments 0..m-1 and 1..m of a level, which share memory."""
    return level[:m].flatten(0, 1), level[1 : m + 1].flatten(0, 1)


def plain_pyramid(tokens: Tensor, w_left: Tensor, w_right: Tensor, bias: Tensor, n_levels: int) -> Tensor:
    """Compute `Pyramid` with torch operations, which can be traced for any number of tokens.

    Args:
        tokens: Vectors of the tokens, [n, batch, d].
        w_left: Weights of the left child, [3 d, d].
        w_right: Weights of the right child, [3 d, d].
        bias: Bias, [3 d].
        n_levels: Number of levels.

    Returns:
        Vectors of segments, [n_levels, n, batch, d].
    """
    level, levels = tokens, [tokens]
    for d in range(1, n_levels):
        left, right = level[:-1], level[1:]
        *gates, new = (left @ w_left.T + right @ w_right.T + bias).chunk(3, -1)
        theta = torch.stack([*gates, torch.zeros_like(new)]).softmax(0)
        level = theta[0] * left + theta[1] * right + theta[2] * new.tanh()
        levels.append(torch.cat([level, torch.zeros_like(tokens[:d])]))
    return torch.stack(levels)
