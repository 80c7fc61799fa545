"""The parts of dependency trees, shared by projective and non-projective ones: arcs from heads to dependents.

A tree gives each word m = 1..n one head h in 0..n, 0 being the root, without cycles; score(tree) = Σ_m arcs[head_m, m].
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from trelliswork.runtime.arrays import INF, Bool, Float, Int


@dataclass(frozen=True)
class Arcs:
    """Scores of a batch in float64: arcs[b, h, m] for head h and dependent m; -inf at whatever is not an arc.

    Words 1..lengths[b] of row b are real. With `single_root` exactly one word hangs from the root.
    """

    arcs: Float[Tensor, "batch n+1 n+1"]
    lengths: Int[Tensor, "batch"]
    single_root: bool = True

    @staticmethod
    def of(scores: Float[Tensor, "batch n+1 n+1"], lengths: Int[Tensor, "batch"], single_root: bool) -> Arcs:
        """Set -inf into the root, from a word to itself, and at padding, whatever stands there.

        Args:
            scores: scores of arcs, indexed [head, dependent]; node 0 is the root.
            lengths: number of words of each row.
            single_root: whether a single word may depend on the root.

        Returns:
            The arcs in float64.
        """
        unread = Arcs(scores, lengths, single_root)
        return unread.with_arcs(torch.where(unread.is_arc, scores.double(), -INF))

    @property
    def is_arc(self) -> Bool[Tensor, "batch n+1 n+1"]:
        """True from one real node to another real word."""
        place = torch.arange(self.arcs.shape[1], device=self.arcs.device)
        real = place <= self.lengths[:, None]
        return real[:, :, None] & real[:, None, :] & (place[:, None] != place) & (place > 0)

    @property
    def n(self) -> int:
        """Words of the longest row."""
        return self.arcs.shape[1] - 1

    @property
    def word_mask(self) -> Bool[Tensor, "batch n"]:
        """True at real words."""
        return torch.arange(self.n, device=self.lengths.device) < self.lengths[:, None]

    @property
    def part_scores(self) -> Float[Tensor, "batch n+1 n+1"]:
        return self.arcs

    def with_arcs(self, arcs: Tensor) -> Arcs:
        return replace(self, arcs=arcs)

    def detached(self) -> Arcs:
        """Return the same scores as a leaf to differentiate by."""
        return self.with_arcs(self.arcs.detach().requires_grad_())


def tree_score(trees: Arcs, heads: Int[Tensor, "batch n"]) -> Float[Tensor, "batch"]:
    """Return Σ_m arcs[head_m, m] over real words.

    Gathered, never multiplied: no -inf times 0.
    """  # [S2, edge-factored score]
    real = trees.word_mask
    safe = torch.where(real, heads, 0)
    picked = trees.arcs[:, :, 1:].gather(1, safe[:, None, :]).squeeze(1)
    return torch.where(real, picked, 0.0).sum(1)


def is_tree(trees: Arcs, heads: Int[Tensor, "batch n"]) -> Bool[Tensor, "batch"]:
    """Return whether every real word reaches the root, and as many words as allowed hang from it."""
    real = trees.word_mask
    onward = torch.cat([heads.new_zeros(len(heads), 1), torch.where(real, heads, 0)], 1)
    reached = onward
    for _ in range(max(1, trees.n).bit_length()):
        reached = reached.gather(1, reached)  # 2, 4, 8, ... steps towards the root
    arrives = (reached == 0).all(1)
    if not trees.single_root:
        return arrives
    return arrives & (((heads == 0) & real).sum(1) == 1)
