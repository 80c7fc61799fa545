"""Base of distributions over alignments: parts scored by one tensor, values that are paths through a lattice."""

from __future__ import annotations

from abc import abstractmethod
from typing import Self

import torch
from torch import Tensor

from trelliswork.distributions.base import StructuredDistribution
from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import INF, Bool, Float, Int


class Alignment(StructuredDistribution[Tensor]):
    """p(path | x) with score = Σ scores of its parts; subclasses say which paths there are.

    `scores` is the caller's tensor, `_parts` the same in flat rows and float64, -inf at whatever is not a part.
    """

    scores: Tensor
    _noun = "alignment"
    _same = "the same shape, lengths and labels"

    # --- hooks: flat rows, float64 ---------------------------------------------------------------------------

    @abstractmethod
    def _checked(self, value: Tensor) -> Int[Tensor, "samples rows n"]:
        """Return paths [*samples, *batch, n], each refused by name if it is none."""

    @abstractmethod
    def _allowed(self, partial: Tensor) -> Bool[Tensor, "*batch ..."]:
        """Return partial knowledge as allowed parts, shaped like the scores."""

    @abstractmethod
    def _like(self, scores: Tensor) -> Self:
        """Return other scores, everything else the same."""

    # --- queries ---------------------------------------------------------------------------------------------

    def _read(self, value: Tensor, check: bool) -> Int[Tensor, "*samples *batch n"]:
        return self._checked(value).reshape(value.shape)

    def _one_each(self, query: str, value: Tensor) -> Int[Tensor, "rows n"]:
        """Return one checked path for each row."""
        samples = self._checked(value)
        if len(samples) != 1:
            raise ScoreError(f"{query} takes one path for each row; got {len(samples)} samples; ask for each in turn")
        return samples[0]

    def expected(self, costs: Tensor) -> Float[Tensor, "*batch"]:
        """Return E[Σ costs of the parts of a path]; costs are shaped like the scores."""
        return self._batched(self._expected(self._costs(costs)))

    def _costs(self, costs: Tensor) -> tuple[Tensor]:
        if costs.shape != self.scores.shape:
            raise ScoreError(f"costs must be {tuple(self.scores.shape)}, like the scores; got {tuple(costs.shape)}")
        return (costs.reshape(self._parts.scores.shape),)

    @abstractmethod
    def _centred(self) -> Self: ...

    def _divided(self, t: float) -> Self:
        return self._like(self.scores / t)

    def constrain(self, partial: Tensor | None = None) -> Self:
        """Return only the paths that agree: every other part scores -inf."""
        scores = self.scores
        if partial is not None:
            scores = torch.where(self._allowed(partial), scores, -INF)
        return self._like(scores)
