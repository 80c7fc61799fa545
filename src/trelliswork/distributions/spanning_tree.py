"""The spanning-tree distribution: non-projective dependency trees, every query exact."""

from __future__ import annotations

from trelliswork.distributions.dependency_tree import DependencyTree
from trelliswork.structures.spanning.solver import STRUCTURE


class SpanningTree(DependencyTree):
    """p(tree | x) over all dependency trees, arcs crossing or not; score = Σ_m arcs[head of m, m].

    Koo, Globerson, Carreras and Collins (2007), "Structured Prediction Models via the Matrix-Tree Theorem".

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

    _structure = STRUCTURE
