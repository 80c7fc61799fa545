"""Arc-standard parsing with SWAP, which changes the order of words: any dependency tree, crossing arcs included."""

from __future__ import annotations

import torch
from torch import Tensor

from trelliswork.runtime.shapes import Bool, Int
from trelliswork.structures.beam.arc_standard import ArcStandard
from trelliswork.structures.beam.parse_kernels import SWAPPING
from trelliswork.structures.beam.parse_state import ParseState, put, take


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
