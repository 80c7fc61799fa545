"""Arc-standard parsing: a projective dependency tree built with a stack, bottom up."""  # [S4, arc-standard]

from __future__ import annotations

import torch
from torch import Tensor

from trelliswork.runtime.shapes import Bool, Float, Int
from trelliswork.structures.beam.parse_kernels import STANDARD
from trelliswork.structures.beam.parse_state import DependencySystem, ParseState, attached, put


class ArcStandard(DependencySystem):
    """A projective tree in 2 L decisions for L words.

    SHIFT (0) puts the next word on the stack; LEFT-ARC (1..c, by label) makes the top the head of the word below it,
    RIGHT-ARC (c+1..2c) the other way round; the dependent leaves the stack.

    Most trees have several derivations (erratum 32): `decisions_of` gives one of them, arcs as early as possible. With
    `single_root`, only one word hangs on the root. `state.heads[..., 1:]` are the heads.
    Nivre (2004), Incrementality in deterministic dependency parsing.

    >>> system = ArcStandard(torch.tensor([3]))
    >>> system.decisions_of(torch.tensor([[2, 0, 2]]))     # she <- sees -> him
    tensor([[0, 0, 1, 0, 2, 2]])
    """  # [S4, arc-standard]

    KIND = STANDARD

    def allowed(self, state: ParseState) -> Bool[Tensor, "batch beam a"]:
        return self.by_label(self.has_more(state), state.height > 2, self.may_hang(state))  # the root has no head

    def step(self, state: ParseState, decisions: Int[Tensor, "batch beam"]) -> ParseState:
        shift, left, right, label = self.split(decisions)
        top, second = state.below_top(0), state.below_top(1)
        place = torch.where(shift, state.height, state.height - 2)
        written = torch.where(shift, state.next, torch.where(left, top, second))
        dependent = torch.where(left, second, torch.where(right, top, 0))
        head = torch.where(left, top, torch.where(right, second, 0))
        return state._replace(
            stack=put(state.stack, place, written),
            height=state.height + torch.where(shift, 1, -1),
            front=state.front + shift.long(),
            **attached(state, dependent, head, label),
        )


class ArcScorer:
    """The score of an arc when it is made, 0 for SHIFT: the scores of `ProjectiveTree`, arcs[b, head, dependent]."""

    def __init__(self, arcs: Float[Tensor, "batch n+1 n+1"]):
        self.arcs = arcs

    def __call__(self, state: ParseState) -> Float[Tensor, "batch beam 3"]:
        rows = torch.arange(len(self.arcs), device=self.arcs.device)[:, None]
        top, second = state.below_top(0), state.below_top(1)
        left, right = self.arcs[rows, top, second], self.arcs[rows, second, top]
        return torch.stack([torch.zeros_like(left), left, right], -1)
