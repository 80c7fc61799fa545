"""Arc-standard parsing: trees built with a stack, bottom up; with SWAP also crossing arcs."""  # [S4, arc-standard]

from __future__ import annotations

import torch
from torch import Tensor

from trelliswork.runtime.arrays import Bool, Float, Int
from trelliswork.structures.beam.parse_kernels import STANDARD, SWAPPING
from trelliswork.structures.beam.parse_state import DependencySystem, ParseState, attached, put, take


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


class Swap(ArcStandard):
    """Any tree: SHIFT (0), LEFT-ARC (1..c) and RIGHT-ARC (c+1..2c) as in `ArcStandard`, and SWAP (2c+1).

    SWAP moves the word below the top back to the buffer; two words change places at most once. `decisions_of` swaps as
    late as it can, when no part of the tree can be finished first.
    Nivre (2009), Non-projective dependency parsing in expected linear time; Nivre, Kuhlmann and Hall (2009), An
    improved oracle for dependency parsing with online reordering.

    >>> system = Swap(torch.tensor([4]))
    >>> system.decisions_of(torch.tensor([[3, 4, 0, 3]]))     # 1 <- 3 and 2 <- 4 cross
    tensor([[0, 0, 0, 3, 1, 0, 0, 1, 2, 2]])
    """

    KIND, TREES, MORE_DECISIONS = SWAPPING, "tree", 1

    def allowed(self, state: ParseState) -> Bool[Tensor, "batch beam a"]:
        back = (state.height > 2) & (state.below_top(1) < state.below_top(0))
        return torch.cat([super().allowed(state), back[:, :, None]], -1)

    def step(self, state: ParseState, decisions: Int[Tensor, "batch beam"]) -> ParseState:
        swap = decisions == 2 * self.n_labels + 1
        stepped = super().step(state, decisions)  # which takes SWAP for a move that leaves the second on top
        top, second = state.below_top(0), state.below_top(1)
        return stepped._replace(
            stack=put(stepped.stack, state.height - 2, torch.where(swap, top, take(stepped.stack, state.height - 2))),
            queue=put(state.queue, state.front - 1, torch.where(swap, second, take(state.queue, state.front - 1))),
            front=stepped.front - swap.long(),
        )
