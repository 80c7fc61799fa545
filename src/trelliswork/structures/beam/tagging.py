"""Tagging from left to right as a transition system, and the scores of a linear chain as its scorer."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import INF, Bool, Float, Int
from trelliswork.runtime.bridge import as_array
from trelliswork.structures.beam import kernels
from trelliswork.structures.beam.search import Hypotheses, for_kernels
from trelliswork.structures.beam.system import check_whole, exact


class TaggingState(NamedTuple):
    """Number of tags given, and the last one (-1: none yet)."""

    position: Int[Tensor, "batch beam"]
    tag: Int[Tensor, "batch beam"]


class Tagging:
    """Position after position gets one of `n_tags` tags; rows have their own lengths."""

    def __init__(self, lengths: Int[Tensor, "batch"], n_tags: int):
        check_whole("lengths", lengths, "[batch]")
        if lengths.dim() != 1 or bool((lengths < 1).any()):
            raise ScoreError(f"lengths must be whole numbers of at least 1, one a row; got {lengths.tolist()}")
        if n_tags < 1:
            raise ScoreError(f"n_tags must be at least 1; got {n_tags}")
        self.lengths, self.n_decisions = lengths, n_tags

    def initial(self) -> TaggingState:
        zeros = torch.zeros_like(self.lengths)[:, None]
        return TaggingState(zeros, zeros - 1)

    def allowed(self, state: TaggingState) -> Bool[Tensor, "batch beam c"]:
        return torch.ones(*state.tag.shape, self.n_decisions, dtype=torch.bool, device=state.tag.device)

    def step(self, state: TaggingState, decisions: Int[Tensor, "batch beam"]) -> TaggingState:
        return TaggingState(state.position + 1, decisions)

    def finished(self, state: TaggingState) -> Bool[Tensor, "batch beam"]:
        return state.position >= self.lengths[:, None]


class ChainScorer:
    """ρ = emission + transition from the last tag, the scores of `LinearChain`: in a full beam, it.

    Args:
        system: the system of tag sequences.
        emissions: scores of the tags at each position [batch, n, c].
        transitions: scores of pairs of tags [c, c], indexed [from, to].
        start: scores of the first tag [c]; None for 0.
        end: scores of the last tag [c]; None for 0.
    """  # [S4.302-304]

    def __init__(
        self,
        system: Tagging,
        emissions: Float[Tensor, "batch n c"],
        transitions: Float[Tensor, "c c"],
        start: Float[Tensor, "c"] | None = None,
        end: Float[Tensor, "c"] | None = None,
    ):
        n, c = int(system.lengths.max()) if len(system.lengths) else 0, system.n_decisions
        fits = emissions.dim() == 3 and len(emissions) == len(system.lengths) and emissions.shape[-1] == c
        if not fits or emissions.shape[1] < n or transitions.shape != (c, c):
            raise ScoreError(
                f"emissions must be [{len(system.lengths)}, n, {c}] with n >= {n}, and transitions [{c}, {c}], as the "
                f"system has it; got {tuple(emissions.shape)} and {tuple(transitions.shape)}"
            )
        start = emissions.new_zeros(emissions.shape[-1]) if start is None else start
        self.system, self.emissions, self.end = system, emissions, end
        self.arrivals = torch.cat([transitions, start[None]])  # row -1 for no tag yet
        self.rows = torch.arange(len(emissions), device=emissions.device)[:, None]

    def __call__(self, state: TaggingState) -> Float[Tensor, "batch beam c"]:
        position = state.position.clamp(max=self.emissions.shape[1] - 1)
        scores = self.emissions[self.rows, position] + self.arrivals[state.tag]
        if self.end is None:
            return scores
        last = (state.position == self.system.lengths[:, None] - 1)[:, :, None]
        return scores + torch.where(last, self.end, 0.0)

    def search(self, system: Tagging, beam_size: int) -> Hypotheses[TaggingState] | None:
        """The whole beam search by one kernel; None where it does not apply or scores are not valid."""
        end = self.arrivals.new_zeros(system.n_decisions) if self.end is None else self.end
        given = self.emissions, self.arrivals, end
        batch, n, c = self.emissions.shape
        if system is not self.system or not batch or not for_kernels(*given):
            return None
        if not all(bool(each.amax() < INF) for each in given):  # the highest is NaN if any is
            return None
        room, n = 1, int(system.lengths.max())
        for _ in range(n):
            room = min(beam_size, room * c)
        decisions, scores = np.empty((batch, room, n), np.int64), np.empty((batch, room))
        lengths = system.lengths.numpy().astype(np.int64, copy=False)
        width = kernels.chain_beams(*(as_array(exact(each)) for each in given), lengths, decisions, scores)
        if width == 0:
            return None
        tags, totals = torch.from_numpy(decisions[:, :width]), torch.from_numpy(scores[:, :width])
        position = system.lengths[:, None].expand(batch, width)
        state = TaggingState(position, tags.gather(2, position[:, :, None] - 1).squeeze(2))
        dtype = torch.result_type(self.emissions, self.arrivals)
        return Hypotheses(tags, totals.to(dtype), totals > -INF, state)
