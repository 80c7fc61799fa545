"""The spanning-tree distribution: non-projective dependency trees, every query exact."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from trelliswork.distributions.dependency_tree import DependencyTree
from trelliswork.runtime.bridge import as_array
from trelliswork.structures.arc_rows import ArcRows
from trelliswork.structures.spanning import fast, structure

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


class SpanningTree(DependencyTree):
    """p(tree | x) over all dependency trees, arcs crossing or not; score = Σ_m arcs[head of m, m].

    `arcs[..., h, m]` scores head h of word m, words counted from 1 and 0 being the root; -inf forbids. Arcs into the
    root, from a word to itself and beyond `lengths` are never read. Values are heads [..., batch, n], 0 at padding.
    `labels[..., h, m, y]`, if given, are added for an arc of label y; then values are (head, label) pairs
    [..., batch, n, 2]. With `single_root` exactly one word hangs from the root. Sums use the matrix-tree theorem,
    without subtraction: any range of scores is exact. `backend`: "kernel" (CPU), "torch" (any device), or "auto"; trees
    themselves (argmax, top_k, sample) are searched on the CPU either way.

    >>> trees = SpanningTree(torch.zeros(1, 4, 4))
    >>> trees.log_partition.exp(), trees.count  # n^(n-1)
    (tensor([9.]), tensor([9.], dtype=torch.float64))
    """

    _family = fast.FAMILY

    def _best(self, rows: ArcRows) -> tuple[Int[Tensor, "rows n"], Bool[Tensor, "rows"]]:
        return fast.best_trees(rows.arrays)

    def _top(self, parts: Tensor, k: int) -> tuple[Tensor, Tensor, Tensor]:
        found = fast.top_trees(as_array(parts), as_array(self._lengths), self.single_root, k)
        heads, labels, scores = (torch.from_numpy(each) for each in found)
        return heads, labels, scores

    def _draw(self, rows: ArcRows, n_samples: int, generator: torch.Generator | None) -> Int[Tensor, "samples rows n"]:
        return fast.sample_trees(rows.arrays, n_samples, generator)

    def _count(self) -> Float[Tensor, "rows"]:
        """Z where every possible arc weighs as much as it has labels, rounded: exact up to 13 digits or so."""
        ones = self._given.trees.with_arcs(self._labelled.n_possible.log())
        return structure.log_partition(ones).exp().round()
