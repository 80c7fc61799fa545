"""The decoder of Luong, Pham and Manning: recurrent layers, attention of the new state, input feeding."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from trelliswork.errors import ScoreError
from trelliswork.nn.decoders.attention import (
    Memory,
    Scoring,
    Window,
    align,
    attend,
    ends_of,
    make_score,
    window_of,
)
from trelliswork.nn.decoders.base import Decoder, State, Step, Unrolled
from trelliswork.nn.decoders.coverage import Kind, make_coverage
from trelliswork.nn.dropout import Dropout
from trelliswork.runtime.shapes import Bool, Float

_CELLS: dict[str, type[nn.LSTM] | type[nn.GRU]] = {"lstm": nn.LSTM, "gru": nn.GRU}


class LuongState(NamedTuple):
    """States of the layers (and cells of LSTMs), h̃ of the step before, coverage, the number of the step."""

    hidden: Float[Tensor, "batch beam layers h"]
    cells: Float[Tensor, "batch beam layers h"]
    fed: Float[Tensor, "batch beam h"]
    covered: Float[Tensor, "batch beam n w"]
    time: Float[Tensor, "batch beam"]


class LuongDecoder(Decoder):
    """Recurrent layers whose new state h_t attends to the input; h̃_t = tanh(W_c [c_t; h_t]) is the output.

    `score` is dot, general or concat; `window` global, local-m (monotonic) or local-p (predictive), `reach` positions
    to either side. With input `feeding`, h̃_t is read with the next symbol. `coverage` lets attention see
    where it has been.

        >>> decoder = LuongDecoder(32, 64, hidden=48)
        >>> memory = decoder.remember(torch.zeros(2, 7, 64), torch.ones(2, 7, dtype=torch.bool))
        >>> decoder(memory, torch.zeros(2, 5, 32)).hidden.shape
        torch.Size([2, 5, 48])

    Luong, Pham and Manning (2015), Effective approaches to attention-based neural machine translation.
    """

    def __init__(
        self, symbol_dim: int, source_dim: int, *, hidden: int = 256, layers: int = 1,
        cell: Literal["lstm", "gru"] = "gru", score: Scoring = "general", window: Window = "global", reach: int = 10,
        feeding: bool = True, coverage: Kind = "none", dropout: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__()
        if cell not in _CELLS or layers < 1:
            raise ScoreError(f"cell must be lstm or gru, and layers at least 1; got {cell!r}, {layers}")
        self.dim, self.layers, self.feeding = hidden, layers, feeding
        self.coverage = make_coverage(coverage, source_dim, hidden)
        self.start = nn.Linear(source_dim, layers * hidden)
        read = symbol_dim + (hidden if feeding else 0)
        between = dropout if layers > 1 else 0.0
        self.recurrent = _CELLS[cell](read, hidden, layers, batch_first=True, dropout=between)
        self.score = make_score(score, hidden, source_dim, self.coverage.width if self.coverage else 0)
        self.window = window_of(window, hidden, reach)
        self.output = nn.Linear(source_dim + hidden, hidden, bias=False)  # W_c
        self.dropout = Dropout(dropout)

    def remember(self, encoded: Float[Tensor, "batch n d"], mask: Bool[Tensor, "batch n"]) -> Memory:
        return Memory(encoded, self.score.keys(encoded), mask)  # type: ignore[operator]

    def initial(self, memory: Memory, room: int = 1) -> LuongState:
        hidden = self.start(ends_of(memory.values, memory.mask)).tanh().view(-1, 1, self.layers, self.dim)
        batch = len(hidden)
        cells = torch.zeros_like(hidden) if isinstance(self.recurrent, nn.LSTM) else hidden[..., :0]
        covered = hidden.new_zeros(batch, 1, 0, 0) if self.coverage is None else self.coverage.initial(memory.values)
        return LuongState(hidden, cells, hidden.new_zeros(batch, 1, self.dim), covered, hidden.new_zeros(batch, 1))

    def step(self, memory: Memory, state: State, symbols: Float[Tensor, "batch beam e"]) -> Step:
        before = LuongState(*state)
        read = torch.cat([before.fed, symbols], -1) if self.feeding else symbols
        tops, hidden, cells = self._recur(before, read.flatten(0, 1)[:, None])
        top = tops.view(*symbols.shape[:2], -1)
        weights = self._weights(memory, top, before)
        output = self._combine(attend(weights, memory.values), top)
        covered = before.covered
        if self.coverage is not None:
            covered = self.coverage(covered, weights, memory.values, top)
        return Step(output, weights, LuongState(hidden, cells, output, covered, before.time + 1))

    def forward(self, memory: Memory, symbols: Float[Tensor, "batch t e"]) -> Unrolled:
        """Without feeding and coverage, attention is computed for all steps at once."""
        if self.feeding or self.coverage is not None:
            return super().forward(memory, symbols)
        state = self.initial(memory)
        top, _, _ = self._recur(state, symbols)
        time = torch.arange(top.shape[1], device=top.device, dtype=top.dtype).expand(top.shape[:2])
        weights = self._weights(memory, top, state._replace(time=time))
        return Unrolled(self._combine(attend(weights, memory.values), top), weights)

    def _recur(
        self, state: LuongState, read: Float[Tensor, "rows t e"]
    ) -> tuple[Float[Tensor, "rows t h"], Float[Tensor, "batch beam layers h"], Float[Tensor, "batch beam layers h"]]:
        """States of the top layer at each step, and those of all layers at the last."""
        shape = state.hidden.shape[:2]
        before = state.hidden.flatten(0, 1).transpose(0, 1).contiguous()
        if isinstance(self.recurrent, nn.LSTM):
            cells = state.cells.flatten(0, 1).transpose(0, 1).contiguous()
            tops, (hidden, cells) = self.recurrent(read, (before, cells))
            return tops, hidden.transpose(0, 1).unflatten(0, shape), cells.transpose(0, 1).unflatten(0, shape)
        tops, hidden = self.recurrent(read, before)
        return tops, hidden.transpose(0, 1).unflatten(0, shape), state.cells

    def _weights(
        self, memory: Memory, queries: Float[Tensor, "batch m h"], state: LuongState
    ) -> Float[Tensor, "batch m n"]:
        covered = (state.covered,) if self.coverage is not None else ()
        scores = self.score(queries, memory.keys, *covered)
        if self.window is None:
            return align(scores, memory.mask)  # [S4.53-54]
        masked = scores.masked_fill(~memory.mask[:, None], -torch.inf)
        return self.window(masked, self.window.centre(queries, state.time, memory.mask))

    def _combine(
        self, context: Float[Tensor, "batch m d"], hidden: Float[Tensor, "batch m h"]
    ) -> Float[Tensor, "batch m h"]:
        """h̃ = tanh(W_c [c; h])."""  # [S4.48, 50, 56]
        return self.dropout(self.output(torch.cat([context, hidden], -1)).tanh())
