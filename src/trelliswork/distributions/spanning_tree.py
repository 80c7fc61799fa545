"""The spanning-tree distribution: non-projective dependency trees, every query exact."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from trelliswork.distributions.dependency_tree import DependencyTree
from trelliswork.structures.arc_autograd import LogPartition, Marginals
from trelliswork.structures.spanning import fast, structure

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


class SpanningTree(DependencyTree):
    """p(tree | x) over all dependency trees, arcs crossing or not; score = Σ_m arcs[head of m, m].

    `arcs[..., h, m]` scores head h of word m, words counted from 1 and 0 being the root; -inf forbids. Arcs into the
    root, from a word to itself and beyond `lengths` are never read. Values are heads [..., batch, n], 0 at padding.
    With `single_root` exactly one word hangs from the root. Sums use the matrix-tree theorem, without subtraction:
    any range of scores is exact. `backend`: "kernel" (CPU), "torch" (any device), or "auto"; trees themselves (argmax,
    top_k, sample) are searched on the CPU either way.

    >>> trees = SpanningTree(torch.zeros(1, 4, 4))
    >>> trees.log_partition.exp(), trees.count  # n^(n-1)
    (tensor([9.]), tensor([9.], dtype=torch.float64))
    """

    @property
    def _log_z(self) -> Float[Tensor, "rows"]:
        if self.backend == "torch":
            return structure.log_partition(self._trees)
        return LogPartition.apply(fast.FAMILY, self._trees, self._trees.arcs)

    @property
    def _posteriors(self) -> Float[Tensor, "rows n+1 n+1"]:
        if self.backend == "torch":
            return structure.marginals(self._trees)
        return Marginals.apply(fast.FAMILY, self._trees, self._trees.arcs)

    def _best(self) -> tuple[Int[Tensor, "rows n"], Bool[Tensor, "rows"]]:
        return fast.best_trees(self._trees)

    def _top(self, k: int) -> tuple[Int[Tensor, "k rows n"], Float[Tensor, "k rows"]]:
        return fast.top_trees(self._trees, k)

    def _draw(self, n_samples: int, generator: torch.Generator | None) -> Int[Tensor, "samples rows n"]:
        return fast.sample_trees(self._trees, self._posteriors, n_samples, generator)

    def _count(self) -> Float[Tensor, "rows"]:
        """Z where every possible arc weighs 1, rounded: exact while it has fewer than 13 digits or so."""
        trees = self._trees
        ones = torch.where(trees.arcs.detach() > -float("inf"), 0.0, trees.arcs.detach())
        return structure.log_partition(trees.with_arcs(ones)).exp().round()
