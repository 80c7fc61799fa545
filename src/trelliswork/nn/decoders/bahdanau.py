"""The decoder of Bahdanau, Cho and Bengio: additive attention from the state before, a GRU, and a maxout layer."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from trelliswork.nn.decoders.attention import (
    AdditiveScore,
    CoverageKind,
    Memory,
    align,
    attend,
    final_states,
    make_coverage,
)
from trelliswork.nn.decoders.base import Decoder, State, Step, Unrolled
from trelliswork.nn.dropout import Dropout
from trelliswork.runtime.arrays import Bool, Float


class BahdanauState(NamedTuple):
    """The state of the GRU, and the coverage of each position (an empty tensor without coverage)."""

    hidden: Float[Tensor, "batch beam h"]
    covered: Float[Tensor, "batch beam n w"]


class BahdanauDecoder(Decoder[Memory]):
    """A GRU whose gates read the previous symbol, the previous state and a context chosen by additive attention.

    The output goes through a maxout layer: u_j = max(ũ_{2j-1}, ũ_{2j}), where ũ is a linear function of state, context
    and previous symbol.

    Args:
        symbol_dim: Width of the vectors of symbols.
        source_dim: Width of the encoded positions.
        hidden: Width of state and output.
        dropout: Share of output units that are dropped.
        coverage: How attention takes the attention of earlier steps into account; see `coverage`.

        >>> decoder = BahdanauDecoder(32, 64, hidden=48)
        >>> memory = decoder.remember(torch.zeros(2, 7, 64), torch.ones(2, 7, dtype=torch.bool))
        >>> decoder(memory, torch.zeros(2, 5, 32)).hidden.shape
        torch.Size([2, 5, 48])

    Bahdanau, Cho and Bengio (2015), Neural machine translation by jointly learning to align and translate, appendix A.
    """

    def __init__(
        self,
        symbol_dim: int,
        source_dim: int,
        *,
        hidden: int = 256,
        dropout: float = 0.0,
        coverage: CoverageKind = "none",
    ) -> None:
        super().__init__()
        self.dim = hidden
        self.start = nn.Linear(source_dim, hidden)
        self.coverage = make_coverage(coverage, source_dim, hidden)
        self.score = AdditiveScore(hidden, source_dim, hidden, self.coverage.width if self.coverage else 0)
        self.inputs = nn.Linear(symbol_dim, 3 * hidden)  # W_z, W_r, W
        self.contexts = nn.Linear(source_dim, 3 * hidden, bias=False)  # the columns of U_z, U_r, U for c
        self.gates = nn.Linear(hidden, 2 * hidden, bias=False)  # the columns of U_z, U_r for s
        self.proposal = nn.Linear(hidden, hidden, bias=False)  # those of U
        self.output = nn.Linear(hidden + source_dim + symbol_dim, 2 * hidden)  # U_o, V_o
        self.dropout = Dropout(dropout)

    def remember(self, encoded: Float[Tensor, "batch n d"], mask: Bool[Tensor, "batch n"]) -> Memory:
        return Memory(encoded, self.score.keys(encoded), mask)

    def initial(self, memory: Memory, room: int = 1) -> BahdanauState:
        """Return s_0 = tanh(W_s h), from the final states h of the encoder."""
        hidden = self.start(final_states(memory.values, memory.mask)).tanh()[:, None]
        if self.coverage is None:
            return BahdanauState(hidden, hidden.new_zeros(len(hidden), 1, 0, 0))
        return BahdanauState(hidden, self.coverage.initial(memory.values))

    def step(self, memory: Memory, state: State, symbols: Float[Tensor, "batch beam e"]) -> Step:
        stepped, context, weights = self._recur(memory, BahdanauState(*state), self.inputs(symbols))
        return Step(self._maxout(stepped.hidden, context, symbols), weights, stepped)

    def forward(self, memory: Memory, symbols: Float[Tensor, "batch t e"]) -> Unrolled:
        """Read given symbols; the products that do not depend on the state are computed for all steps at once."""
        inputs, state = self.inputs(symbols), self.initial(memory)
        hidden, contexts, weights = [], [], []
        for t in range(symbols.shape[1]):
            state, context, weights_at_t = self._recur(memory, state, inputs[:, t : t + 1])
            hidden.append(state.hidden)
            contexts.append(context)
            weights.append(weights_at_t)
        return Unrolled(self._maxout(torch.cat(hidden, 1), torch.cat(contexts, 1), symbols), torch.cat(weights, 1))

    def _recur(
        self, memory: Memory, state: BahdanauState, inputs: Float[Tensor, "batch beam 3h"]
    ) -> tuple[BahdanauState, Float[Tensor, "batch beam d"], Float[Tensor, "batch beam n"]]:
        before, covered = state
        weights = align(self.score(before, memory.keys, covered), memory.mask)  # [S4.5, 11-12, 23]
        context = attend(weights, memory.values)  # [S4.3, 13]
        from_input = inputs + self.contexts(context)
        h = self.dim
        update, reset = (from_input[..., : 2 * h] + self.gates(before)).sigmoid().chunk(2, -1)  # [S4.6-7]
        proposed = (from_input[..., 2 * h :] + self.proposal(reset * before)).tanh()  # [S4.9]
        hidden = (1 - update) * before + update * proposed  # [S4.2, 10, 22]
        if self.coverage is not None:
            covered = self.coverage(covered, weights, memory.values, before)
        return BahdanauState(hidden, covered), context, weights

    def _maxout(
        self,
        hidden: Float[Tensor, "batch t h"],
        context: Float[Tensor, "batch t d"],
        symbols: Float[Tensor, "batch t e"],
    ) -> Float[Tensor, "batch t h"]:
        pieces = self.output(torch.cat([hidden, context, symbols], -1))  # [S4.1, 16]
        return self.dropout(pieces.unflatten(-1, (self.dim, 2)).amax(-1))  # [S4.15]
