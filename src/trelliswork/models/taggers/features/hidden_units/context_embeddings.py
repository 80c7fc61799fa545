"""Canonical correlation analysis of words and what stands beside them.

Kim, Stratos and Sarikaya (2015), Pre-training of hidden-unit CRFs.
"""  # [S4.207-211]

from __future__ import annotations

from typing import Any

import numpy as np

from trelliswork.lazy import lazy_module
from trelliswork.runtime.arrays import Array

sparse, linalg = lazy_module("scipy.sparse"), lazy_module("scipy.sparse.linalg")


def cca(x: Array, y: Array, sizes: tuple[int, int], k: int, seed: int = 0) -> tuple[Array, Array]:
    """Return projections A [sizes[0], k] and B [sizes[1], k] of the one-hot samples (x_l, y_l), given by number.

    D counts pairs, u and v what occurs; A = diag(u)^-½ U and B = diag(v)^-½ V project, with the singular vectors of
    diag(u)^-½ D diag(v)^-½. The first of these is constant (correlation 1, whatever the data) and says nothing: the k
    after it are taken (erratum 28). Fewer samples have fewer; the rest is 0.
    """
    # [S4, CCA; S4.207-211]
    pairs = sparse.coo_matrix((np.ones(len(x)), (x, y)), shape=sizes).tocsr()
    u, v = np.bincount(x, minlength=sizes[0]), np.bincount(y, minlength=sizes[1])
    scale_x, scale_y = (1 / np.sqrt(np.maximum(count, 1)) for count in (u, v))
    omega = sparse.diags(scale_x) @ pairs @ sparse.diags(scale_y)
    left, right = _leading(omega, min(k + 1, *sizes), seed)
    a, b = np.zeros((sizes[0], k), np.float32), np.zeros((sizes[1], k), np.float32)
    n_found = left.shape[1] - 1
    a[:, :n_found], b[:, :n_found] = scale_x[:, None] * left[:, 1:], scale_y[:, None] * right[:, 1:]
    return a, b


def _leading(matrix: Any, k: int, seed: int) -> tuple[Array, Array]:
    """Return the singular vectors of the k largest singular values, largest first."""
    if k >= min(matrix.shape):  # `svds` cannot give all of them
        u, s, vt = np.linalg.svd(matrix.toarray(), full_matrices=False)
    else:
        u, s, vt = linalg.svds(matrix, k, random_state=np.random.default_rng(seed))
    order = np.argsort(-s)[:k]
    return u[:, order], vt[order].T


def k_means(points: Array, k: int, random: np.random.Generator, n_rounds: int = 10) -> tuple[Array, Array]:
    """Return the cluster of each point and the centres; begins at k of the points and ends when none moves."""
    centres = points[random.choice(len(points), min(k, len(points)), replace=False)]
    nearest = np.full(len(points), -1)
    for _ in range(n_rounds):
        before, nearest = nearest, _nearest(points, centres)
        if np.array_equal(before, nearest):
            break
        counts = np.bincount(nearest, minlength=len(centres))
        sums = sparse.csr_matrix((np.ones(len(points)), (nearest, np.arange(len(points)))), (len(centres), len(points)))
        filled = counts > 0
        centres = np.where(filled[:, None], (sums @ points) / np.maximum(counts, 1)[:, None], centres)
    return nearest, centres


def _nearest(points: Array, centres: Array) -> Array:
    nearest: Array = (points @ centres.T - (centres**2).sum(1) / 2).argmax(1)
    return nearest
