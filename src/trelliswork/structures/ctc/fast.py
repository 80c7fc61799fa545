"""Alignments by kernel: torch tensors in and out, float64 arrays inside, analytic gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from trelliswork.runtime import buffers
from trelliswork.runtime.autograd import differentiable
from trelliswork.runtime.bridge import Array, as_array, as_tensor
from trelliswork.runtime.threads import over_rows
from trelliswork.structures.ctc import kernels, path_kernels, structure
from trelliswork.structures.ctc.structure import Labelling
from trelliswork.structures.score_autograd import Family

NO_MARGINALS = torch.empty(0)
MOST = 700.0  # e^700 is still a float64


class LabelArrays(NamedTuple):
    """The scores that are read, [2, t, batch, u + 1] (of the blank, of labels), and the labels they belong to."""

    emissions: Array
    bars: Array
    targets: Array
    lengths: Array
    target_lengths: Array
    blank: int

    @staticmethod
    def of(scores: Array, targets: Array, lengths: Array, target_lengths: Array, blank: int) -> LabelArrays:
        """From scores [batch, t, c] of any float dtype and memory layout."""
        batch, n_frames, _ = scores.shape
        emissions = buffers.empty((2, n_frames, batch, targets.shape[1] + 1))
        bars = np.empty((batch, targets.shape[1] + 1))
        kernels.gather(scores, targets, lengths, target_lengths, blank, emissions, bars)
        return LabelArrays(emissions, bars, targets, lengths, target_lengths, blank)

    @property
    def work(self) -> int:
        """Multiply-adds of one pass; a state costs five exponentials and logarithms."""
        return self.emissions.size * 30


class Forward(NamedTuple):
    """log p(ℓ | x) of each row, and what the way back needs: see `kernels.forward`."""

    shares: Array  # [2, t, batch, u + 1]
    ends: Array
    log_z: Array


def run_forward(arrays: LabelArrays) -> Forward:
    _, n_frames, batch, size = arrays.emissions.shape
    run = Forward(buffers.empty((2, n_frames, batch, size)), np.empty(batch), np.empty(batch))
    over_rows(
        kernels.forward, batch, arrays.work,
        arrays.emissions, arrays.bars, arrays.lengths, arrays.target_lengths, *run,
    )  # fmt: skip
    return run


def add_occupancies(arrays: LabelArrays, run: Forward, grad: Array, occupancies: Array) -> None:
    """occupancies[b, t, c] += grad[b] p(π_t = c | ℓ, x)."""
    over_rows(
        kernels.backward, len(grad), arrays.work // 6, arrays.bars, *run,
        arrays.targets, arrays.lengths, arrays.target_lengths, arrays.blank, grad, occupancies,
    )  # fmt: skip


def arrays_of(parts: Labelling) -> LabelArrays:
    return LabelArrays.of(
        as_array(parts.scores),
        as_array(parts.targets),
        parts.lengths.numpy(),
        parts.target_lengths.numpy(),
        parts.blank,
    )


def _kernels(parts: Labelling, with_marginals: bool) -> tuple[Tensor, Tensor]:
    arrays = arrays_of(parts)
    run = run_forward(arrays)
    if not with_marginals:
        return torch.from_numpy(run.log_z), NO_MARGINALS
    occupancies = np.zeros(parts.scores.shape)
    add_occupancies(arrays, run, np.ones(len(run.log_z)), occupancies)
    return torch.from_numpy(run.log_z), torch.from_numpy(occupancies)


FAMILY = Family(_kernels, structure.log_partition)
"""For `score_autograd.py`."""


def loss(log_probs: Tensor, arrays: LabelArrays, parts_of: Callable[[Tensor], Labelling]) -> Tensor:
    """-log p(ℓ | x) [batch] in one node, with the gradient y - occupancy [S4.649-650; S4, CTC gradient].

    That is the derivative for scores that are log probabilities and stay so: through a log-softmax it is the exact one,
    and it is what torch's own loss gives. Rows without an alignment have the loss +inf and the gradient 0.
    """
    run = run_forward(arrays)
    scores = as_array(log_probs)

    def vjp(grad: Array) -> tuple[Array]:
        grad = np.where(run.log_z > -np.inf, grad, 0.0)
        found = np.empty(scores.shape, scores.dtype)
        kernels.fill_exponentials(scores, arrays.lengths, grad, found)
        add_occupancies(arrays, run, -grad, found.transpose(1, 0, 2))
        return (found,)

    return differentiable(
        as_tensor(-run.log_z, log_probs.dtype), (log_probs,), vjp, lambda scores: reference_loss(parts_of(scores))
    )


def reference_loss(parts: Labelling) -> Tensor:
    """The same loss in plain torch: its value is -log p, its derivative y - occupancy."""
    log_prob = structure.log_partition(parts)
    weights = parts.scores.clamp(max=MOST).exp().sum((1, 2))
    feasible = log_prob > -torch.inf
    return torch.where(feasible, weights - weights.detach() - log_prob, torch.inf)


# --- picking paths -------------------------------------------------------------------------------------------


def best_paths(parts: Labelling) -> tuple[Tensor, Tensor]:
    """The best path of each row [batch, t] (0 at padding), and whether it has any."""
    arrays = arrays_of(parts)
    _, n_frames, batch, _ = arrays.emissions.shape
    paths, possible = np.zeros((batch, n_frames), np.int64), np.empty(batch, np.bool_)
    over_rows(path_kernels.best_paths, batch, arrays.work // 10, *arrays, paths, possible)
    return torch.from_numpy(paths), torch.from_numpy(possible)


def top_paths(parts: Labelling, k: int) -> tuple[Tensor, Tensor]:
    """The k best paths [k, batch, t] and their scores [k, batch], -inf where a row has fewer."""
    arrays = arrays_of(parts)
    _, n_frames, batch, _ = arrays.emissions.shape
    paths, scores = np.zeros((k, batch, n_frames), np.int64), np.empty((k, batch))
    over_rows(path_kernels.top_paths, batch, arrays.work * k, *arrays, paths, scores)
    return torch.from_numpy(paths), torch.from_numpy(scores)


def sample_paths(parts: Labelling, n_samples: int, generator: torch.Generator | None) -> Tensor:
    """Exact samples [samples, batch, t] (0 at padding)."""
    arrays = arrays_of(parts)
    run = run_forward(arrays)
    _, n_frames, batch, _ = arrays.emissions.shape
    uniforms = torch.rand((n_samples, batch, n_frames + 1, 2), generator=generator, dtype=torch.float64).numpy()
    paths = np.zeros((n_samples, batch, n_frames), np.int64)
    over_rows(
        path_kernels.sample_paths, batch, n_samples * batch * n_frames * 4,
        arrays.bars, run.shares, run.ends, arrays.targets, arrays.lengths, arrays.target_lengths, arrays.blank,
        uniforms, paths,
    )  # fmt: skip
    return torch.from_numpy(paths)
