"""Spanning trees: the k best of them, and the record that the distributions read."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from itertools import count
from typing import NamedTuple

import numpy as np

from trelliswork.runtime.arrays import Array
from trelliswork.structures.arc_solver import Family
from trelliswork.structures.spanning import kernels, structure, tree_kernels
from trelliswork.structures.spanning.tree_kernels import second_tree

# The k best spanning trees, labels included (Camerini, Fratta and Maffioli, 1980, The k Best Spanning Arborescences).
#
# All trees but the best differ from it in the head or the label of some word. `second_tree` finds a word for which the
# best of those that differ there is the second best of all. What is left falls into two sets: trees that differ from
# the best at this word, and those that agree with it there; each is searched in the same way. The sets are disjoint, so
# no tree comes twice, whatever is rounded and however many are tied.

TreeArcs = tuple[tuple[int, int], ...]  # the head and label of each word


class RankedTree(NamedTuple):
    """The best tree of a set, and the word at which its second best differs; None if the set has one tree."""

    tree: TreeArcs
    score: float
    word: int | None


@dataclass(frozen=True)
class Trees:
    """A set of trees: those with some (head, word, label), and without some others."""

    parts: Array  # [n+1, n+1, l], of all trees
    labels: Array  # [n+1, n+1], the best label of each arc
    arcs: Array  # its score
    others: Array  # the score of the second best
    single_root: bool
    required: tuple[tuple[int, int, int], ...] = ()
    excluded: tuple[tuple[int, int, int], ...] = ()

    @staticmethod
    def of(parts: Array, single_root: bool) -> Trees:
        two = np.full((*parts.shape[:2], 2), -np.inf)
        kept = min(2, parts.shape[2])
        two[..., 2 - kept :] = np.partition(parts, parts.shape[2] - kept)[..., parts.shape[2] - kept :]
        return Trees(parts, parts.argmax(2), two[..., 1].copy(), two[..., 0].copy(), single_root)

    def best(self) -> RankedTree | None:
        """Return the best tree, if there is any."""
        arcs, others, allowed = self.arcs.copy(), self.others.copy(), dict[tuple[int, int], Array]()
        for head, word, label in self.excluded:
            labels = allowed.setdefault((head, word), self.parts[head, word].copy())
            labels[label] = -np.inf
        for (head, word), labels in allowed.items():
            arcs[head, word], others[head, word] = [*-np.sort(-labels)[:2], -np.inf][:2]
        for head, word, label in self.required:
            arcs[:, word] = others[:, word] = -np.inf
            arcs[head, word] = self.parts[head, word, label]
        heads, words = np.zeros(len(arcs) - 1, np.int64), np.arange(1, len(arcs))
        differs = second_tree(arcs, others, self.single_root, heads)
        if differs < 0:
            return None
        labels = self.labels[heads, words]
        for (head, word), scores in allowed.items():
            if heads[word - 1] == head:
                labels[word - 1] = scores.argmax()
        for _, word, label in self.required:
            labels[word - 1] = label
        tree = tuple(zip(heads.tolist(), labels.tolist(), strict=True))
        return RankedTree(tree, float(self.parts[heads, words, labels].sum()), differs or None)

    def others_than(self, tree: TreeArcs, word: int | None) -> Rest | None:
        """All trees of the set but one, which is its best up to rounding, and whose second best differs at `word`."""
        if word is None:
            return None
        head, label = tree[word - 1]
        arc = (head, word, label)
        without = replace(self, excluded=(*self.excluded, arc))
        best = without.best()
        return best and Rest(best, without, tree, replace(self, required=(*self.required, arc)))


class Rest(NamedTuple):
    """A set without its best tree: two sets, of which the first has the best of what is left."""

    best: RankedTree
    trees: Trees
    known: TreeArcs  # in the second set
    others: Trees

    def parts(self) -> list[Rest | None]:
        """Return the two sets that are left without the best tree."""
        again = self.others.best()
        if again is None:
            return [self.trees.others_than(self.best.tree, self.best.word)]
        differs = (m for m, pair in enumerate(zip(again.tree, self.known, strict=True), 1) if pair[0] != pair[1])
        word = next(differs, again.word)  # a tree as good as the known one may have been found in its place
        return [self.trees.others_than(self.best.tree, self.best.word), self.others.others_than(self.known, word)]


def top_trees(parts: Array, single_root: bool, k: int) -> tuple[Array, Array]:
    """Return the k best trees, (head, label) of each word [k, n, 2], and their scores [k], or all if there are fewer.

    `parts` are scores [n+1, n+1, l] of arcs with labels, -inf at whatever is not an arc.

    Args:
        parts: scores of arcs with labels [n+1, n+1, l], -inf at whatever is not an arc.
        single_root: whether a single word may depend on the root.
        k: how many trees to return.

    Returns:
        (head, label) of each word, and scores, best first.
    """
    everything, order, waiting = Trees.of(parts, single_root), count(), list[tuple[float, int, Rest]]()
    trees: list[RankedTree] = []
    tree = everything.best()
    sets = [] if tree is None else [everything.others_than(tree.tree, tree.word)]
    while tree is not None:
        trees.append(tree)
        if len(trees) == k:
            break
        for rest in sets:
            if rest is not None:
                heapq.heappush(waiting, (-rest.best.score, next(order), rest))
        tree = None
        if waiting:
            _, _, best = heapq.heappop(waiting)
            tree, sets = best.best, best.parts()
    trees.sort(key=lambda each: -each.score)  # rounding may have found a tree late
    return np.array([each.tree for each in trees], np.int64), np.array([each.score for each in trees])


FAMILY = Family(
    "spanning",
    structure,
    False,
    sums=kernels.matrix_tree,
    changes=kernels.posterior_changes,
    best=tree_kernels.best_trees,
    top=top_trees,
    draw=tree_kernels.sample_trees,
)
STRUCTURE = FAMILY.structure()
