"""Coverage: what is known of the attention that each source position has had, as an input of its next scores.

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

Kind = Literal["none", "sum", "fertility", "recurrent"]
MOST = 2.0  # symbols that a source position is translated by, at most: N of the fertility
WIDTH = 10  # numbers that a recurrent coverage has for each position


class Coverage(nn.Module):
    """Numbers for each source position, `width` of them, that change with each attention to it."""

    width = 1

    def initial(self, values: Float[Tensor, "batch n d"]) -> Float[Tensor, "batch 1 n w"]:
        """Before any attention."""
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
        """After one more attention, with these weights, of these states."""


class SumCoverage(Coverage):
    """C_j ← C_j + α_j.

    See, Liu and Manning (2017), Get to the point: summarization with pointer-generator networks.
    """

    def forward(self, covered: Tensor, weights: Tensor, values: Tensor, states: Tensor) -> Tensor:
        return covered + weights[..., None]


class FertilityCoverage(Coverage):
    """C_j ← C_j + α_j / Φ_j, where Φ_j = N σ(u · h_j) is how many target symbols a position should have."""

    def __init__(self, value_dim: int) -> None:
        super().__init__()
        self.fertility = nn.Linear(value_dim, 1, bias=False)

    def forward(self, covered: Tensor, weights: Tensor, values: Tensor, states: Tensor) -> Tensor:
        fertility = MOST * self.fertility(values).sigmoid()
        return covered + weights[..., None] / fertility[:, None]


class RecurrentCoverage(Coverage):
    """C_j ← GRU(C_j; α_j, h_j, s): a vector for each position, with gates that read weight, position and state."""

    width = WIDTH

    def __init__(self, value_dim: int, state_dim: int) -> None:
        super().__init__()
        self.attention = nn.Linear(1, 3 * WIDTH, bias=False)
        self.values = nn.Linear(value_dim, 3 * WIDTH)
        self.states = nn.Linear(state_dim, 3 * WIDTH, bias=False)
        self.covered = nn.Linear(WIDTH, 3 * WIDTH)

    def forward(self, covered: Tensor, weights: Tensor, values: Tensor, states: Tensor) -> Tensor:
        read = self.attention(weights[..., None]) + self.values(values)[:, None] + self.states(states)[:, :, None]
        reset, update, new = read.chunk(3, -1)
        own_reset, own_update, own_new = self.covered(covered).chunk(3, -1)
        update = (update + own_update).sigmoid()
        proposed = torch.tanh(new + (reset + own_reset).sigmoid() * own_new)
        return (1 - update) * proposed + update * covered


def make_coverage(kind: Kind, value_dim: int, state_dim: int) -> Coverage | None:
    """The coverage of a name."""
    if kind == "none":
        return None
    if kind == "sum":
        return SumCoverage()
    if kind == "fertility":
        return FertilityCoverage(value_dim)
    if kind == "recurrent":
        return RecurrentCoverage(value_dim, state_dim)
    raise ScoreError(f"coverage must be none, sum, fertility or recurrent; got {kind!r}")
