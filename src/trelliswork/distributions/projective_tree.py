"""The projective-tree distribution: dependency trees whose arcs do not cross, every query exact."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from trelliswork.distributions.dependency_tree import DependencyTree
from trelliswork.runtime.bridge import as_array
from trelliswork.semirings import Counting
from trelliswork.structures.arc_rows import ArcRows
from trelliswork.structures.projective import fast, structure

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


class ProjectiveTree(DependencyTree):
    """p(tree | x) over projective dependency trees (Eisner); score = Σ_m arcs[head of m, m].

    `arcs[..., h, m]` scores head h of word m, words counted from 1 and 0 being the root, which stands to the left of
    all; -inf forbids. Arcs into the root, from a word to itself and beyond `lengths` are never read. Values are heads
    [..., batch, n], 0 at padding. `labels[..., h, m, y]`, if given, are added for an arc of label y; then values are
    (head, label) pairs [..., batch, n, 2]. With `single_root` exactly one word hangs from the root. `backend`: "kernel"
    (CPU), "torch" (any device), or "auto".

    >>> trees = ProjectiveTree(torch.zeros(1, 4, 4))
    >>> trees.log_partition.exp(), trees.count
    (tensor([7.]), tensor([7.], dtype=torch.float64))
    """

    _kind = "projective tree (no arcs cross)"
    _family = fast.FAMILY

    def _best(self, rows: ArcRows) -> tuple[Int[Tensor, "rows n"], Bool[Tensor, "rows"]]:
        return structure.best(rows.trees) if self.backend == "torch" else fast.best_trees(rows.arrays)

    def _top(self, parts: Tensor, k: int) -> tuple[Tensor, Tensor, Tensor]:
        if self.backend == "torch":
            return structure.top_k(self._given.trees.with_arcs(parts), k)
        found = fast.top_trees(as_array(parts), as_array(self._lengths), self.single_root, k)
        heads, labels, scores = (torch.from_numpy(each) for each in found)
        return heads, labels, scores

    def _draw(self, rows: ArcRows, n_samples: int, generator: torch.Generator | None) -> Int[Tensor, "samples rows n"]:
        if self.backend == "torch":
            return structure.sample(rows.trees, n_samples, generator)
        return fast.sample_trees(rows.arrays, n_samples, generator)

    def _count(self) -> Float[Tensor, "rows"]:
        return structure.total(self._given.trees.with_arcs(self._labelled.parts), Counting())

    def _is_member(self, heads: Int[Tensor, "rows n"]) -> Bool[Tensor, "rows"]:
        return structure.is_projective(self._given.trees, heads)
