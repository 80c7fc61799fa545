"""The scores of a `SemiMarkov`, whole or factored, in the forms that its queries read."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from trelliswork.distributions.base import Backend, StructuredDistribution
from trelliswork.distributions.checks import cast, flat_lengths
from trelliswork.distributions.segment_inputs import check_max_lengths, check_scores
from trelliswork.distributions.segment_values import Nested
from trelliswork.runtime.arrays import INF
from trelliswork.runtime.shapes import Float, Int
from trelliswork.structures.segments.factored import Factored
from trelliswork.structures.segments.structure import Segments


class SegmentScores(StructuredDistribution[Nested]):
    """The checked scores of a distribution over segmentations; its queries are in the subclass."""

    transitions: Float[Tensor, "c c"] | None
    start: Float[Tensor, "c"]
    end: Float[Tensor, "c"]
    max_lengths: Int[Tensor, "c"] | None
    _factors: Factored | None  # None: `segments` were given

    def _set_up(
        self,
        shape: torch.Size,
        lengths: Tensor | None,
        max_lengths: Tensor | Sequence[int] | None,
        backend: Backend,
        validate_args: bool | None,
    ) -> None:
        """Set up what both ways to give scores share; `shape` is that of `segments`."""
        batch_shape, (n, k, c) = shape[:-3], shape[-3:]
        device = self.start.device
        self._shape = shape
        self._lengths = flat_lengths("lengths", lengths, batch_shape, n, device, 1)
        self.max_lengths = None if max_lengths is None else check_max_lengths(max_lengths, k, c, device)
        super().__init__(self.start, batch_shape, [n], backend)
        if validate_args is None or validate_args:
            check_scores(self._named_scores(), self._arrays)

    def _named_scores(self) -> dict[str, Tensor | None]:
        if self._factors is None:
            own = {"segments": self.segments}
        else:
            own = {name: getattr(self._factors, name) for name in ("tokens", "durations", "starts", "ends")}
        return {**own, "transitions": self.transitions, "start": self.start, "end": self.end}

    @cached_property
    def segments(self) -> Float[Tensor, "*batch n k c"]:
        """The score of every segment; computed on first use if the scores are factored."""
        assert self._factors is not None
        return self._batched(self._given.double().whole().segments)

    @property
    def _working_dtype(self) -> torch.dtype:
        return torch.float64 if self.dtype == torch.float64 else torch.float32

    @cached_property
    def _parts(self) -> Segments:
        """One batch axis, float32 at least, segments that are too long for their label at -inf."""
        if self._factors is not None:
            return self._given.double().whole()
        dtype, segments = self._working_dtype, self.segments
        segments = segments if segments.dim() == 4 else segments.reshape(-1, *self._shape[-3:])
        segments = self._limit(cast(segments, dtype))
        transitions = None if self.transitions is None else cast(self.transitions, dtype)
        return Segments(segments, transitions, cast(self.start, dtype), cast(self.end, dtype), self._lengths)

    def _limit(self, scores: Float[Tensor, "*any k c"]) -> Float[Tensor, "*any k c"]:
        """Set scores to -inf where a segment would be too long for its label."""
        if self.max_lengths is None:
            return scores
        short = torch.arange(1, self._shape[-2] + 1, device=scores.device)[:, None] <= self.max_lengths
        return torch.where(short, scores, -INF)

    @cached_property
    def _given(self) -> Segments | Factored:
        """The scores as they were given, flat: what the kernels read."""
        factors, dtype = self._factors, self._working_dtype
        if factors is None:
            return self._parts
        flat = [None if part is None else cast(part, dtype) for part in factors.scores]
        for index in (0, 2, 3):
            part = flat[index]
            flat[index] = None if part is None else part.reshape(-1, *part.shape[-2:])
        assert flat[1] is not None
        flat[1] = self._limit(flat[1])
        return Factored.of(flat, self._lengths)

    @property
    def _solved(self) -> tuple[Segments | Factored]:
        return (self._given,)

    @property
    def _arrays(self) -> Any:
        return self._solver.arrays
