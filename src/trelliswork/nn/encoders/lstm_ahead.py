"""An LSTM from the first token to the last as one step of autograd, on the CPU; see `lstm_fused.py`."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from trelliswork.nn.encoders import lstm_kernels as kernels
from trelliswork.nn.encoders.lstm_fused import Packing
from trelliswork.nn.kernel_math import can_fuse
from trelliswork.runtime.autograd import fused
from trelliswork.runtime.shapes import Bool, Float


def read_forwards(
    reader: nn.LSTM, tokens: Float[Tensor, "batch n d"], mask: Bool[Tensor, "batch n"]
) -> Float[Tensor, "batch n hidden"]:
    """Return the states of a one-layer LSTM after each token.

    Args:
        reader: The LSTM, with `batch_first=True`.
        tokens: Vectors of the tokens.
        mask: True at the tokens of each row, which come first; states after them are 0.
    """
    weights = reader.all_weights[0]
    if not (torch.is_grad_enabled() and can_fuse(tokens, weights[0]) and bool(mask.any())):
        states: Tensor = reader(tokens)[0]
        return states * mask.unsqueeze(-1)
    packing = Packing.of(mask)
    parameters = weights[0].T, weights[1].T, weights[2] + weights[3]
    states = fused(ForwardLSTM(packing), tokens.flatten(0, 1), *parameters)
    return states.unflatten(0, tokens.shape[:2])


@dataclass(frozen=True)
class ForwardLSTM:
    """The states [positions, hidden] of an LSTM; weights and bias are those of `nn.LSTM`, transposed."""

    packing: Packing

    def forward(
        self,
        tokens: Float[Tensor, "positions d"],
        w_in: Float[Tensor, "d 4hidden"],
        w_on: Float[Tensor, "hidden 4hidden"],
        bias: Float[Tensor, "4hidden"],
    ) -> tuple[Float[Tensor, "positions hidden"], tuple[Tensor, ...]]:
        packing = self.packing
        first, (hidden, width) = packing.counts[0], w_on.shape
        gates = tokens.index_select(0, packing.order[0]) @ w_in
        squashed = tokens.new_empty(len(gates), hidden)
        cells, states = (tokens.new_empty(first + len(gates), hidden) for _ in range(2))
        cells[:first], states[:first] = 0, 0
        recurrent = tokens.new_zeros(first * width)
        arrays = [tensor.numpy() for tensor in (gates[None], bias[None], recurrent)]
        arrays += [tensor[None].numpy() for tensor in (cells, squashed, states)]
        for start, before, count in packing.steps():
            if start:
                torch.mm(states[before : before + count], w_on, out=recurrent[: count * width].view(count, width))
            kernels.advance(*arrays, start, before, count)
        return _unpack(states, packing, len(tokens)), (gates, cells, squashed, states)

    def backward(
        self, tensors: tuple[Tensor, ...], kept: tuple[Tensor, ...], grads: tuple[Tensor]
    ) -> tuple[Tensor, ...]:
        (tokens, w_in, w_on, _), (gates, cells, squashed, states) = tensors, kept
        packing = self.packing
        by_gates = _back_through_steps(packing, w_on, (gates, cells, squashed), grads[0])
        by_tokens = tokens.new_zeros(tokens.shape).index_copy_(0, packing.order[0], by_gates @ w_in.T)
        by_w_in = tokens.index_select(0, packing.order[0]).T @ by_gates
        by_w_on = states.index_select(0, packing.before).T @ by_gates
        return by_tokens, by_w_in, by_w_on, by_gates.sum(0)

    def reference(self, tokens: Tensor, w_in: Tensor, w_on: Tensor, bias: Tensor) -> Tensor:
        return plain_forward_lstm(tokens, w_in, w_on, bias, self.packing)


def _unpack(states: Tensor, packing: Packing, n_positions: int) -> Tensor:
    unpacked = states.new_zeros(n_positions, states.shape[1])
    return unpacked.index_copy_(0, packing.order[0], states[packing.counts[0] :])


def _back_through_steps(
    packing: Packing, w_on: Tensor, left: tuple[Tensor, ...], grad: Tensor
) -> Float[Tensor, "m 4hidden"]:
    """Return dL/d(gates before σ and tanh), computed from the last step to the first."""
    first, hidden, n_next = packing.counts[0], len(w_on), 0
    by_states, by_gates, back = grad.index_select(0, packing.order[0]), torch.empty_like(left[0]), w_on.T.contiguous()
    by_cells, by_next = grad.new_zeros(1, first, hidden), grad.new_empty(first * hidden)
    kept = tuple(tensor[None].numpy() for tensor in left)
    arrays = [tensor.numpy() for tensor in (by_states[None], by_cells, by_gates[None], by_next)]
    for start, before, count in reversed(list(packing.steps())):
        kernels.retreat(kept, *arrays, start, before, count, n_next)
        if start:
            torch.mm(by_gates[start : start + count], back, out=by_next[: count * hidden].view(count, hidden))
        n_next = count
    return by_gates


def plain_forward_lstm(tokens: Tensor, w_in: Tensor, w_on: Tensor, bias: Tensor, packing: Packing) -> Tensor:
    """Compute `ForwardLSTM` with torch operations."""
    inputs = tokens.index_select(0, packing.order[0]) @ w_in + bias
    state = cell = tokens.new_zeros(packing.counts[0], len(w_on))
    states = []
    for count, part in zip(packing.counts, inputs.split(packing.counts), strict=True):
        i, f, g, o = (part + state[:count] @ w_on).chunk(4, -1)
        cell = f.sigmoid() * cell[:count] + i.sigmoid() * g.tanh()
        state = o.sigmoid() * cell.tanh()
        states.append(state)
    empty = tokens.new_zeros(len(tokens), len(w_on))
    return empty.index_copy(0, packing.order[0], torch.cat(states))
