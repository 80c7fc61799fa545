"""Recurrent layers that read ahead and hand their state on, so that a text can be read in pieces."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn

from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import Float

ForwardCell = Literal["elman", "gru", "lstm"]
State = tuple[Tensor, ...]  # [1, batch, units] each: of every layer from below, h, and c of an LSTM
_CELLS: dict[str, tuple[Callable[..., tuple[Tensor, ...]], int]] = {
    "elman": (torch.rnn_tanh, 1),
    "gru": (torch.gru, 3),
    "lstm": (torch.lstm, 4),
}  # and blocks of units


class ForwardShares(NamedTuple):
    """Shares of units that are dropped: of the inputs, between layers, of the output, of the state before."""

    inputs: float = 0.0
    between: float = 0.0
    output: float = 0.0
    recurrent: float = 0.0


class ForwardReader(nn.Module):
    """Layers of Elman networks, GRUs or LSTMs.

    All dropout is variational: one mask for all steps of a call. Masks of inputs and outputs differ from row to row;
    that of the state before, h_{t-1}, is the same for all rows, since it is applied to the weights that h_{t-1} is
    multiplied by, and a layer remains one call of torch.

    Args:
        dim: Width of the inputs.
        sizes: Units of each layer.
        cell: "elman", "gru" or "lstm".
        shares: Shares of units that are dropped in training; none by default.

        >>> states, state = ForwardReader(3, [5, 4])(torch.zeros(7, 2, 3))
        >>> states.shape, len(state)
        (torch.Size([7, 2, 4]), 4)

    Elman (1990), Finding structure in time; Gal and Ghahramani (2016), A theoretically grounded application of dropout
    in recurrent neural networks.
    """

    def __init__(
        self, dim: int, sizes: list[int], cell: ForwardCell = "lstm", shares: ForwardShares | None = None
    ) -> None:
        super().__init__()
        if cell not in _CELLS:
            raise ScoreError(f"cell must be one of {', '.join(get_args(ForwardCell))}; got {cell!r}")
        self.cell, self.sizes, self.shares = cell, list(sizes), shares or ForwardShares()
        self._run, blocks = _CELLS[cell]
        widths = [dim, *sizes[:-1]]
        self.w_in = nn.ParameterList(torch.empty(blocks * n, d) for n, d in zip(sizes, widths, strict=True))
        self.w_on = nn.ParameterList(torch.empty(blocks * n, n) for n in sizes)
        self.biases = nn.ParameterList(torch.zeros(blocks * n) for n in sizes)
        for n, w_in, w_on in zip(sizes, self.w_in, self.w_on, strict=True):
            for weight in (w_in, w_on):
                nn.init.uniform_(weight, -1 / math.sqrt(n), 1 / math.sqrt(n))

    def first_state(self, batch: int) -> State:
        """Return the state before anything was read: zeros."""
        like, per_layer = self.biases[0], 2 if self.cell == "lstm" else 1
        return tuple(like.new_zeros(1, batch, n) for n in self.sizes for _ in range(per_layer))

    def forward(
        self, vectors: Float[Tensor, "n batch d"], state: State | None = None
    ) -> tuple[Float[Tensor, "n batch hidden"], State]:
        """Return the states of the top layer after each step, and those of all layers after the last."""
        layers, after = self.all_layers(vectors, state)
        return layers[-1], after

    def all_layers(
        self, vectors: Float[Tensor, "n batch d"], state: State | None = None
    ) -> tuple[list[Float[Tensor, "n batch hidden"]], State]:
        """Return the states of each layer after each step, from below, and those after the last step."""
        state = self.first_state(vectors.shape[1]) if state is None else state
        per_layer, after, layers = len(state) // len(self.sizes), list[Tensor](), list[Tensor]()
        vectors = self._masked(vectors, self.shares.inputs)
        for layer, (w_in, w_on, bias) in enumerate(zip(self.w_in, self.w_on, self.biases, strict=True)):
            own = state[layer * per_layer : (layer + 1) * per_layer]
            weights = [w_in, self._masked_columns(w_on), bias, torch.zeros_like(bias)]
            before = own if self.cell == "lstm" else own[0]
            vectors, *last = self._run(
                vectors, before, weights, True, 1, 0.0, self.training, False, False
            )  # [S2, Elman]
            after += last
            is_top = layer == len(self.sizes) - 1
            vectors = self._masked(vectors, self.shares.output if is_top else self.shares.between)
            layers.append(vectors)
        return layers, tuple(after)

    def _masked(self, vectors: Float[Tensor, "n batch d"], share: float) -> Float[Tensor, "n batch d"]:
        """Drop the same units of a row at all steps."""  # [S4.779]
        if not self.training or share == 0:
            return vectors
        keep = torch.empty_like(vectors[:1]).bernoulli_(1 - share).div_(1 - share)
        return vectors * keep

    def _masked_columns(self, w_on: Float[Tensor, "gates hidden"]) -> Float[Tensor, "gates hidden"]:
        """Drop the same units of the state before at all steps: W (m * h) = (W diag m) h."""  # [S4.779]
        share = self.shares.recurrent
        if not self.training or share == 0:
            return w_on
        keep = torch.empty_like(w_on[0]).bernoulli_(1 - share).div_(1 - share)
        return w_on * keep
