"""A batch of arc scores as a caller gives it, in the two forms that are computed on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from trelliswork.runtime import buffers
from trelliswork.runtime.arrays import Array
from trelliswork.runtime.bridge import as_array
from trelliswork.runtime.shapes import Bool, Float, Int
from trelliswork.structures.arc_kernels import read_arcs
from trelliswork.structures.arcs import Arcs


class ArcArrays(NamedTuple):
    """The arrays that kernels read: float64 scores [batch, n+1, n+1], -inf where there is no arc; if all are scores."""

    scores: Array
    lengths: Array
    single_root: bool
    are_scores: bool


@dataclass(frozen=True)
class ArcRows:
    """Scores of float32 or float64 on any device; column 0, the diagonal and padding are not read."""

    scores: Float[Tensor, "batch n+1 n+1"]
    lengths: Int[Tensor, "batch"]
    single_root: bool = True

    @property
    def word_mask(self) -> Bool[Tensor, "batch n"]:
        """True at real words."""
        return torch.arange(self.scores.shape[1] - 1, device=self.lengths.device) < self.lengths[:, None]

    @property
    def trees(self) -> Arcs:
        """For the reference, differentiable by the scores; made anew, so that each result has a graph of its own."""
        return Arcs.of(self.scores, self.lengths, self.single_root)

    @cached_property
    def arrays(self) -> ArcArrays:
        """For the kernels, read once; scores that are NaN or +inf are only noted."""
        raw, lengths = as_array(self.scores), as_array(self.lengths)
        arcs = buffers.empty(raw.shape)
        return ArcArrays(arcs, lengths, self.single_root, read_arcs(raw, lengths, arcs))

    def with_scores(self, scores: Tensor) -> ArcRows:
        return replace(self, scores=scores)
