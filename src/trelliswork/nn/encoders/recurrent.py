"""Recurrent encoders, which read each token in the context of all tokens before and after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn

from trelliswork.errors import ScoreError
from trelliswork.nn.encoders.base import TokenEncoder
from trelliswork.nn.encoders.lstm_fused import Packing, read_bidirectional
from trelliswork.nn.inputs.dropout import VariationalDropout
from trelliswork.nn.kernel_math import can_fuse
from trelliswork.runtime.arrays import Bool, Float, Int

ReadLayer = Callable[..., Tensor]  # forward cell, backward cell, tokens -> states
MANY = 8  # sentences from which on packing is faster than torch's own loop
Cell = Literal["lstm", "gru"]
_CELLS: dict[str, type[nn.LSTM] | type[nn.GRU]] = {"lstm": nn.LSTM, "gru": nn.GRU}


class RecurrentEncoder(TokenEncoder):
    """Layers of bidirectional LSTMs or GRUs.

    Masked positions are skipped, wherever they are, and give zeros.

    Args:
        dim: Width of the vectors of tokens.
        hidden: Units in each direction; the output has twice as many.
        layers: Number of layers.
        cell: "lstm" or "gru".
        dropout: Share of units dropped between layers, the same for all tokens of a sentence.

        >>> RecurrentEncoder(55, hidden=200)(torch.zeros(2, 7, 55)).shape
        torch.Size([2, 7, 400])

    Huang, Xu and Yu (2015), Bidirectional LSTM-CRF models for sequence tagging.
    """

    # [S4.220]

    def __init__(self, dim: int, *, hidden: int = 200, layers: int = 1, cell: Cell = "lstm", dropout: float = 0.0):
        super().__init__()
        if cell not in _CELLS:
            raise ScoreError(f"cell must be one of {', '.join(_CELLS)}; got {cell!r}")
        if layers < 1:
            raise ScoreError(f"layers must be at least 1; got {layers}")
        self.dim = 2 * hidden
        self.dropout = VariationalDropout(dropout)
        sizes = [dim] + [self.dim] * (layers - 1)
        self.forwards = nn.ModuleList(_CELLS[cell](size, hidden, batch_first=True) for size in sizes)
        self.backwards = nn.ModuleList(_CELLS[cell](size, hidden, batch_first=True) for size in sizes)

    def forward(
        self, tokens: Float[Tensor, "batch n d"], mask: Bool[Tensor, "batch n"] | None = None
    ) -> Float[Tensor, "batch n hidden"]:
        """Encode each token; masked positions give zeros."""
        mask = torch.ones(tokens.shape[:2], dtype=torch.bool, device=tokens.device) if mask is None else mask
        read = self._choose_reader(tokens, mask)
        for layer, (forwards, backwards) in enumerate(zip(self.forwards, self.backwards, strict=True)):
            tokens = read(forwards, backwards, tokens if layer == 0 else self.dropout(tokens))
        return tokens

    def _choose_reader(self, tokens: Float[Tensor, "batch n d"], mask: Bool[Tensor, "batch n"]) -> ReadLayer:
        """Return a function that runs a layer in both directions: by kernels if they are faster, else by torch."""
        cell = self.forwards[0]
        if isinstance(cell, nn.LSTM) and _worth_packing(mask) and can_fuse(tokens, cell.all_weights[0][0]):
            packing = Packing.of(mask)
            return lambda forwards, backwards, tokens: read_bidirectional(forwards, backwards, tokens, packing)
        ahead, back = reading_orders(mask)

        def read(forwards: nn.Module, backwards: nn.Module, tokens: Tensor) -> Tensor:
            states = [_read(forwards, tokens, ahead), _read(backwards, tokens, back)]
            return torch.cat(states, -1) * mask.unsqueeze(-1)

        return read


def _worth_packing(mask: Bool[Tensor, "batch n"]) -> bool:
    """Return True if packing is faster; with few sentences torch is."""
    return len(mask) >= MANY and mask.device.type == "cpu" and bool(mask.any())


def reading_orders(mask: Bool[Tensor, "batch n"]) -> tuple[Int[Tensor, "batch n"], Int[Tensor, "batch n"]]:
    """Return the positions of each row with tokens first, once from the first token to the last and once reversed.

    >>> ahead, back = reading_orders(torch.tensor([[True, False, True]]))
    >>> ahead.tolist(), back.tolist()
    ([[0, 2, 1]], [[2, 0, 1]])
    """
    n = mask.shape[1]
    place = torch.arange(n, device=mask.device)
    return (place + n * ~mask).argsort(1), (n - place + 2 * n * ~mask).argsort(1)


def _read(
    cell: nn.Module, tokens: Float[Tensor, "batch n d"], order: Int[Tensor, "batch n"]
) -> Float[Tensor, "batch n hidden"]:
    """Run a cell over tokens in this order, and return its states at the positions of the tokens."""
    states, _ = cell(_reorder(tokens, order))
    return _reorder(states, order.argsort(1))


def _reorder(rows: Float[Tensor, "batch n d"], order: Int[Tensor, "batch n"]) -> Float[Tensor, "batch n d"]:
    """Return row order[b, i] of sentence b at [b, i]."""
    # `index_select` copies whole rows, which is faster than `gather`.
    batch, n, _ = rows.shape
    flat = (order + n * torch.arange(batch, device=order.device)[:, None]).flatten()
    return rows.flatten(0, 1).index_select(0, flat).view(rows.shape)
