"""Features of segments by a gated recursive convolution: a pyramid of vectors over the tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from trelliswork.errors import ScoreError

if TYPE_CHECKING:
    from jaxtyping import Float


class GatedRecursiveConvolution(nn.Module):
    """z of each segment from z of the two segments that are one token shorter, gates choosing between them.

        z_k^(d) = θ_L ∘ z_k^(d-1) + θ_R ∘ z_{k+1}^(d-1) + θ_M ∘ g(W_L z_k^(d-1) + W_R z_{k+1}^(d-1) + b_W)
        θ_L, θ_R, θ_M = softmax, in each dimension, of G_L z_k^(d-1) + G_R z_{k+1}^(d-1) + b_G

    z^(1) are the vectors of tokens, and all levels share their weights. The result [batch, n, k, dim] has the segment
    of d tokens from token i at [i, d-1], as `SemiMarkov` wants its scores; a linear layer makes scores of it. It is 0
    where a segment would run past the last token. Its gradients, written out: `training/hand_gradients_grconv.py`.

        >>> pyramid = GatedRecursiveConvolution(dim=16, max_length=4)
        >>> pyramid(torch.zeros(2, 7, 16)).shape
        torch.Size([2, 7, 4, 16])
    """

    def __init__(self, dim: int, max_length: int, *, activation: Callable[[Tensor], Tensor] = torch.tanh) -> None:
        super().__init__()
        if dim < 1 or max_length < 1:
            raise ScoreError(f"dim and max_length must be at least 1; got {dim} and {max_length}")
        self.dim, self.max_length, self.activation = dim, max_length, activation
        self.left, self.right = nn.Linear(dim, dim), nn.Linear(dim, dim, bias=False)
        self.gate_left, self.gate_right = nn.Linear(dim, 3 * dim), nn.Linear(dim, 3 * dim, bias=False)

    def forward(self, tokens: Float[Tensor, "batch n dim"]) -> Float[Tensor, "batch n k dim"]:
        if tokens.dim() != 3 or tokens.shape[2] != self.dim or tokens.shape[1] == 0:
            raise ScoreError(f"tokens must be [batch, n, {self.dim}] with n >= 1; got {tuple(tokens.shape)}")
        levels, n = [tokens], tokens.shape[1]
        for _ in range(min(self.max_length, n) - 1):
            levels.append(self.merge(levels[-1][:, :-1], levels[-1][:, 1:]))
        filled = [nn.functional.pad(level, (0, 0, 0, n - level.shape[1])) for level in levels]
        filled += [torch.zeros_like(tokens)] * (self.max_length - len(levels))
        return torch.stack(filled, 2)

    def merge(self, left: Float[Tensor, "*any dim"], right: Float[Tensor, "*any dim"]) -> Float[Tensor, "*any dim"]:
        """One step of the recursion, for any number of neighbours."""
        new = self.activation(self.left(left) + self.right(right))
        gates = (self.gate_left(left) + self.gate_right(right)).unflatten(-1, (3, self.dim)).softmax(-2)
        return (gates * torch.stack([left, right, new], -2)).sum(-2)
