"""The projective-tree distribution: dependency trees whose arcs do not cross, every query exact."""

from __future__ import annotations

from torch import Tensor

from trelliswork.distributions.dependency_tree import DependencyTree
from trelliswork.runtime.arrays import Bool, Int
from trelliswork.structures.projective import structure
from trelliswork.structures.projective.solver import STRUCTURE


class ProjectiveTree(DependencyTree):
    """p(tree | x) over projective dependency trees (Eisner); score = Σ_m arcs[head of m, m].

    Eisner (1996), "Three New Probabilistic Models for Dependency Parsing: An Exploration".

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
    _structure = STRUCTURE

    def _is_member(self, heads: Int[Tensor, "rows n"]) -> Bool[Tensor, "rows"]:
        return structure.is_projective(self._given.trees, heads)
