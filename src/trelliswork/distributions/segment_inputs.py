"""Checks of the arguments of a `SemiMarkov`, each with a sentence that explains the error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from trelliswork.distributions.checks import check_edges, check_tensors, is_whole, one_dtype, refuse_not_scores
from trelliswork.errors import ScoreError
from trelliswork.runtime.bridge import any_seen
from trelliswork.runtime.shapes import Int

if TYPE_CHECKING:
    from trelliswork.structures.segments.solver import SegmentArrays


def promote(
    segments: Tensor, transitions: Tensor | None, start: Tensor | None, end: Tensor | None
) -> tuple[Tensor, Tensor | None, Tensor, Tensor]:
    """Return the score tensors in one dtype, shapes checked; a missing start or end scores 0."""
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
    """Check the shapes of factored scores."""
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
    """Return the longest segment of each label, in 1..k."""
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
    for name, part in parts.items():
        if part is not None:
            refuse_not_scores(name, part)
