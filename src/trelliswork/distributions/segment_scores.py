"""The scores of a `SemiMarkov`, whole or factored, in the forms that its queries read."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from trelliswork.distributions.base import Backend, StructuredDistribution
from trelliswork.distributions.checks import (
    cast,
    check_edges,
    check_tensors,
    flat_lengths,
    is_whole,
    one_dtype,
    refuse_not_scores_in,
)
from trelliswork.distributions.segment_values import Nested
from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import INF, Float, Int
from trelliswork.runtime.bridge import any_seen
from trelliswork.structures.segments.factored import Factored
from trelliswork.structures.segments.structure import Segments

if TYPE_CHECKING:
    from trelliswork.structures.segments.solver import SegmentArrays


# Checks of the arguments of a `SemiMarkov`, each with a sentence that explains the error.


def promote(
    segments: Tensor, transitions: Tensor | None, start: Tensor | None, end: Tensor | None
) -> tuple[Tensor, Tensor | None, Tensor, Tensor]:
    """Return the score tensors in one dtype, shapes checked; a missing start or end scores 0.

    Args:
        segments: [*batch, n, k, c]: start, duration less 1, label.
        transitions: [c, c], indexed [from, to]; None for none.
        start: scores [c] of the first label; None for 0.
        end: scores [c] of the last label; None for 0.

    Returns:
        The four of them in their common dtype.
    """
    check_tensors(segments=segments, transitions=transitions, start=start, end=end)
    if segments.dim() < 3 or 0 in segments.shape[-3:]:
        raise ScoreError(
            f"segments must be [batch, n, k, c] with n, k, c >= 1; got {tuple(segments.shape)}; "
            "give c label scores for each start and each duration 1..k"
        )
    c = segments.shape[-1]
    start = segments.new_zeros(c) if start is None else start
    end = segments.new_zeros(c) if end is None else end
    check_edges(transitions, {"start": start, "end": end}, c, "label")
    segments, transitions, start, end = one_dtype((segments, transitions, start, end))
    return segments, transitions, start, end


def check_factors(
    tokens: Tensor,
    durations: Tensor,
    starts: Tensor | None,
    ends: Tensor | None,
) -> None:
    """Check the shapes of factored scores.

    Args:
        tokens: [*batch, n, c].
        durations: [k, c].
        starts: [*batch, n, c] or None.
        ends: [*batch, n, c] or None.
    """
    check_tensors(tokens=tokens, durations=durations, starts=starts, ends=ends)
    if tokens.dim() < 2 or 0 in tokens.shape[-2:]:
        raise ScoreError(f"tokens must be [batch, n, c] with n, c >= 1; got {tuple(tokens.shape)}")
    c = tokens.shape[-1]
    if durations.dim() != 2 or durations.shape[1] != c or len(durations) == 0:
        raise ScoreError(
            f"durations must be [k, {c}], a score for each length 1..k and label; got {tuple(durations.shape)}; "
            f"torch.zeros(k, {c}) scores all lengths alike"
        )
    for name, part in (("starts", starts), ("ends", ends)):
        if part is not None and part.shape != tokens.shape:
            raise ScoreError(f"{name} must be {tuple(tokens.shape)} like tokens; got {tuple(part.shape)}")


def check_max_lengths(max_lengths: Tensor | Sequence[int], k: int, c: int, device: torch.device) -> Int[Tensor, "c"]:
    """Return the longest segment of each label, in 1..k.

    Args:
        max_lengths: a whole number for each label.
        k: the longest segment that has scores.
        c: the number of labels.
        device: where the result lies.

    Returns:
        Whole numbers [c].
    """
    limits = torch.as_tensor(max_lengths, device=device)
    if (
        isinstance(max_lengths, tuple)
        and len(max_lengths) == c
        and all(type(m) is int and 0 < m <= k for m in max_lengths)
    ):
        return limits  # as a layer keeps them
    if limits.shape != (c,) or not is_whole(limits):
        raise ScoreError(
            f"max_lengths must be {c} whole numbers, one a label; got {limits.dtype} {tuple(limits.shape)}"
        )
    wrong = (limits < 1) | (limits > k)
    if any_seen(wrong):
        label = int(wrong.nonzero()[0])
        raise ScoreError(
            f"max_lengths must lie in 1..{k}; got {int(limits[label])} for label {label}; "
            "forbid a label with scores of -inf, and score more durations for longer segments"
        )
    return limits.long()


def check_scores(parts: dict[str, Tensor | None], arrays: SegmentArrays | None) -> None:
    """Refuse NaN and +inf, by name and place; `arrays`, if given, hold the same numbers and are faster to read."""
    if arrays is not None and arrays.first_not_a_score()[0] < 0:
        return
    refuse_not_scores_in(parts)


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
