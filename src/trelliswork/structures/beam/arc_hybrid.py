"""Arc-hybrid parsing: left arcs from the buffer, right arcs within the stack; and what a wrong decision costs."""

from __future__ import annotations

import torch
from torch import Tensor

from trelliswork.runtime.arrays import Bool, Int
from trelliswork.structures.beam.parse_kernels import HYBRID
from trelliswork.structures.beam.parse_state import DependencySystem, ParseState, attached, put


class ArcHybrid(DependencySystem):
    """A projective tree in 2 L decisions for L words; fewer derivations for each tree than `ArcStandard` has.

    SHIFT (0) puts the next word on the stack; LEFT-ARC (1..c, by label) makes the next word of the buffer the head of
    the top, RIGHT-ARC (c+1..2c) the word below the top; the top leaves the stack.
    Kuhlmann, Gómez-Rodríguez and Satta (2011), Dynamic programming algorithms for transition-based dependency parsers.

    >>> system = ArcHybrid(torch.tensor([3]))
    >>> system.decisions_of(torch.tensor([[2, 0, 2]]))     # she <- sees -> him
    tensor([[0, 1, 0, 0, 2, 2]])
    """

    KIND = HYBRID

    def allowed(self, state: ParseState) -> Bool[Tensor, "batch beam a"]:
        has_more = self.has_more(state)
        return self.by_label(has_more, has_more & (state.height > 1), self.may_hang(state))  # the root has no head

    def step(self, state: ParseState, decisions: Int[Tensor, "batch beam"]) -> ParseState:
        shift, left, right, label = self.split(decisions)
        top, ahead = state.below_top(0), state.next
        head = torch.where(left, ahead, torch.where(right, state.below_top(1), 0))
        return state._replace(
            stack=put(state.stack, state.height, torch.where(shift, ahead, 0)),
            height=state.height + torch.where(shift, 1, -1),
            front=state.front + shift.long(),
            **attached(state, torch.where(left | right, top, 0), head, label),
        )

    def made(self, state: ParseState, decisions: Int[Tensor, "batch beam"]) -> Int[Tensor, "batch beam"]:
        _, left, _, _ = self.split(decisions)
        return torch.where(left, state.next, state.below_top(0))

    def costs(self, state: ParseState, heads: Int[Tensor, "batch n"]) -> Int[Tensor, "batch beam 3"]:
        """Count the gold arcs that SHIFT, LEFT-ARC and RIGHT-ARC put out of reach; they need not be allowed.

        The gold trees must be projective and have one root. The cost of a decision is exact: the number of gold arcs
        that the best tree still within reach loses by it. Goldberg and Nivre (2013), Training deterministic parsers
        with non-deterministic oracles.
        """
        gold = torch.nn.functional.pad(heads[:, : self.longest], (1, 0))[:, None].expand_as(state.heads)
        place = torch.arange(self.longest + 1, device=heads.device)
        top, second, ahead = (each[:, :, None] for each in (state.below_top(0), state.below_top(1), state.next))
        in_buffer = (place >= state.front[:, :, None]) & (place <= self.lengths[:, None, None])
        in_stack = _members(state.stack, place < state.height[:, :, None])
        head_of_top, head_of_next = gold.gather(2, top), gold.gather(2, ahead)
        of_top = (in_buffer & (gold == top)).sum(-1)  # its dependents that are still to come
        comes = in_buffer.gather(2, head_of_top).squeeze(2)  # the head of the top is still to come
        at_second = (head_of_top == second).squeeze(2)
        at_next = (head_of_top == ahead).squeeze(2)
        below = in_stack.gather(2, head_of_next) & (head_of_next != top)
        shift = below.squeeze(2).long() + (in_stack & (gold == ahead)).sum(-1)
        return torch.stack([shift, (at_second | (comes & ~at_next)) + of_top, comes + of_top], -1)


def _members(stack: Int[Tensor, "batch beam n+1"], filled: Bool[Tensor, "batch beam n+1"]) -> Bool[Tensor, "..."]:
    """Return whether each word is on the stack."""
    members = torch.zeros(*stack.shape[:2], stack.shape[2] + 1, dtype=torch.bool, device=stack.device)
    return members.scatter(2, torch.where(filled, stack, stack.shape[2]), True)[:, :, :-1]
