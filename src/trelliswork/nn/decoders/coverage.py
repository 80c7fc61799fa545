"""Coverage: a summary of the attention that each source position has received, as an input of its next score.

    >>> coverage = FertilityCoverage(6)
    >>> covered = coverage.initial(torch.zeros(2, 7, 6))
    >>> coverage(covered, torch.full((2, 1, 7), 1 / 7), torch.zeros(2, 7, 6), torch.zeros(2, 1, 4)).shape
    torch.Size([2, 1, 7, 1])

Tu et al. (2016), Modeling coverage for neural machine translation.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Literal

import torch
from torch import Tensor, nn

from trelliswork.errors import ScoreError
from trelliswork.runtime.shapes import Float

CoverageKind = Literal["none", "sum", "fertility", "recurrent"]
MAX_FERTILITY = 2.0  # N: a source position is translated into at most this many symbols
WIDTH = 10  # width of the recurrent coverage vector of a position


class Coverage(nn.Module):
    """Base class: a vector of `width` numbers for each source position, updated after each step of attention."""

    width = 1

    def initial(self, values: Float[Tensor, "batch n d"]) -> Float[Tensor, "batch 1 n w"]:
        """Return the coverage before the first step."""
        batch, n, _ = values.shape
        return values.new_zeros(batch, 1, n, self.width)

    @abstractmethod
    def forward(
        self,
        covered: Float[Tensor, "batch m n w"],
        weights: Float[Tensor, "batch m n"],
        values: Float[Tensor, "batch n d"],
        states: Float[Tensor, "batch m h"],
    ) -> Float[Tensor, "batch m n w"]:
        """Return the coverage after one more step.

        Args:
            covered: The coverage before it.
            weights: The attention weights of the step.
            values: Vectors of the source positions.
            states: States of the decoder.
        """


class SumCoverage(Coverage):
    """Sum of the attention weights: C_j ← C_j + α_j.

    See, Liu and Manning (2017), Get to the point: summarization with pointer-generator networks.
    """

    def forward(self, covered: Tensor, weights: Tensor, values: Tensor, states: Tensor) -> Tensor:
        return covered + weights[..., None]


class FertilityCoverage(Coverage):
    """C_j ← C_j + α_j / Φ_j, where the fertility Φ_j = N σ(u · h_j) is the expected number of target symbols."""

    def __init__(self, value_dim: int) -> None:
        super().__init__()
        self.fertility = nn.Linear(value_dim, 1, bias=False)

    def forward(self, covered: Tensor, weights: Tensor, values: Tensor, states: Tensor) -> Tensor:
        fertility = MAX_FERTILITY * self.fertility(values).sigmoid()
        return covered + weights[..., None] / fertility[:, None]


class RecurrentCoverage(Coverage):
    """C_j ← GRU(C_j; α_j, h_j, s): a vector for each position, updated from attention weight, position and state."""

    width = WIDTH

    def __init__(self, value_dim: int, state_dim: int) -> None:
        super().__init__()
        self.attention = nn.Linear(1, 3 * WIDTH, bias=False)
        self.values = nn.Linear(value_dim, 3 * WIDTH)
        self.states = nn.Linear(state_dim, 3 * WIDTH, bias=False)
        self.covered = nn.Linear(WIDTH, 3 * WIDTH)

    def forward(self, covered: Tensor, weights: Tensor, values: Tensor, states: Tensor) -> Tensor:
        inputs = self.attention(weights[..., None]) + self.values(values)[:, None] + self.states(states)[:, :, None]
        reset, update, new = inputs.chunk(3, -1)
        own_reset, own_update, own_new = self.covered(covered).chunk(3, -1)
        update = (update + own_update).sigmoid()
        proposed = torch.tanh(new + (reset + own_reset).sigmoid() * own_new)
        return (1 - update) * proposed + update * covered


def make_coverage(kind: CoverageKind, value_dim: int, state_dim: int) -> Coverage | None:
    """Create the coverage of a name; None for "none"."""
    if kind == "none":
        return None
    if kind == "sum":
        return SumCoverage()
    if kind == "fertility":
        return FertilityCoverage(value_dim)
    if kind == "recurrent":
        return RecurrentCoverage(value_dim, state_dim)
    raise ScoreError(f"coverage must be none, sum, fertility or recurrent; got {kind!r}")
