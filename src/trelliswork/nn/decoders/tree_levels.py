"""An LSTM over several sequences side by side, each from a state of its own; on the CPU as one step of autograd."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from trelliswork.nn.encoders import lstm_kernels as kernels
from trelliswork.nn.kernel_math import can_fuse
from trelliswork.runtime.autograd import fused
from trelliswork.runtime.shapes import Float

States = tuple[Float[Tensor, "symbols h"], Float[Tensor, "symbols h"]]


def read_sequences(
    gates: Float[Tensor, "symbols 4h"],
    widths: Sequence[int],
    w_on: Float[Tensor, "h 4h"],
    hidden: Float[Tensor, "sequences h"],
    cell: Float[Tensor, "sequences h"],
) -> States:
    """Run an LSTM over sequences, which are sorted from the longest to the shortest.

    Args:
        gates: The part of the gates i, f, g and o of `nn.LSTM` that does not depend on the state, for each symbol; the
            first symbols of all sequences come first, then the second ones, and so on.
        widths: How many sequences have a symbol at each step; all of them at the first.
        w_on: Weights from the hidden vectors to the gates.
        hidden: Hidden vectors that the sequences start from.
        cell: Cells that they start from.

    Returns:
        Hidden vectors and cells after each symbol, in the order of `gates`.
    """
    layer, tensors = Sequences(tuple(widths)), (gates, w_on, hidden, cell)
    if torch.is_grad_enabled() and can_fuse(*tensors):
        states: States = fused(layer, *tensors)
        return states
    return layer.reference(*tensors)


@dataclass(frozen=True)
class Sequences:
    """`read_sequences` as one step of autograd; kept states are the initial ones, then those after each symbol."""

    widths: tuple[int, ...]

    def steps(self) -> Iterator[tuple[int, int, int]]:
        """Yield for each step its first symbol, the row of the state before that, and the number of sequences."""
        starts = (0, *accumulate(self.widths))
        rows = (0, *(self.widths[0] + start for start in starts[:-2]))
        yield from zip(starts, rows, self.widths, strict=False)

    def forward(self, gates: Tensor, w_on: Tensor, hidden: Tensor, cell: Tensor) -> tuple[States, tuple[Tensor, ...]]:
        (first, h), gates = hidden.shape, gates.clone()
        recurrent, bias = gates.new_empty(first * 4 * h), gates.new_zeros(1, 4 * h)
        squashed = gates.new_empty(len(gates), h)
        cells, states = (torch.cat([initial, torch.empty_like(squashed)]) for initial in (cell, hidden))
        tensors = (gates[None], bias, recurrent, cells[None], squashed[None], states[None])
        arrays = [tensor.numpy() for tensor in tensors]
        for start, before, count in self.steps():
            out = recurrent[: count * 4 * h].view(count, 4 * h)
            torch.mm(states[before : before + count], w_on, out=out)
            kernels.advance(*arrays, start, before, count)
        return (states[first:], cells[first:]), (gates, cells, squashed, states)

    def backward(self, tensors: tuple[Tensor, ...], kept: tuple[Tensor, ...], grads: States) -> Any:
        (_, w_on, hidden, _), (gates, cells, squashed, states) = tensors, kept
        (first, h), by_gates, back, n_next = hidden.shape, torch.empty_like(gates), w_on.T.contiguous(), 0
        by_states, by_cells, by_next = grads[0].clone(), hidden.new_zeros(1, first, h), hidden.new_empty(first * h)
        left = tuple(tensor[None].numpy() for tensor in (gates, cells, squashed))
        arrays = [tensor.numpy() for tensor in (by_states[None], by_cells, by_gates[None], by_next)]
        for start, before, count in reversed(list(self.steps())):
            by_cells[0, :count] += grads[1][start : start + count]
            kernels.retreat(left, *arrays, start, before, count, n_next)
            torch.mm(by_gates[start : start + count], back, out=by_next[: count * h].view(count, h))
            n_next = count
        rows = torch.cat([torch.arange(before, before + count) for _, before, count in self.steps()])
        return by_gates, states.index_select(0, rows).T @ by_gates, by_next.view(first, h), by_cells[0]

    def reference(self, gates: Tensor, w_on: Tensor, hidden: Tensor, cell: Tensor) -> States:
        states_by_step = []
        for count, part in zip(self.widths, gates.split(self.widths), strict=True):
            i, f, g, o = (part + hidden[:count] @ w_on).chunk(4, -1)
            cell = f.sigmoid() * cell[:count] + i.sigmoid() * g.tanh()
            hidden = o.sigmoid() * cell.tanh()
            states_by_step.append((hidden, cell))
        states, cells = zip(*states_by_step, strict=True)
        return torch.cat(states), torch.cat(cells)
