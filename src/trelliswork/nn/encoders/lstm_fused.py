"""LSTMs as one step of autograd, on the CPU: bidirectional ones, and at the end one that only reads ahead.

Tokens are packed: sentences that have ended take no part in later steps, both directions take a step at once, and what
does not depend on the previous step is one matrix product for all tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from trelliswork.nn.encoders import lstm_kernels as kernels
from trelliswork.nn.kernel_math import can_fuse
from trelliswork.runtime.arrays import Bool, Float, Int
from trelliswork.runtime.autograd import fused


def read_bidirectional(
    forwards: nn.LSTM, backwards: nn.LSTM, tokens: Float[Tensor, "batch n d"], packing: Packing
) -> Float[Tensor, "batch n 2hidden"]:
    """Return the states of two LSTMs after each token, side by side; 0 where there is no token.

    Args:
        forwards: The LSTM that reads from the first token to the last.
        backwards: The LSTM that reads from the last token to the first.
        tokens: Vectors of the tokens.
        packing: The order in which they are read, from `Packing.of(mask)`.
    """
    ahead, back = forwards.all_weights[0], backwards.all_weights[0]  # weights of tokens and of states, two biases
    w_in, w_on = (torch.stack([ahead[part].T, back[part].T]) for part in (0, 1))
    bias = torch.stack([ahead[2] + ahead[3], back[2] + back[3]])
    states = fused(BiLSTM(packing), tokens.flatten(0, 1), w_in, w_on, bias)
    return states.unflatten(0, tokens.shape[:2])


@dataclass(frozen=True)
class BiLSTM:
    """The states [positions, 2 hidden] of two LSTMs; weights and biases are those of `nn.LSTM`, transposed."""

    packing: Packing

    def forward(
        self,
        tokens: Float[Tensor, "positions d"],
        w_in: Float[Tensor, "2 d 4hidden"],
        w_on: Float[Tensor, "2 hidden 4hidden"],
        bias: Float[Tensor, "2 4hidden"],
    ) -> tuple[Float[Tensor, "positions 2hidden"], tuple[Tensor, ...]]:
        """Compute the states of two LSTMs, one in each direction.

        Args:
            tokens: Vectors of the tokens [positions, d].
            w_in: Weights from tokens to gates [2, d, 4 hidden].
            w_on: Weights from states to gates [2, hidden, 4 hidden].
            bias: Of the gates [2, 4 hidden].

        Returns:
            States [positions, 2 hidden], and what `backward` needs.
        """
        packing = self.packing
        first, (_, hidden, width) = packing.counts[0], w_on.shape
        gates = torch.bmm(packing.pack(tokens), w_in)
        squashed = tokens.new_empty(2, gates.shape[1], hidden)
        cells, states = (tokens.new_empty(2, first + gates.shape[1], hidden) for _ in range(2))
        cells[:, :first], states[:, :first] = 0, 0
        recurrent = tokens.new_zeros(2 * first * width)
        arrays = [tensor.numpy() for tensor in (gates, bias, recurrent, cells, squashed, states)]
        for start, before, count in packing.steps():
            if start:
                out = recurrent[: 2 * count * width].view(2, count, width)
                torch.bmm(states[:, before : before + count], w_on, out=out)
            kernels.advance(*arrays, start, before, count)
        return packing.unpack(states), (gates, cells, squashed, states)

    def backward(
        self, tensors: tuple[Tensor, ...], kept: tuple[Tensor, ...], grads: tuple[Tensor]
    ) -> tuple[Tensor, ...]:
        """Return the gradient by each of the tensors.

        Args:
            tensors: Tokens, w_in, w_on, bias, as `forward` was given them.
            kept: Gates, cells and states.
            grads: Gradient by each of the results.

        Returns:
            One tensor for each of `tensors`, shaped like it.
        """
        (tokens, w_in, w_on, _), (gates, cells, squashed, states) = tensors, kept
        packing = self.packing
        by_gates = _back_through_steps(packing, w_on, gates, cells, squashed, grads[0])
        by_tokens = packing.sum(torch.bmm(by_gates, w_in.transpose(1, 2)), len(tokens))
        by_w_in = torch.bmm(packing.pack(tokens).transpose(1, 2), by_gates)
        by_w_on = torch.bmm(states.index_select(1, packing.before).transpose(1, 2), by_gates)
        return by_tokens, by_w_in, by_w_on, by_gates.sum(1)

    def reference(self, tokens: Tensor, w_in: Tensor, w_on: Tensor, bias: Tensor) -> Tensor:
        """Compute the results of `forward` with torch operations.

        Args:
            tokens: Vectors of the tokens [positions, d].
            w_in: Weights from tokens to gates [2, d, 4 hidden].
            w_on: Weights from states to gates [2, hidden, 4 hidden].
            bias: Of the gates [2, 4 hidden].

        Returns:
            The results, differentiable by autograd.
        """
        return plain_bilstm(tokens, w_in, w_on, bias, self.packing)


def _back_through_steps(
    packing: Packing, w_on: Tensor, gates: Tensor, cells: Tensor, squashed: Tensor, grad: Tensor
) -> Float[Tensor, "2 m 4hidden"]:
    """Return dL/d(gates before σ and tanh), computed from the last step to the first."""
    first, hidden, n_next = packing.counts[0], w_on.shape[1], 0
    by_states, by_gates, back = packing.pack_halves(grad), torch.empty_like(gates), w_on.transpose(1, 2).contiguous()
    by_cells, by_next = grad.new_zeros(2, first, hidden), grad.new_empty(2 * first * hidden)
    left = gates.numpy(), cells.numpy(), squashed.numpy()
    arrays = [tensor.numpy() for tensor in (by_states, by_cells, by_gates, by_next)]
    for start, before, count in reversed(list(packing.steps())):
        kernels.retreat(left, *arrays, start, before, count, n_next)
        if start:
            out = by_next[: 2 * count * hidden].view(2, count, hidden)
            torch.bmm(by_gates[:, start : start + count], back, out=out)
        n_next = count
    return by_gates


def plain_bilstm(tokens: Tensor, w_in: Tensor, w_on: Tensor, bias: Tensor, packing: Packing) -> Tensor:
    """Compute `BiLSTM` with torch operations.

    Args:
        tokens: Vectors of the tokens.
        w_in: Weights of the tokens.
        w_on: Weights of the previous states.
        bias: Bias of the gates.
        packing: Order of the tokens.
    """
    inputs = packing.pack(tokens) @ w_in + bias.unsqueeze(1)
    state = cell = tokens.new_zeros(2, packing.counts[0], w_on.shape[1])
    states = [state]
    for count, part in zip(packing.counts, inputs.split(packing.counts, 1), strict=True):
        i, f, g, o = (part + state[:, :count] @ w_on).chunk(4, -1)
        cell = f.sigmoid() * cell[:, :count] + i.sigmoid() * g.tanh()
        state = o.sigmoid() * cell.tanh()
        states.append(state)
    return packing.unpack(torch.cat(states, 1))


# The order of the tokens of a batch when its sentences are read step by step, from both ends at once.


@dataclass(frozen=True)
class Packing:
    """The m tokens of a batch in the order in which two LSTMs read them.

    The tokens of the first step come first, from the longest sentence to the shortest, then those of the second step,
    and so on; sentences that have ended take no part in later steps. Reader 0 goes from the first token to the last,
    reader 1 from the last to the first. Rows of states are the initial ones, which are 0, then those after each token.

    Attributes:
        counts: Number of sentences in each step.
        tokens: Flat positions of all tokens in the batch.
        places: Place of each of them in the order of each reader.
        order: Flat position of the token at each place, for each reader.
        before: Row of the previous state, for each place.
        sources: Row of the state of each reader at each flat position; 0 where there is no token.

        >>> packing = Packing.of(torch.tensor([[True, False], [True, True]]))
        >>> packing.counts, packing.order.tolist(), packing.before.tolist()
        ([2, 1], [[2, 0, 3], [3, 0, 2]], [0, 1, 2])
    """

    counts: list[int]
    tokens: Int[Tensor, "m"]
    places: Int[Tensor, "2 m"]
    order: Int[Tensor, "2 m"]
    before: Int[Tensor, "m"]
    sources: Int[Tensor, "positions2"]

    @classmethod
    def of(cls, mask: Bool[Tensor, "batch n"]) -> Packing:
        """Return the packing of the tokens where `mask` is True, at least one."""
        inside = mask.numpy()
        lengths = inside.sum(1)
        rank = np.argsort(np.argsort(-lengths, kind="stable"))  # of each sentence among those sorted by length
        counts = (lengths > np.arange(lengths.max())[:, None]).sum(1)
        starts, first, m = np.cumsum(counts) - counts, counts[0], counts.sum()
        sentence, step = inside.nonzero()[0], inside.cumsum(1)[inside] - 1
        # Reader 0 reads a token in the step of its position, reader 1 in that of its distance to the last token.
        places = starts[np.stack([step, lengths[sentence] - 1 - step])] + rank[sentence]
        tokens, order, sources = np.flatnonzero(inside), np.empty_like(places), np.zeros((mask.numel(), 2), np.int64)
        np.put_along_axis(order, places, tokens[None], 1)
        sources[tokens] = (places + first + [[0], [first + m]]).T
        # A sentence has the same rank in every step: its previous place is `counts` of the previous step earlier.
        before = np.arange(m) + np.repeat(first - np.concatenate([[first], counts[:-1]]), counts)
        arrays = (tokens, places, order, before, sources.reshape(-1))
        return cls(counts.tolist(), *(torch.from_numpy(array) for array in arrays))

    def steps(self) -> Iterator[tuple[int, int, int]]:
        """Yield for each step its first place, the row of the state before that, and its number of places."""
        start, last = 0, self.counts[0]
        for count in self.counts:
            yield start, self.counts[0] + start - last, count
            start, last = start + count, count

    def pack(self, rows: Float[Tensor, "positions d"]) -> Float[Tensor, "2 m d"]:
        """Arrange the rows of all positions in the order of each reader."""
        return rows.index_select(0, self.order.flatten()).unflatten(0, self.order.shape)

    def unpack(self, states: Float[Tensor, "2 m_and_first d"]) -> Float[Tensor, "positions 2d"]:
        """Return the states of both readers at each position, side by side; 0 where there is no token."""
        return states.flatten(0, 1).index_select(0, self.sources).view(-1, 2 * states.shape[2])

    def pack_halves(self, rows: Float[Tensor, "positions 2d"]) -> Float[Tensor, "2 m d"]:
        """Arrange the first half of each row in the order of reader 0 and the second half in that of reader 1."""
        halves = 2 * self.order + torch.tensor([[0], [1]])
        return rows.reshape(2 * len(rows), -1).index_select(0, halves.flatten()).unflatten(0, self.order.shape)

    def sum(self, packed: Float[Tensor, "2 m d"], n_positions: int) -> Float[Tensor, "positions d"]:
        """Add the rows of both readers at the position of each token, the transpose of `pack`."""
        both = packed[0].index_select(0, self.places[0]).add_(packed[1].index_select(0, self.places[1]))
        return packed.new_zeros(n_positions, packed.shape[2]).index_copy_(0, self.tokens, both)


# An LSTM from the first token to the last.


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
        """Compute the states of an LSTM.

        Args:
            tokens: Vectors of the tokens [positions, d].
            w_in: Weights from tokens to gates [d, 4 hidden].
            w_on: Weights from states to gates [hidden, 4 hidden].
            bias: Of the gates [4 hidden].

        Returns:
            States [positions, hidden], and what `backward` needs.
        """
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
        """Return the gradient by each of the tensors.

        Args:
            tensors: Tokens, w_in, w_on, bias, as `forward` was given them.
            kept: Gates, cells and states.
            grads: Gradient by each of the results.

        Returns:
            One tensor for each of `tensors`, shaped like it.
        """
        (tokens, w_in, w_on, _), (gates, cells, squashed, states) = tensors, kept
        packing = self.packing
        by_gates = _back_through_forward_steps(packing, w_on, (gates, cells, squashed), grads[0])
        by_tokens = tokens.new_zeros(tokens.shape).index_copy_(0, packing.order[0], by_gates @ w_in.T)
        by_w_in = tokens.index_select(0, packing.order[0]).T @ by_gates
        by_w_on = states.index_select(0, packing.before).T @ by_gates
        return by_tokens, by_w_in, by_w_on, by_gates.sum(0)

    def reference(self, tokens: Tensor, w_in: Tensor, w_on: Tensor, bias: Tensor) -> Tensor:
        """Compute the results of `forward` with torch operations.

        Args:
            tokens: Vectors of the tokens [positions, d].
            w_in: Weights from tokens to gates [d, 4 hidden].
            w_on: Weights from states to gates [hidden, 4 hidden].
            bias: Of the gates [4 hidden].

        Returns:
            The results, differentiable by autograd.
        """
        return plain_forward_lstm(tokens, w_in, w_on, bias, self.packing)


def _unpack(states: Tensor, packing: Packing, n_positions: int) -> Tensor:
    unpacked = states.new_zeros(n_positions, states.shape[1])
    return unpacked.index_copy_(0, packing.order[0], states[packing.counts[0] :])


def _back_through_forward_steps(
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
    """Compute `ForwardLSTM` with torch operations.

    Args:
        tokens: Vectors of the tokens.
        w_in: Weights of the tokens.
        w_on: Weights of the previous states.
        bias: Bias of the gates.
        packing: Order of the tokens.
    """
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
