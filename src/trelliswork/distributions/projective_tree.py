"""The projective-tree distribution: dependency trees whose arcs do not cross, every query exact."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from trelliswork.distributions.dependency_tree import DependencyTree
from trelliswork.semirings import Counting
from trelliswork.structures.arc_autograd import LogPartition, Marginals
from trelliswork.structures.projective import fast, structure

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


class ProjectiveTree(DependencyTree):
    """p(tree | x) over projective dependency trees (Eisner); score = Σ_m arcs[head of m, m].

    `arcs[..., h, m]` scores head h of word m, words counted from 1 and 0 being the root, which stands to the left of
    all; -inf forbids. Arcs into the root, from a word to itself and beyond `lengths` are never read. Values are heads
    [..., batch, n], 0 at padding. With `single_root` exactly one word hangs from the root. `backend`: "kernel" (CPU),
    "torch" (any device), or "auto".

    >>> trees = ProjectiveTree(torch.zeros(1, 4, 4))
    >>> trees.log_partition.exp(), trees.count
    (tensor([7.]), tensor([7.], dtype=torch.float64))
    """

    _family = "projective tree (no arcs cross)"

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
        return structure.best(self._trees) if self.backend == "torch" else fast.best_trees(self._trees)

    def _top(self, k: int) -> tuple[Int[Tensor, "k rows n"], Float[Tensor, "k rows"]]:
        return structure.top_k(self._trees, k) if self.backend == "torch" else fast.top_trees(self._trees, k)

    def _draw(self, n_samples: int, generator: torch.Generator | None) -> Int[Tensor, "samples rows n"]:
        if self.backend == "torch":
            return structure.sample(self._trees, n_samples, generator)
        return fast.sample_trees(self._trees, n_samples, generator)

    def _count(self) -> Float[Tensor, "rows"]:
        return structure.total(self._trees, Counting())

    def _is_member(self, heads: Int[Tensor, "rows n"]) -> Bool[Tensor, "rows"]:
        return structure.is_projective(self._trees, heads)
