"""The gradients of the gated recursive convolution of [S0] written out by hand, like those of `networks.py`.

One sentence: z^(1) is [n, dim], and z^(d) [n-d+1, dim] has the segment of d tokens from token k in row k. `nn` has the
module that trains; here is the derivation, tested equal to autograd. Where [S0] is wrong, the corrected form stands
here and the erratum is named.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from trelliswork.runtime.arrays import Float


class GrConvWeights(NamedTuple):
    """The weights of the recursion, or their gradients; rows m dim..(m+1) dim of G belong to gate m of L, R, M."""

    w_left: Float[Tensor, "dim dim"]
    w_right: Float[Tensor, "dim dim"]
    w_bias: Float[Tensor, "dim"]
    g_left: Float[Tensor, "3dim dim"]
    g_right: Float[Tensor, "3dim dim"]
    g_bias: Float[Tensor, "3dim"]


class Step(NamedTuple):
    """One level made from the one below, with what its gradient needs; gates and sources are [3, m, dim]: L, R, M."""

    output: Float[Tensor, "m dim"]
    gates: Float[Tensor, "3 m dim"]
    sources: Float[Tensor, "3 m dim"]


def grconv_step(below: Float[Tensor, "n dim"], weights: GrConvWeights) -> Step:
    """z = θ_L ∘ z_k + θ_R ∘ z_{k+1} + θ_M ∘ tanh(W_L z_k + W_R z_{k+1} + b_W), as in `GatedRecursiveConvolution`."""
    left, right = below[:-1], below[1:]
    new = torch.tanh(left @ weights.w_left.T + right @ weights.w_right.T + weights.w_bias)
    logits = left @ weights.g_left.T + right @ weights.g_right.T + weights.g_bias
    gates = logits.unflatten(1, (3, -1)).transpose(0, 1).softmax(0)
    sources = torch.stack([left, right, new])
    return Step((gates * sources).sum(0), gates, sources)


def grconv_pyramid(tokens: Float[Tensor, "n dim"], weights: GrConvWeights, max_length: int) -> list[Step]:
    """The levels 2..max_length, the lowest first; level 1 is `tokens`."""
    steps: list[Step] = []
    for _ in range(max_length - 1):
        steps.append(grconv_step(steps[-1].output if steps else tokens, weights))
    return steps


def new_feature_gradient(grad: Float[Tensor, "m dim"], step: Step) -> Float[Tensor, "m dim"]:
    """dL/dα of a level: θ_M ∘ g'(α) ∘ dL/dz, the bracket of [S0.14]; g' = 1 - tanh²."""
    return step.gates[2] * (1 - step.sources[2] ** 2) * grad


def gate_gradient(grad: Float[Tensor, "m dim"], step: Step) -> Float[Tensor, "m 3dim"]:
    """dL/d(gate scores): θ_l ∘ (v_l - z) ∘ dL/dz, v = (z_k, z_{k+1}, ẑ).

    That is [S0.15-17] with the sum over the three gates of [S0.16] carried out: Σ_m v_m θ_m (1[l = m] - θ_l).
    """
    by_gate = step.gates * (step.sources - step.output) * grad
    return by_gate.transpose(0, 1).flatten(1)


def weight_gradients(grad: Float[Tensor, "m dim"], step: Step) -> GrConvWeights:
    """The share of one level in the gradients of the weights [S0.13-17], right as printed (erratum 7)."""
    left, right, _ = step.sources
    by_new, by_gate = new_feature_gradient(grad, step), gate_gradient(grad, step)
    return GrConvWeights(
        by_new.T @ left, by_new.T @ right, by_new.sum(0), by_gate.T @ left, by_gate.T @ right, by_gate.sum(0)
    )


def below_gradient(grad: Float[Tensor, "m dim"], step: Step, weights: GrConvWeights) -> Float[Tensor, "n dim"]:
    """What dL/dz^(d+1) adds to dL/dz^(d) [S0.11-12]: transposed Jacobians, with the terms of the gates (erratum 6)."""
    by_new, by_gate = new_feature_gradient(grad, step), gate_gradient(grad, step)
    to_left = step.gates[0] * grad + by_new @ weights.w_left + by_gate @ weights.g_left
    to_right = step.gates[1] * grad + by_new @ weights.w_right + by_gate @ weights.g_right
    found = grad.new_zeros(len(grad) + 1, grad.shape[1])
    found[:-1] += to_left
    found[1:] += to_right
    return found


def grconv_gradient(
    tokens: Float[Tensor, "n dim"], weights: GrConvWeights, grads: list[Float[Tensor, "m dim"]]
) -> tuple[Float[Tensor, "n dim"], GrConvWeights]:
    """dL/dz^(1), that of the embeddings, and of the weights, from V0^T dL/dF at every level 1..k in `grads`.

    Embeddings are z^(1), so the sums over levels start at d = 2 (erratum 7).
    """
    steps = grconv_pyramid(tokens, weights, len(grads))
    total = GrConvWeights(*(torch.zeros_like(part) for part in weights))
    grad = grads[-1]
    for step, own in zip(reversed(steps), reversed(grads[:-1]), strict=True):
        share = weight_gradients(grad, step)
        total = GrConvWeights(*(all_so_far + part for all_so_far, part in zip(total, share, strict=True)))
        grad = own + below_gradient(grad, step, weights)  # [S0.11]
    return grad, total
