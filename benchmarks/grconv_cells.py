"""The gated recursive convolution one cell at a time, to be compared with: the recursion as it is printed."""

from __future__ import annotations

import torch
from torch import Tensor

from trelliswork.nn import GatedRecursiveConvolution


def by_cells(module: GatedRecursiveConvolution, tokens: Tensor) -> Tensor:
    """What `module(tokens)` gives, [batch, n, k, dim], by a loop over the segments of a batch."""
    n, k = tokens.shape[1], module.max_length
    cells = {(start, 1): tokens[:, start] for start in range(n)}
    for length in range(2, k + 1):
        for start in range(n - length + 1):
            cells[start, length] = _cell(module, cells[start, length - 1], cells[start + 1, length - 1])
    nothing = torch.zeros_like(tokens[:, 0])
    rows = [torch.stack([cells.get((start, length), nothing) for length in range(1, k + 1)], 1) for start in range(n)]
    return torch.stack(rows, 1)


def _cell(module: GatedRecursiveConvolution, left: Tensor, right: Tensor) -> Tensor:
    new = torch.tanh(module.left(left) + module.right(right))
    gates = (module.gate_left(left) + module.gate_right(right)).unflatten(-1, (3, module.dim)).softmax(-2)
    return gates[:, 0] * left + gates[:, 1] * right + gates[:, 2] * new


def problem(batch: int = 32, n: int = 30, k: int = 10, dim: int = 100) -> tuple[GatedRecursiveConvolution, Tensor]:
    """A module and tokens of the size that the benchmark speaks of."""
    torch.manual_seed(0)
    return GatedRecursiveConvolution(dim, k), torch.randn(batch, n, dim, requires_grad=True)


def forward_backward(module: GatedRecursiveConvolution, tokens: Tensor, seed: Tensor, *, cells: bool = False) -> None:
    """One step: all vectors, then the gradients of the tokens and the weights for dL/dz = seed [batch, n, k, dim]."""
    vectors = by_cells(module, tokens) if cells else module(tokens)
    torch.autograd.grad(vectors, [tokens, *module.parameters()], seed)
