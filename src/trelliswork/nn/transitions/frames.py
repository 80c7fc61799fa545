"""The unit of a frame parser, which reads words, roles and earlier steps of a state.

Ringgaard, Gupta and Pereira (2017), SLING: A framework for frame semantic parsing.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from trelliswork.nn.transitions.unit import TBRU, Cell, RecurrentSystem, Wiring
from trelliswork.runtime.arrays import Float, Int
from trelliswork.structures.beam.frames.actions import Kind
from trelliswork.structures.beam.frames.system import FrameState, FrameSystem, near_slots, taken


class FrameUnit(TBRU):
    """A `TBRU` over the next token and the `k` frames at the front of the attention buffer.

    m(s) are the next token, the last tokens of the phrases that mention these frames, and the roles between them: a
    vector for each (frame, role, frame), and coarser ones for (frame, role), (role, frame) and (frame, frame), where a
    frame is a place in the buffer. r(s) are the previous step, the steps that brought the frames to the front, and the
    last step that moved on to the next token.

    Args:
        dim: Width of the vectors of tokens.
        hidden: Units of the cell.
        n_decisions: Number of decisions.
        n_roles: Number of roles.
        k: Number of frames that are read.
        cell: "feed-forward", "lstm" or "gru".
        dropout: Share of units that are dropped.

    Ringgaard, Gupta and Pereira (2017), SLING: A framework for frame semantic parsing.
    """  # [S4, SLING; S4, TBRU]

    def __init__(
        self,
        dim: int,
        hidden: int,
        *,
        n_decisions: int,
        n_roles: int,
        k: int = 5,
        cell: Cell = "feed-forward",
        dropout: float = 0.0,
    ):
        super().__init__(
            dim, hidden, n_slots=1 + k, n_decisions=n_decisions, n_links=2 + k, cell=cell, dropout=dropout
        )  # fmt: skip
        self.k, self.n_roles = k, n_roles
        self.roles = nn.Linear(k * n_roles * k + 2 * k * n_roles + k * k, len(self.bias), bias=False)
        nn.init.uniform_(self.roles.weight, -0.1, 0.1)

    def read(
        self, projected: Float[Tensor, "batch n+2 slots w"], words: Int[Tensor, "batch beam slots+roles"]
    ) -> Float[Tensor, "batch beam w"]:
        """Return m(s): the sum of what the words and the roles of each state add; see `describe`."""
        marks = words[..., self.n_slots :].to(projected.dtype)
        return super().read(projected, words[..., : self.n_slots]) + self.roles(marks)

    def describe(self, system: FrameSystem, state: FrameState) -> Int[Tensor, "batch beam slots+roles"]:
        """Return the words of a state, counted from 1 (-1: none), then 1 for each role that exists, 0 for others."""
        front = self._front(state)
        phrase = torch.where(front >= 0, taken(state.phrase, front), -1)
        here = torch.where(state.position < system.lengths[:, None], state.position + 1, -1)
        words = torch.cat([here[..., None], torch.where(phrase >= 0, phrase + 1, -1)], -1)
        return torch.cat([words, self._role_marks(state).long()], -1)

    def _front(self, state: FrameState) -> Int[Tensor, "batch beam k"]:
        front = state.attention[..., : self.k]
        missing = self.k - front.shape[-1]
        return torch.nn.functional.pad(front, (0, missing), value=-1) if missing > 0 else front

    def _role_marks(self, state: FrameState) -> Tensor:
        k, n = self.k, self.n_roles
        source, role, target = near_slots(state, k)
        both, end = (source >= 0) & (target >= 0), self.roles.in_features
        first = [0, k * n * k, k * n * k + k * n, k * n * k + 2 * k * n]  # where the four kinds of features begin
        # Features that do not exist get the code `end`, one more column, which is cut off.
        codes = torch.cat([
            torch.where(both, (source * n + role) * k + target, end),
            torch.where(source >= 0, first[1] + source * n + role, end),
            torch.where(target >= 0, first[2] + role * k + target, end),
            torch.where(both, first[3] + source * k + target, end),
        ], -1)  # fmt: skip
        return codes.new_zeros(*codes.shape[:2], end + 1).scatter(2, codes, 1)[..., :end]

    def connect(self, system: FrameSystem, vectors: Float[Tensor, "batch n d"]) -> RecurrentSystem[FrameState]:
        """Return the transition system whose states also hold what this unit has computed."""
        focus = torch.tensor([Kind.SHIFT, Kind.STOP])

        def place_of_step(state: FrameState, decisions: Tensor) -> Tensor:
            moved = torch.isin(decisions, focus.to(decisions.device))
            return torch.where(moved, system.room, state.attention[..., 0].clamp(min=0))

        def links(state: FrameState) -> Tensor:
            last = torch.full_like(state.position, system.room)[..., None]
            return torch.cat([self._front(state), last], -1)

        wiring = Wiring[FrameState](lambda state: self.describe(system, state), place_of_step, links, system.room + 1)
        return RecurrentSystem(system, self, self.project(vectors), wiring)
