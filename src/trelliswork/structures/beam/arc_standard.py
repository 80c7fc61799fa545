"""Arc-standard parsing: a projective dependency tree built with a stack, bottom up."""  # [S4, arc-standard]

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from trelliswork.errors import ConstraintError, ScoreError
from trelliswork.runtime.shapes import Bool, Float, Int
from trelliswork.structures.beam.search import NOTHING
from trelliswork.structures.beam.system import check_whole

SHIFT = 0


class ArcStandardState(NamedTuple):
    """Stack (root 0 at the bottom) and its height, the next word of the buffer, and the arcs so far.

    Heads and labels are by word; 0 is also the head of a word that has none yet.
    """

    stack: Int[Tensor, "batch beam n+1"]
    height: Int[Tensor, "batch beam"]
    front: Int[Tensor, "batch beam"]
    heads: Int[Tensor, "batch beam n+1"]
    labels: Int[Tensor, "batch beam n+1"]

    def below_top(self, depth: int) -> Int[Tensor, "batch beam"]:
        """The word `depth` places under the top of the stack; the root if the stack is not as high."""
        return self.stack.gather(2, (self.height - 1 - depth).clamp(min=0)[:, :, None]).squeeze(2)


class ArcStandard:
    """A projective tree in 2 L decisions for L words.

    SHIFT (0) puts the next word on the stack; LEFT-ARC (1..c, by label) makes the top the head of the word below it,
    RIGHT-ARC (c+1..2c) the other way round; the dependent leaves the stack.

    Most trees have several derivations (erratum 32): `decisions_of` gives one of them, arcs as early as possible. With
    `single_root`, only one word hangs on the root. `state.heads[..., 1:]` are the heads.

    >>> system = ArcStandard(torch.tensor([3]))
    >>> system.decisions_of(torch.tensor([[2, 0, 2]]))     # she <- sees -> him
    tensor([[0, 0, 1, 0, 2, 2]])
    """  # [S4, arc-standard]

    def __init__(self, lengths: Int[Tensor, "batch"], n_labels: int = 1, *, single_root: bool = True):
        check_whole("lengths", lengths, "[batch]")
        if lengths.dim() != 1 or bool((lengths < 1).any()):
            raise ScoreError(f"lengths must be whole numbers of at least 1, one a row; got {lengths.tolist()}")
        if n_labels < 1:
            raise ScoreError(f"n_labels must be at least 1; got {n_labels}; trees without labels have one")
        self.lengths, self.n_labels, self.single_root = lengths, n_labels, single_root
        self.n_decisions = 1 + 2 * n_labels
        self.longest = max(lengths.tolist(), default=0)

    def initial(self) -> ArcStandardState:
        words = self.lengths.new_zeros(len(self.lengths), 1, self.longest + 1)
        one = words[:, :, 0] + 1
        return ArcStandardState(words, one, one, words, words)

    def allowed(self, state: ArcStandardState) -> Bool[Tensor, "batch beam a"]:
        more = state.front <= self.lengths[:, None]
        left = state.height > 2  # the root is nobody's dependent
        right = left | ((state.height == 2) & ~more) if self.single_root else state.height > 1
        return torch.stack([more, *[left] * self.n_labels, *[right] * self.n_labels], -1)

    def step(self, state: ArcStandardState, decisions: Int[Tensor, "batch beam"]) -> ArcStandardState:
        shift, left = decisions == SHIFT, (decisions > SHIFT) & (decisions <= self.n_labels)
        top, second = state.below_top(0), state.below_top(1)
        place = torch.where(shift, state.height, state.height - 2).clamp(0, state.stack.shape[2] - 1)
        written = torch.where(shift, state.front, torch.where(left, top, second))
        dependent = torch.where(shift, 0, torch.where(left, second, top))  # column 0 is nobody's
        head = torch.where(shift, 0, torch.where(left, top, second))
        label = torch.where(shift, 0, (decisions - 1) % self.n_labels)
        return ArcStandardState(
            _put(state.stack, place, written),
            state.height + torch.where(shift, 1, -1),
            state.front + shift.long(),
            _put(state.heads, dependent, head),
            _put(state.labels, dependent, label),
        )

    def finished(self, state: ArcStandardState) -> Bool[Tensor, "batch beam"]:
        return (state.front > self.lengths[:, None]) & (state.height == 1)

    def decisions_of(
        self, heads: Int[Tensor, "batch n"], labels: Int[Tensor, "batch n"] | None = None
    ) -> Int[Tensor, "batch 2n"]:
        """The static oracle: decisions that build these trees, arcs as early as possible; -1 behind a shorter row's."""
        if heads.dim() != 2 or len(heads) != len(self.lengths) or heads.shape[1] < self.longest:
            raise ScoreError(f"heads must be [{len(self.lengths)}, {self.longest}]; got {tuple(heads.shape)}")
        found = torch.full((len(heads), 2 * self.longest), NOTHING)
        for row, length in enumerate(self.lengths.tolist()):
            names = [0] * length if labels is None else labels[row, :length].tolist()
            taken = self._derivation(row, [0, *heads[row, :length].tolist()], [0, *names])
            found[row, : 2 * length] = torch.tensor(taken)
        return found.to(heads.device)

    def _derivation(self, row: int, heads: list[int], labels: list[int]) -> list[int]:
        waiting = [heads[1:].count(word) for word in range(len(heads))]  # dependents still to come
        stack, front, taken = [0], 1, list[int]()
        while len(stack) > 1 or front < len(heads):
            top, second = stack[-1], stack[-2] if len(stack) > 1 else 0
            if len(stack) > 2 and heads[second] == top and waiting[second] == 0:
                taken.append(1 + labels[second])
                del stack[-2]
                waiting[top] -= 1
            elif len(stack) > 1 and heads[top] == second and waiting[top] == 0 and self._may_end(stack, front, heads):
                taken.append(1 + self.n_labels + labels[top])
                del stack[-1]
                waiting[second] -= 1
            elif front < len(heads):
                taken.append(SHIFT)
                stack.append(front)
                front += 1
            else:
                kind = "single-root projective" if self.single_root else "projective"
                raise ConstraintError(f"heads must be a {kind} tree; got {heads[1:]} at row {row}")
        return taken

    def _may_end(self, stack: list[int], front: int, heads: list[int]) -> bool:
        """Whether a word may be hung on the root now: with a single root, only when all others are done."""
        return len(stack) > 2 or not self.single_root or front == len(heads)


class ArcScorer:
    """The score of an arc when it is made, 0 for SHIFT: the scores of `ProjectiveTree`, arcs[b, head, dependent]."""

    def __init__(self, arcs: Float[Tensor, "batch n+1 n+1"]):
        self.arcs = arcs

    def __call__(self, state: ArcStandardState) -> Float[Tensor, "batch beam 3"]:
        rows = torch.arange(len(self.arcs), device=self.arcs.device)[:, None]
        top, second = state.below_top(0), state.below_top(1)
        left, right = self.arcs[rows, top, second], self.arcs[rows, second, top]
        return torch.stack([torch.zeros_like(left), left, right], -1)


def _put(tensor: Tensor, place: Int[Tensor, "batch beam"], value: Int[Tensor, "batch beam"]) -> Tensor:
    return tensor.scatter(2, place[:, :, None], value[:, :, None])
