"""Projective trees by kernel: torch tensors in and out, float64 arrays inside."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from trelliswork.structures.arc_autograd import Family
from trelliswork.structures.arcs import Arcs
from trelliswork.structures.projective import kernels, structure
from trelliswork.structures.spanning.fast import NO_MARGINALS, arrays_of
from trelliswork.structures.threads import over_rows


def run(trees: Arcs, with_marginals: bool) -> tuple[Tensor, Tensor]:
    """log Z [batch] and, if asked for, marginals [batch, n+1, n+1]."""
    arcs, lengths = arrays_of(trees)
    batch, size, _ = arcs.shape
    log_z = np.empty(batch)
    marginals = np.zeros(arcs.shape) if with_marginals else NO_MARGINALS
    over_rows(kernels.inside_outside, batch, batch * size**3 * 4, arcs, lengths, trees.single_root, log_z, marginals)
    return torch.from_numpy(log_z), torch.from_numpy(marginals)


FAMILY = Family(run, structure.marginals)
"""For `LogPartition` and `Marginals` of `arc_autograd.py`."""


def best_trees(trees: Arcs) -> tuple[Tensor, Tensor]:
    """The best heads [batch, n] (0 at padding) and whether each row has any tree at all."""
    arcs, lengths = arrays_of(trees)
    batch, size, _ = arcs.shape
    heads, possible = np.zeros((batch, size - 1), np.int64), np.empty(batch, np.bool_)
    over_rows(kernels.best_trees, batch, batch * size**3, arcs, lengths, trees.single_root, heads, possible)
    return torch.from_numpy(heads), torch.from_numpy(possible)


def top_trees(trees: Arcs, k: int) -> tuple[Tensor, Tensor]:
    """The k best heads [k, batch, n] and their scores [k, batch], -inf where a row has fewer."""
    arcs, lengths = arrays_of(trees)
    batch, size, _ = arcs.shape
    heads, scores = np.zeros((k, batch, size - 1), np.int64), np.full((k, batch), -np.inf)
    over_rows(kernels.top_trees, batch, batch * k * size**4, arcs, lengths, trees.single_root, heads, scores)
    return torch.from_numpy(heads), torch.from_numpy(scores)


def sample_trees(trees: Arcs, n_samples: int, generator: torch.Generator | None) -> Tensor:
    """Exact samples [samples, batch, n] (0 at padding)."""
    arcs, lengths = arrays_of(trees)
    batch, size, _ = arcs.shape
    seeds = torch.randint(2**62, (n_samples, batch), generator=generator).numpy()
    heads = np.zeros((n_samples, batch, size - 1), np.int64)
    work = batch * (n_samples + size) * size**2
    over_rows(kernels.sample_trees, batch, work, arcs, lengths, trees.single_root, seeds, heads)
    return torch.from_numpy(heads)
