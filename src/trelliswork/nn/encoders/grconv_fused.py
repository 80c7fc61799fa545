"""The whole pyramid of a gated recursive convolution as one step of autograd, on the CPU.

A level is stored with neighbours first, [m, batch, dim]: then all left neighbours are one matrix and all right ones are
the same matrix a batch further on. The scores of all gates and new vectors are two products, nothing is copied, and a
kernel does the rest in one pass.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from trelliswork.nn.encoders import grconv_kernels as kernels
from trelliswork.runtime.shapes import Float


class Pyramid(torch.autograd.Function):
    """z of all segments [k, n, batch, dim], 0 where they would run past the end; k levels from the tokens up.

    `w_left` and `w_right` [3 dim, dim] and `bias` [3 dim] have the gates L and R, less the gate M, then the new vector:
    the softmax over three scores stays the same when one of them is taken off all.
    """

    @staticmethod
    def forward(
        ctx: Any,
        tokens: Float[Tensor, "n batch dim"],
        w_left: Float[Tensor, "3dim dim"],
        w_right: Float[Tensor, "3dim dim"],
        bias: Float[Tensor, "3dim"],
        n_levels: int,
    ) -> Float[Tensor, "k n batch dim"]:
        n, batch, dim = tokens.shape
        levels = tokens.new_zeros(n_levels, n, batch, dim)
        levels[0] = tokens
        states = []
        for d in range(1, min(n_levels, n)):
            left, right = _neighbours(levels[d - 1], n - d)
            scores = torch.mm(left, w_left.T).addmm_(right, w_right.T)
            kernels.mix(scores.numpy(), bias.numpy(), left.numpy(), right.numpy(), _rows(levels[d], n - d).numpy())
            states.append(scores)
        ctx.save_for_backward(tokens, w_left, w_right, bias, levels, *states)
        return levels

    @staticmethod
    def backward(ctx: Any, grad: Float[Tensor, "k n batch dim"]) -> Any:
        tokens, w_left, w_right, bias, levels, *states = ctx.saved_tensors
        if torch.is_grad_enabled():
            return *_by_reference(tokens, w_left, w_right, bias, grad), None
        n, batch, dim = tokens.shape
        grads = grad.clone(memory_format=torch.contiguous_format)  # becomes dL/dz, from the top down
        found = [torch.zeros_like(part) for part in (w_left, w_right, bias)]
        workspace = tokens.new_empty(max(n - 1, 0) * batch, 3 * dim)
        for d in range(len(states), 0, -1):
            left, right = _neighbours(levels[d - 1], n - d)
            to_left, to_right = _neighbours(grads[d - 1], n - d)
            own, state = _rows(grads[d], n - d).numpy(), states[d - 1].numpy()
            by_scores = workspace[: len(left)]
            output = _rows(levels[d], n - d).numpy()
            kernels.unmix(own, state, left.numpy(), right.numpy(), output, by_scores.numpy())
            kernels.add_gated(own, state, 0, to_left.numpy())
            kernels.add_gated(own, state, 1, to_right.numpy())
            to_left.addmm_(by_scores, w_left)
            to_right.addmm_(by_scores, w_right)
            found[0].addmm_(by_scores.T, left)
            found[1].addmm_(by_scores.T, right)
            found[2] += by_scores.sum(0)
        return grads[0], *found, None


def _rows(level: Float[Tensor, "n batch dim"], m: int) -> Float[Tensor, "mbatch dim"]:
    """The first m segments of a level as one matrix."""
    return level[:m].flatten(0, 1)


def _neighbours(level: Float[Tensor, "n batch dim"], m: int) -> tuple[Tensor, Tensor]:
    """Segments 0..m-1 and 1..m, which share their memory."""
    return level[:m].flatten(0, 1), level[1 : m + 1].flatten(0, 1)


def plain_pyramid(tokens: Tensor, w_left: Tensor, w_right: Tensor, bias: Tensor, n_levels: int) -> Tensor:
    """What `Pyramid` computes, in operations of torch that can be recorded for any number of tokens."""
    level, levels = tokens, [tokens]
    for d in range(1, n_levels):
        left, right = level[:-1], level[1:]
        *gates, new = (left @ w_left.T + right @ w_right.T + bias).chunk(3, -1)
        theta = torch.stack([*gates, torch.zeros_like(new)]).softmax(0)
        level = theta[0] * left + theta[1] * right + theta[2] * new.tanh()
        levels.append(torch.cat([level, torch.zeros_like(tokens[:d])]))
    return torch.stack(levels)


def _by_reference(
    tokens: Tensor, w_left: Tensor, w_right: Tensor, bias: Tensor, grad: Tensor
) -> tuple[Tensor | None, ...]:
    """The gradient as a graph that can be differentiated again."""
    inputs = (tokens, w_left, w_right, bias)
    needed = [each for each in inputs if each.requires_grad]
    levels = plain_pyramid(*inputs, len(grad))
    found = iter(torch.autograd.grad(levels, needed, grad, create_graph=True, allow_unused=True))
    return tuple(next(found) if each.requires_grad else None for each in inputs)
