"""Common parts of transition systems for dependency trees: the state, the start, the end, and the static oracle."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from trelliswork.errors import ConstraintError, ScoreError
from trelliswork.runtime.arrays import Bool, Int
from trelliswork.structures.beam import parse_kernels
from trelliswork.structures.beam.system import check_whole
from trelliswork.structures.frontier_kernels import NOTHING

SHIFT = 0
SLOTS = ("s0", "s1", "s2", "b0", "s0.left", "s0.right", "s1.left", "s1.right", "b0.left")  # as the kernels have them


class ParseState(NamedTuple):
    """Stack (root 0 at the bottom) and its height; buffer, whose next word is `queue[front]`; and the arcs so far.

    By word: its head and label (0 also if it has none yet), its leftmost dependent on the left and its rightmost one
    on the right (0: none). Column 0 of `heads` and `labels` means nothing.
    """

    stack: Int[Tensor, "batch beam n+1"]
    height: Int[Tensor, "batch beam"]
    queue: Int[Tensor, "batch beam n+1"]
    front: Int[Tensor, "batch beam"]
    heads: Int[Tensor, "batch beam n+1"]
    labels: Int[Tensor, "batch beam n+1"]
    left: Int[Tensor, "batch beam n+1"]
    right: Int[Tensor, "batch beam n+1"]

    def below_top(self, depth: int) -> Int[Tensor, "batch beam"]:
        """The word `depth` places under the top of the stack; the root if the stack is not as high."""
        return take(self.stack, self.height - 1 - depth)

    @property
    def next(self) -> Int[Tensor, "batch beam"]:
        """The next word of the buffer; of an empty one any."""
        return take(self.queue, self.front)


class DependencySystem(ABC):
    """States and decisions over the words of each row: SHIFT (0), LEFT-ARC (1..c, by label), RIGHT-ARC (c+1..2c).

    With `single_root`, only one word hangs on the root. `state.heads[..., 1:]` are the heads of the words.

    Args:
        lengths: number of words of each row [batch].
        n_labels: number of labels of arcs.
        single_root: whether a single word may depend on the root.
    """

    KIND: ClassVar[int]  # for the kernels
    TREES: ClassVar[str] = "projective tree"  # what can be built
    MORE_DECISIONS: ClassVar[int] = 0  # in addition to shifts and arcs

    def __init__(self, lengths: Int[Tensor, "batch"], n_labels: int = 1, *, single_root: bool = True):
        check_whole("lengths", lengths, "[batch]")
        if lengths.dim() != 1 or bool((lengths < 1).any()):
            raise ScoreError(f"lengths must be whole numbers of at least 1, one a row; got {lengths.tolist()}")
        if n_labels < 1:
            raise ScoreError(f"n_labels must be at least 1; got {n_labels}; trees without labels have one")
        self.lengths, self.n_labels, self.single_root = lengths, n_labels, single_root
        self.n_decisions = 1 + 2 * n_labels + self.MORE_DECISIONS
        self.longest = max(lengths.tolist(), default=0)

    def initial(self) -> ParseState:
        none = self.lengths.new_zeros(len(self.lengths), 1, self.longest + 1)
        one = none[:, :, 0] + 1
        words = torch.arange(self.longest + 1, device=none.device).expand_as(none)
        return ParseState(none, one, words, one, none, none, none, none)

    @abstractmethod
    def allowed(self, state: ParseState) -> Bool[Tensor, "batch beam a"]: ...

    @abstractmethod
    def step(self, state: ParseState, decisions: Int[Tensor, "batch beam"]) -> ParseState: ...

    def finished(self, state: ParseState) -> Bool[Tensor, "batch beam"]:
        return ~self.has_more(state) & (state.height == 1)

    def has_more(self, state: ParseState) -> Bool[Tensor, "batch beam"]:
        """Return whether the buffer has a word."""
        return state.front <= self.lengths[:, None]

    def may_hang(self, state: ParseState) -> Bool[Tensor, "batch beam"]:
        """Return whether the top may hang on the word below it: on the root, if single, when all else is done."""
        if not self.single_root:
            return state.height > 1
        return (state.height > 2) | ((state.height == 2) & ~self.has_more(state))

    def by_label(self, *moves: Bool[Tensor, "batch beam"]) -> Bool[Tensor, "batch beam a"]:
        """Return the values of SHIFT, LEFT-ARC, RIGHT-ARC (and others) for each decision."""
        shift, left, right, *others = moves
        return torch.stack([shift, *[left] * self.n_labels, *[right] * self.n_labels, *others], -1)

    def split(self, decisions: Int[Tensor, "batch beam"]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Where decisions are SHIFT, LEFT-ARC and RIGHT-ARC, and the labels (0 where there is none)."""
        c = self.n_labels
        left, right = (decisions > SHIFT) & (decisions <= c), (decisions > c) & (decisions <= 2 * c)
        return decisions == SHIFT, left, right, torch.where(left | right, (decisions - 1) % c, 0)

    def decisions_of(
        self, heads: Int[Tensor, "batch n"], labels: Int[Tensor, "batch n"] | None = None
    ) -> Int[Tensor, "batch steps"]:
        """The static oracle: decisions that build these trees, arcs as early as possible; -1 behind a shorter row's."""
        if heads.dim() != 2 or len(heads) != len(self.lengths) or heads.shape[1] < self.longest:
            raise ScoreError(f"heads must be [{len(self.lengths)}, {self.longest}]; got {tuple(heads.shape)}")
        named = torch.zeros_like(heads) if labels is None else labels
        n, rows = self.longest, [each.cpu().numpy() for each in (self.lengths, heads, named)]
        decisions = np.full((len(heads), 2 * n + self.MORE_DECISIONS * n * (n - 1)), NOTHING)
        taken = parse_kernels.static_rows(self.KIND, self.single_root, self.n_labels, *rows, decisions)
        if (taken < 0).any():
            row = int((taken < 0).argmax())
            kind = f"single-root {self.TREES}" if self.single_root else self.TREES
            given = heads[row, : int(self.lengths[row])].tolist()
            raise ConstraintError(f"heads must be a {kind}; got {given} at row {row}")
        return torch.from_numpy(decisions[:, : max(taken, default=0)].copy()).to(heads.device)

    def made(self, state: ParseState, decisions: Int[Tensor, "batch beam"]) -> Int[Tensor, "batch beam"]:
        """The word that a step has shifted or given a dependent; `state` is the one after it."""
        return state.below_top(0)

    def features(self, state: ParseState) -> Int[Tensor, "batch beam slots"]:
        """The words that describe a state, as `SLOTS` names them; -1 for none."""
        has_more = self.has_more(state)
        tops = [torch.where(state.height > depth, state.below_top(depth), NOTHING) for depth in range(3)]
        ahead = torch.where(has_more, state.next, NOTHING)
        children = [
            _child(side, word)
            for side, word in (
                (state.left, tops[0]), (state.right, tops[0]), (state.left, tops[1]), (state.right, tops[1]),
                (state.left, ahead),
            )
        ]  # fmt: skip
        return torch.stack([*tops, ahead, *children], -1)


def attached(
    state: ParseState, dependent: Int[Tensor, "batch beam"], head: Int[Tensor, "batch beam"], label: Tensor
) -> dict[str, Tensor]:
    """Return the fields that an arc changes; a dependent of 0 is not an arc.

    Args:
        state: states of a batch.
        dependent: the word that gets a head.
        head: its head.
        label: label of the arc, shaped like the dependents.

    Returns:
        The changed tensors by the names of their fields.
    """
    arc, leftmost, rightmost = dependent > 0, take(state.left, head), take(state.right, head)
    is_left = arc & (dependent < head) & ((leftmost == 0) | (dependent < leftmost))
    is_right = arc & (dependent > head) & (dependent > rightmost)
    return {
        "heads": put(state.heads, dependent, torch.where(arc, head, 0)),
        "labels": put(state.labels, dependent, torch.where(arc, label, 0)),
        "left": put(state.left, head, torch.where(is_left, dependent, leftmost)),
        "right": put(state.right, head, torch.where(is_right, dependent, rightmost)),
    }


def take(tensor: Tensor, place: Int[Tensor, "batch beam"]) -> Int[Tensor, "batch beam"]:
    """Return the contents of these columns; of the nearest one, if there is no such column."""
    return tensor.gather(2, place.clamp(0, tensor.shape[2] - 1)[:, :, None]).squeeze(2)


def put(tensor: Tensor, place: Int[Tensor, "batch beam"], value: Int[Tensor, "batch beam"]) -> Tensor:
    """Return a tensor with other values in one column of each hypothesis.

    Args:
        tensor: [batch, beam, columns].
        place: the column.
        value: what stands there.

    Returns:
        A new tensor.
    """
    return tensor.scatter(2, place.clamp(0, tensor.shape[2] - 1)[:, :, None], value[:, :, None])


def _child(side: Tensor, word: Int[Tensor, "batch beam"]) -> Int[Tensor, "batch beam"]:
    child = take(side, word)
    return torch.where((word >= 0) & (child > 0), child, NOTHING)
