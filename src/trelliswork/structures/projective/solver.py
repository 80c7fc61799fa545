"""Projective trees: the record that the distributions read."""

import numpy as np

from trelliswork.runtime.arrays import Array
from trelliswork.structures.arc_solver import Family
from trelliswork.structures.derivation_kernels import PAIR
from trelliswork.structures.derivations import Plan
from trelliswork.structures.projective import kernels, scaled_kernels, structure

# The k best projective trees, labels included: Eisner's chart, whose derivations are asked for lazily.

JOINED, OPEN_RIGHT, OPEN_LEFT, RIGHT, LEFT, FORTH, BACK = range(7)
EISNER = Plan.of(
    [(RIGHT, LEFT, 0, 1, 1)],  # C→(i, s) C←(s + 1, j), what an arc joins
    [(JOINED, FORTH, 0, 0, PAIR)],  # I→(i, j), with a label of i -> j
    [(JOINED, BACK, 0, 0, PAIR)],  # I←(i, j), with a label of j -> i
    [(OPEN_RIGHT, RIGHT, 1, 0, 0)],  # I→(i, s) C→(s, j)
    [(LEFT, OPEN_LEFT, 0, 1, 0)],  # C←(i, s) I←(s, j)
)


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
    n = len(parts) - 1
    own = np.zeros((BACK + 1, n + 1, n + 1))
    if single_root:
        own[RIGHT, 0, 1:n] = -np.inf  # the root has one arc: nothing is to the right of its word's dependents
    labels = np.stack([parts, parts.transpose(1, 0, 2)])
    arcs, scores = EISNER.top(k, own, labels, (RIGHT, 0, n), shown=FORTH)
    plane, i, j, label = np.moveaxis(arcs[:, :n], 2, 0)
    is_forth, trees = plane == FORTH, np.empty((len(arcs), n, 2), np.int64)
    words = np.where(is_forth, j, i) - 1
    trees[np.arange(len(arcs))[:, None], words] = np.stack([np.where(is_forth, i, j), label], -1)
    return trees, scores


FAMILY = Family(
    "projective",
    structure,
    True,
    sums=scaled_kernels.inside_outside,
    changes=scaled_kernels.posterior_changes,
    best=kernels.best_trees,
    top=top_trees,
    draw=scaled_kernels.sample_trees,
)
STRUCTURE = FAMILY.structure()
