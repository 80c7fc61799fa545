"""The k best span trees: charts whose derivations are asked for lazily."""

from __future__ import annotations

import numpy as np

from trelliswork.runtime.arrays import Array
from trelliswork.structures.derivation_kernels import PAIR
from trelliswork.structures.derivations import Plan

SPLITS, LEFT, RIGHT, SOME, ALL = range(5)  # SOME: the labels of trees that may be left children, or the root
ANY_ARITY = Plan.of(
    [(LEFT, RIGHT, 0, 1, 1)],  # (i, s) and (s + 1, j)
    [(SOME, SPLITS, 0, 0, PAIR)],
    [(ALL, SPLITS, 0, 0, PAIR)],
)
TREE, LABELS = 1, 2
BINARY = Plan.of([(TREE, TREE, 0, 1, 1)], [(LABELS, SPLITS, 0, 0, PAIR)])


def top_trees(spans: Array, empty: int | None, k: int) -> tuple[Array, Array]:
    """Return the k best trees, nodes [k, 2n-1, 3], and their scores [k], or all if there are fewer.

    `spans` are scores [n, n, c]; the label `empty`, if there is one, stands on tokens and right children only.
    """
    n, scores = len(spans), spans[None].astype(np.float64)
    if empty is None:
        plan, root, shown = BINARY, TREE, LABELS
    else:
        plan, root, shown = ANY_ARITY, LEFT, SOME
        scores = np.concatenate([scores, scores])
        scores[0, ~np.eye(n, dtype=bool), empty] = -np.inf
    nodes, totals = plan.top(k, np.zeros((shown + len(scores), n, n)), scores, (root, 0, n - 1), shown)
    return nodes[:, : 2 * n - 1, 1:] + np.array([0, 1, 0]), totals
