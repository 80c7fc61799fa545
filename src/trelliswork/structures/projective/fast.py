"""Projective trees by kernel: float64 arrays in, arrays or torch tensors out."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from trelliswork.runtime.threads import over_rows
from trelliswork.structures.arc_autograd import Family
from trelliswork.structures.arc_rows import ArcArrays, Array
from trelliswork.structures.lawler import top_trees as search_top_trees
from trelliswork.structures.projective import kernels, scaled_kernels, structure
from trelliswork.structures.spanning.fast import NO_MARGINALS


def sums(trees: ArcArrays, with_marginals: bool) -> tuple[Array, Array]:
    """log Z [batch] and, if asked for, marginals [batch, n+1, n+1]."""
    batch, size, _ = trees.scores.shape
    log_z = np.empty(batch)
    marginals = np.zeros(trees.scores.shape) if with_marginals else NO_MARGINALS
    over_rows(scaled_kernels.inside_outside, batch, batch * size**3, *trees[:3], log_z, marginals)
    return log_z, marginals


FAMILY = Family(sums, structure, projective=True)
"""For the functions of `arc_autograd.py`."""


def best_trees(trees: ArcArrays) -> tuple[Tensor, Tensor]:
    """The best heads [batch, n] (0 at padding) and whether each row has any tree at all."""
    batch, size, _ = trees.scores.shape
    heads, possible = np.zeros((batch, size - 1), np.int64), np.empty(batch, np.bool_)
    over_rows(kernels.best_trees, batch, batch * size**3, *trees[:3], heads, possible)
    return torch.from_numpy(heads), torch.from_numpy(possible)


def top_trees(parts: Array, lengths: Array, single_root: bool, k: int) -> tuple[Array, Array, Array]:
    """Heads, labels and scores of the k best; see `lawler.py`."""
    return search_top_trees(kernels.best_trees, parts, lengths, single_root, k)


def sample_trees(trees: ArcArrays, n_samples: int, generator: torch.Generator | None) -> Tensor:
    """Exact samples [samples, batch, n] (0 at padding)."""
    batch, size, _ = trees.scores.shape
    seeds = torch.randint(2**62, (n_samples, batch), generator=generator).numpy()
    heads = np.zeros((n_samples, batch, size - 1), np.int64)
    over_rows(kernels.sample_trees, batch, batch * (n_samples + size) * size**2, *trees[:3], seeds, heads)
    return torch.from_numpy(heads)
