"""Spanning trees by kernel: torch tensors in and out, float64 arrays inside.

Rows too wide for exp space go to the reference of `structure.py`, in log space.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from trelliswork.structures.arc_autograd import Family
from trelliswork.structures.arcs import Arcs
from trelliswork.structures.spanning import kernels, structure, tree_kernels
from trelliswork.structures.threads import over_rows

Array = np.ndarray[Any, Any]
NO_MARGINALS = np.empty((0, 0, 0))


def arrays_of(trees: Arcs) -> tuple[Array, Array]:
    """Scores and lengths as C-contiguous arrays on the CPU."""
    return np.ascontiguousarray(trees.arcs.numpy(force=True)), trees.lengths.numpy(force=True)


def run(trees: Arcs, with_marginals: bool) -> tuple[Tensor, Tensor]:
    """log Z [batch] and, if asked for, marginals [batch, n+1, n+1]: one elimination for both."""
    arcs, lengths = arrays_of(trees)
    batch, size, _ = arcs.shape
    log_z, wide = np.empty(batch), np.empty(batch, np.bool_)
    marginals = np.zeros(arcs.shape) if with_marginals else NO_MARGINALS
    over_rows(kernels.matrix_tree, batch, batch * size**3, arcs, lengths, trees.single_root, log_z, marginals, wide)
    found, posteriors = torch.from_numpy(log_z), torch.from_numpy(marginals)
    if wide.any():
        rows = np.flatnonzero(wide).tolist()
        some = trees.with_arcs(trees.arcs.detach()).row(rows)
        found[rows] = structure.log_partition(some)
        if with_marginals:
            posteriors[rows] = structure.marginals(some)
    return found, posteriors


FAMILY = Family(run, structure.marginals)
"""For `LogPartition` and `Marginals` of `arc_autograd.py`."""


def best_trees(trees: Arcs) -> tuple[Tensor, Tensor]:
    """The best heads [batch, n] (0 at padding) and whether each row has any tree at all."""
    arcs, lengths = arrays_of(trees)
    batch, size, _ = arcs.shape
    heads, possible = np.zeros((batch, size - 1), np.int64), np.empty(batch, np.bool_)
    over_rows(tree_kernels.best_trees, batch, batch * size**2 * 8, arcs, lengths, trees.single_root, heads, possible)
    return torch.from_numpy(heads), torch.from_numpy(possible)


def top_trees(trees: Arcs, k: int) -> tuple[Tensor, Tensor]:
    """The k best heads [k, batch, n] and their scores [k, batch], -inf where a row has fewer."""
    arcs, lengths = arrays_of(trees)
    batch, size, _ = arcs.shape
    heads, scores = np.zeros((k, batch, size - 1), np.int64), np.full((k, batch), -np.inf)
    over_rows(tree_kernels.top_trees, batch, batch * k * size**3 * 8, arcs, lengths, trees.single_root, heads, scores)
    return torch.from_numpy(heads), torch.from_numpy(scores)


def sample_trees(trees: Arcs, marginals: Tensor, n_samples: int, generator: torch.Generator | None) -> Tensor:
    """Exact samples [samples, batch, n] (0 at padding); `marginals` give the root word of single-root trees."""
    arcs, lengths = arrays_of(trees)
    batch, size, _ = arcs.shape
    seeds = torch.randint(2**62, (n_samples, batch), generator=generator).numpy()
    heads = np.zeros((n_samples, batch, size - 1), np.int64)
    roots = np.ascontiguousarray(marginals.detach().numpy(force=True)[:, 0])
    over_rows(
        tree_kernels.sample_trees, batch, batch * (n_samples + size) * size**2,
        arcs, lengths, trees.single_root, roots, seeds, heads,
    )  # fmt: skip
    return torch.from_numpy(heads)
