"""Attention of a decoder's states to the positions of an encoded input: scores, windows and the context."""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from trelliswork.errors import ScoreError
from trelliswork.runtime.shapes import Bool, Float

INF = float("inf")
Scoring = Literal["additive", "concat", "dot", "general"]
Window = Literal["global", "local-m", "local-p"]


class Memory(NamedTuple):
    """An encoded input: its vectors, the part of the scores that depends on it alone, and which positions there are."""

    values: Float[Tensor, "batch n d"]
    keys: Float[Tensor, "batch n k"]
    mask: Bool[Tensor, "batch n"]


class DotScore(nn.Module):
    """q · h: queries and values need the same width."""  # [S4.45, 52]

    def keys(self, values: Float[Tensor, "batch n d"]) -> Float[Tensor, "batch n k"]:
        return values

    def forward(
        self, queries: Float[Tensor, "batch m q"], keys: Float[Tensor, "batch n k"]
    ) -> Float[Tensor, "batch m n"]:
        return torch.bmm(queries, keys.transpose(1, 2))


class GeneralScore(DotScore):
    """q · W h."""  # [S4.45, 52]

    def __init__(self, query_dim: int, value_dim: int) -> None:
        super().__init__()
        self.product = nn.Linear(value_dim, query_dim, bias=False)

    def keys(self, values: Float[Tensor, "batch n d"]) -> Float[Tensor, "batch n k"]:
        return self.product(values)


class AdditiveScore(nn.Module):
    """v · tanh(W q + U h), which is v · tanh(W' [q; h]) with W' = [W, U]: the additive and the concat score are one.

    With coverage, `covered` numbers for each position are one more input: see `coverage`.
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
        inner = self.queries(queries)[:, :, None] + keys[:, None]
        if self.coverage is not None and covered is not None:
            inner = inner + self.coverage(covered)
        return self.direction(inner.tanh()).squeeze(-1)


def make_score(kind: Scoring, query_dim: int, value_dim: int, covered: int = 0) -> nn.Module:
    """The score function of a name; coverage, `covered` numbers for each position, needs an additive one."""
    if covered and kind not in ("additive", "concat"):
        raise ScoreError(f"coverage needs the additive score; got {kind!r}; choose additive, or leave coverage out")
    if kind == "dot":
        if query_dim != value_dim:
            raise ScoreError(
                f"the dot score needs states as wide as encoded positions; got {query_dim} and {value_dim}; "
                "choose general, or make them equal"
            )
        return DotScore()
    if kind == "general":
        return GeneralScore(query_dim, value_dim)
    if kind in ("additive", "concat"):
        return AdditiveScore(query_dim, value_dim, query_dim, covered)
    raise ScoreError(f"the attention score must be additive, concat, dot or general; got {kind!r}")


class LocalWindow(nn.Module):
    """Attention to positions at most `reach` from p_t alone.

    Monotonic windows ("local-m") have p_t = t. Predictive ones ("local-p") have p_t = n σ(v · tanh(W h_t)), and the
    weights are multiplied by exp(-(s - p_t)^2 / (2 σ^2)) with σ = reach / 2; they then no longer sum to 1.

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
        """p_t, counted from 0; a monotonic window stays within the input."""
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
    """c = Σ_j α_j h_j."""  # [S4.3, 13, 25, 55; S2, attention]
    return torch.bmm(weights, values)


def align(scores: Float[Tensor, "batch m n"], mask: Bool[Tensor, "batch n"]) -> Float[Tensor, "batch m n"]:
    """α = softmax of the scores over the positions that there are."""  # [S4.4, 12, 26, 46-47, 53-54, 447]
    return scores.masked_fill(~mask[:, None], -INF).softmax(-1)


def ends_of(encoded: Float[Tensor, "batch n d"], mask: Bool[Tensor, "batch n"]) -> Float[Tensor, "batch d"]:
    """What an encoder that reads from both ends knows last: its forward half at the last position, the other half at
    the first."""
    half = encoded.shape[-1] // 2
    last = (mask.sum(1) - 1).clamp(min=0)
    rows = torch.arange(len(encoded), device=encoded.device)
    return torch.cat([encoded[rows, last, :half], encoded[:, 0, half:]], -1)


def window_of(kind: Window, query_dim: int, reach: int) -> LocalWindow | None:
    """The window of a name; None attends to all positions."""
    if kind not in ("global", "local-m", "local-p"):
        raise ScoreError(f"the window of attention must be global, local-m or local-p; got {kind!r}")
    return None if kind == "global" else LocalWindow(query_dim, reach, kind == "local-p")
