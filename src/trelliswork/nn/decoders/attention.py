"""Attention of a decoder's states to the positions of an encoded input: scores, windows and the context.

Bahdanau, Cho and Bengio (2015), Neural machine translation by jointly learning to align and translate; Luong, Pham and
Manning (2015), Effective approaches to attention-based neural machine translation.

    >>> coverage = FertilityCoverage(6)
    >>> covered = coverage.initial(torch.zeros(2, 7, 6))
    >>> coverage(covered, torch.full((2, 1, 7), 1 / 7), torch.zeros(2, 7, 6), torch.zeros(2, 1, 4)).shape
    torch.Size([2, 1, 7, 1])

Tu et al. (2016), Modeling coverage for neural machine translation.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import INF, Bool, Float

Scoring = Literal["additive", "concat", "dot", "general"]
Window = Literal["global", "local-m", "local-p"]


class Memory(NamedTuple):
    """An encoded input.

    Attributes:
        values: Vectors of the positions.
        keys: The part of the attention scores that does not depend on the query.
        mask: True at positions that exist, False at padding.
    """

    values: Float[Tensor, "batch n d"]
    keys: Float[Tensor, "batch n k"]
    mask: Bool[Tensor, "batch n"]


class DotScore(nn.Module):
    """Dot product score q · h; queries and values need the same width."""  # [S4.45, 52]

    def keys(self, values: Float[Tensor, "batch n d"]) -> Float[Tensor, "batch n k"]:
        return values

    def forward(
        self, queries: Float[Tensor, "batch m q"], keys: Float[Tensor, "batch n k"]
    ) -> Float[Tensor, "batch m n"]:
        return torch.bmm(queries, keys.transpose(1, 2))


class GeneralScore(DotScore):
    """Bilinear score q · W h."""  # [S4.45, 52]

    def __init__(self, query_dim: int, value_dim: int) -> None:
        super().__init__()
        self.product = nn.Linear(value_dim, query_dim, bias=False)

    def keys(self, values: Float[Tensor, "batch n d"]) -> Float[Tensor, "batch n k"]:
        return self.product(values)


class AdditiveScore(nn.Module):
    """Additive score v · tanh(W q + U h).

    It equals v · tanh(W' [q; h]) with W' = [W, U], the "concat" score of Luong, Pham and Manning (2015).

    Args:
        query_dim: Width of the queries.
        value_dim: Width of the encoded positions.
        dim: Width of the hidden layer.
        covered: Width of the coverage vector of each position, one more input; 0 for none. See `coverage`.

    >>> score = AdditiveScore(4, 6, 8)
    >>> score(torch.zeros(2, 3, 4), score.keys(torch.zeros(2, 5, 6))).shape
    torch.Size([2, 3, 5])
    """

    # [S4.11, 44-45, 52]

    def __init__(self, query_dim: int, value_dim: int, dim: int, covered: int = 0) -> None:
        super().__init__()
        self.queries = nn.Linear(query_dim, dim, bias=False)
        self.values = nn.Linear(value_dim, dim)
        self.coverage = nn.Linear(covered, dim, bias=False) if covered else None
        self.direction = nn.Linear(dim, 1, bias=False)

    def keys(self, values: Float[Tensor, "batch n d"]) -> Float[Tensor, "batch n k"]:
        return self.values(values)

    def forward(
        self,
        queries: Float[Tensor, "batch m q"],
        keys: Float[Tensor, "batch n k"],
        covered: Float[Tensor, "batch m n w"] | None = None,
    ) -> Float[Tensor, "batch m n"]:
        """Return the score of each position for each query.

        Args:
            queries: States of the decoder.
            keys: Vectors of the positions.
            covered: Coverage vectors of the positions at each step; None if the score does not read them.

        Returns:
            Scores, not normalised.
        """
        inner = self.queries(queries)[:, :, None] + keys[:, None]
        if self.coverage is not None and covered is not None:
            inner = inner + self.coverage(covered)
        return self.direction(inner.tanh()).squeeze(-1)


def make_score(kind: Scoring, query_dim: int, value_dim: int, covered: int = 0) -> nn.Module:
    """Create the score function of a name; coverage vectors, of width `covered`, need an additive one.

    Args:
        kind: Name of the score.
        query_dim: Width of the decoder states.
        value_dim: Width of the encoded positions.
        covered: Width of the coverage vectors.
    """
    if covered and kind not in ("additive", "concat"):
        raise ScoreError(f"coverage needs the additive score; got {kind!r}; choose additive, or do without coverage")
    if kind == "dot":
        if query_dim != value_dim:
            raise ScoreError(
                f"the dot score needs decoder states and encoded positions of the same width; got {query_dim} and "
                f"{value_dim}; choose general, or make them equal"
            )
        return DotScore()
    if kind == "general":
        return GeneralScore(query_dim, value_dim)
    if kind in ("additive", "concat"):
        return AdditiveScore(query_dim, value_dim, query_dim, covered)
    raise ScoreError(f"the attention score must be additive, concat, dot or general; got {kind!r}")


class LocalWindow(nn.Module):
    """Attention to the positions at a distance of at most `reach` from a centre p_t.

    Monotonic windows ("local-m") have p_t = t. Predictive ones ("local-p") have p_t = n σ(v · tanh(W h_t)), and their
    weights are multiplied by exp(-(s - p_t)^2 / (2 σ^2)) with σ = reach / 2, so that they no longer sum to 1.

    Args:
        query_dim: Width of the queries h_t.
        reach: Largest distance to the centre.
        predictive: Whether the window is predictive.

    Luong, Pham and Manning (2015), Effective approaches to attention-based neural machine translation, section 3.2.
    """

    def __init__(self, query_dim: int, reach: int, predictive: bool) -> None:
        if reach < 1:
            raise ScoreError(f"reach must be at least 1 position; got {reach}")
        super().__init__()
        self.reach = reach
        self.hidden = nn.Linear(query_dim, query_dim, bias=False) if predictive else None
        self.direction = nn.Linear(query_dim, 1, bias=False) if predictive else None

    def centre(
        self,
        queries: Float[Tensor, "batch m q"],
        time: Float[Tensor, "batch m"],
        mask: Bool[Tensor, "batch n"],
    ) -> Float[Tensor, "batch m"]:
        """Return p_t, counted from 0; a monotonic window stays within the input.

        Args:
            queries: States of the decoder.
            time: Number of each step, the centre of a monotonic window.
            mask: True at the positions of the input.

        Returns:
            The centre for each query.
        """
        last = (mask.sum(1, keepdim=True) - 1).to(queries.dtype)
        if self.hidden is None or self.direction is None:
            return torch.minimum(time.to(queries.dtype), last)
        return last * self.direction(self.hidden(queries).tanh()).squeeze(-1).sigmoid()

    def forward(
        self, scores: Float[Tensor, "batch m n"], centre: Float[Tensor, "batch m"]
    ) -> Float[Tensor, "batch m n"]:
        distance = torch.arange(scores.shape[-1], device=scores.device) - centre[..., None]
        near = distance.abs() <= self.reach
        weights = torch.where(near, scores, -INF).softmax(-1)
        if self.hidden is None:
            return weights
        return weights * torch.exp(-(distance**2) / (2 * (self.reach / 2) ** 2))


def attend(weights: Float[Tensor, "batch m n"], values: Float[Tensor, "batch n d"]) -> Float[Tensor, "batch m d"]:
    """Return the context c = Σ_j α_j h_j."""  # [S4.3, 13, 25, 55; S2, attention]
    return torch.bmm(weights, values)


def align(scores: Float[Tensor, "batch m n"], mask: Bool[Tensor, "batch n"]) -> Float[Tensor, "batch m n"]:
    """Return the weights α, a softmax of the scores over unmasked positions."""  # [S4.4, 12, 26, 46-47, 53-54, 447]
    return scores.masked_fill(~mask[:, None], -INF).softmax(-1)


def final_states(encoded: Float[Tensor, "batch n d"], mask: Bool[Tensor, "batch n"]) -> Float[Tensor, "batch d"]:
    """Return the final states of a bidirectional encoder, side by side.

    The first half of its vectors is taken at the last position, the second half, which reads backwards, at the first.
    """
    half = encoded.shape[-1] // 2
    last = (mask.sum(1) - 1).clamp(min=0)
    rows = torch.arange(len(encoded), device=encoded.device)
    return torch.cat([encoded[rows, last, :half], encoded[:, 0, half:]], -1)


def make_window(kind: Window, query_dim: int, reach: int) -> LocalWindow | None:
    """Create the attention window of a name; None attends to all positions.

    Args:
        kind: Name of the window.
        query_dim: Width of the decoder states.
        reach: Half the width of the window.
    """
    if kind not in ("global", "local-m", "local-p"):
        raise ScoreError(f"the attention window must be global, local-m or local-p; got {kind!r}")
    return None if kind == "global" else LocalWindow(query_dim, reach, kind == "local-p")


# Coverage: a summary of the attention that each source position has received, as an input of its next score.

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
    """Create the coverage of a name; None for "none".

    Args:
        kind: Name of the coverage.
        value_dim: Width of the encoded positions.
        state_dim: Width of the decoder states.
    """
    if kind == "none":
        return None
    if kind == "sum":
        return SumCoverage()
    if kind == "fertility":
        return FertilityCoverage(value_dim)
    if kind == "recurrent":
        return RecurrentCoverage(value_dim, state_dim)
    raise ScoreError(f"coverage must be none, sum, fertility or recurrent; got {kind!r}")
