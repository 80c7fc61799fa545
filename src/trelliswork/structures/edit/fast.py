"""Edit scripts by kernel: torch tensors in and out, float64 arrays inside."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from trelliswork.runtime import buffers
from trelliswork.runtime.bridge import Array, as_array
from trelliswork.runtime.threads import over_rows
from trelliswork.structures.edit import kernels, structure
from trelliswork.structures.edit.structure import NO_STEP, EditLattice
from trelliswork.structures.score_autograd import Family

NO_MARGINALS = torch.empty(0)


def _arrays(parts: EditLattice) -> tuple[Array, Array, Array]:
    return as_array(parts.scores, np.float64), parts.lengths.numpy(), parts.target_lengths.numpy()


def _run_forward(parts: EditLattice) -> tuple[Array, Array]:
    """Shares of the steps into each cell, and log Z."""
    scores, lengths, target_lengths = _arrays(parts)
    shares, log_z = buffers.empty(scores.shape), np.empty(len(scores))
    over_rows(kernels.forward, len(scores), scores.size * 20, scores, lengths, target_lengths, shares, log_z)
    return shares, log_z


def _kernels(parts: EditLattice, with_marginals: bool) -> tuple[Tensor, Tensor]:
    shares, log_z = _run_forward(parts)
    if not with_marginals:
        return torch.from_numpy(log_z), NO_MARGINALS
    _, lengths, target_lengths = _arrays(parts)
    marginals = np.zeros(shares.shape)
    over_rows(kernels.backward, len(log_z), shares.size * 2, shares, log_z, lengths, target_lengths, marginals)
    return torch.from_numpy(log_z), torch.from_numpy(marginals)


FAMILY = Family(_kernels, structure.log_partition)
"""For `score_autograd.py`."""


def best_paths(parts: EditLattice) -> tuple[Tensor, Tensor]:
    """The best script of each row [batch, n+m] (NO_STEP behind it), and whether it has any."""
    arrays = _arrays(parts)
    batch = len(arrays[0])
    steps, possible = np.full((batch, parts.n + parts.m), NO_STEP), np.empty(batch, np.bool_)
    over_rows(kernels.best_scripts, batch, arrays[0].size * 3, *arrays, steps, possible)
    return torch.from_numpy(steps), torch.from_numpy(possible)


def top_paths(parts: EditLattice, k: int) -> tuple[Tensor, Tensor]:
    """The k best scripts [k, batch, n+m] and their scores [k, batch], -inf where a row has fewer."""
    arrays = _arrays(parts)
    batch = len(arrays[0])
    steps, found = np.full((k, batch, parts.n + parts.m), NO_STEP), np.empty((k, batch))
    over_rows(kernels.top_scripts, batch, arrays[0].size * 5 * k, *arrays, steps, found)
    return torch.from_numpy(steps), torch.from_numpy(found)


def sample_paths(parts: EditLattice, n_samples: int, generator: torch.Generator | None) -> Tensor:
    """Exact samples [samples, batch, n+m] (NO_STEP behind them)."""
    shares, _ = _run_forward(parts)
    _, lengths, target_lengths = _arrays(parts)
    shape = (n_samples, len(lengths), parts.n + parts.m)
    uniforms = torch.rand(shape, generator=generator, dtype=torch.float64).numpy()
    steps = np.full(shape, NO_STEP)
    over_rows(kernels.sample_scripts, len(lengths), uniforms.size * 6, shares, lengths, target_lengths, uniforms, steps)
    return torch.from_numpy(steps)
