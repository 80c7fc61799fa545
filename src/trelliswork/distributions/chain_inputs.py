"""Checks of the arguments of a `LinearChain`, each with a sentence that explains the error."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from trelliswork.distributions.checks import (
    cast,
    check_edges,
    check_tensor,
    check_tensors,
    flat_lengths,
    one_dtype,
    refuse_not_scores_in,
)
from trelliswork.errors import ScoreError
from trelliswork.runtime.arrays import INF, Bool, Int
from trelliswork.runtime.bridge import any_seen, as_array
from trelliswork.runtime.kernel_math import right_padded
from trelliswork.structures.chain.solver import ChainArrays
from trelliswork.structures.masks import Layout

PLAIN = (torch.float32, torch.float64)
PlainScores = tuple[Tensor, Tensor, Tensor | None, Tensor | None]
"""Emissions, transitions, start and end."""


def promote(
    emissions: Tensor, transitions: Tensor, start: Tensor | None, end: Tensor | None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the four score tensors in one dtype, shapes checked; a missing start or end scores 0.

    Args:
        emissions: [*batch, n, c].
        transitions: [c, c] indexed [from, to], or by position [*batch, n-1, c, c].
        start: scores [c] of the first tag; None for 0.
        end: scores [c] of the last tag; None for 0.

    Returns:
        Emissions, transitions, start and end in their common dtype.
    """
    check_tensors(emissions=emissions, transitions=transitions, start=start, end=end)
    if emissions.dim() < 2 or 0 in emissions.shape[-2:]:
        raise ScoreError(
            f"emissions must be [batch, n, c] with n >= 1 and c >= 1; got {tuple(emissions.shape)}; "
            "give one row of c tag scores for each position"
        )
    *batch, n, c = emissions.shape
    start = emissions.new_zeros(c) if start is None else start
    end = emissions.new_zeros(c) if end is None else end
    shared, by_position = (c, c), (*batch, n - 1, c, c)
    if transitions.shape != shared and transitions.shape != by_position:
        raise ScoreError(
            f"transitions must be {shared} or, per position, {by_position} for emissions {tuple(emissions.shape)}; "
            f"got {tuple(transitions.shape)}; index them [from, to]"
        )
    check_edges(None, {"start": start, "end": end}, c, "tag")
    emissions, transitions, start, end = one_dtype((emissions, transitions, start, end))
    return emissions, transitions, start, end


def are_plain(scores: Sequence[object]) -> bool:
    """Return whether scores are as layers give them: [batch, n, c], [c, c], [c], [c], of one dtype that kernels read.

    Start and end may be missing.
    """
    emissions, transitions, start, end = scores
    if not isinstance(emissions, Tensor) or emissions.dim() != 3 or not emissions.is_cpu or transitions is None:
        return False
    (_, n, c), dtype = emissions.shape, emissions.dtype
    for scored, shape in (transitions, (c, c)), (start, (c,)), (end, (c,)):
        if scored is not None and not (
            isinstance(scored, Tensor) and scored.dtype is dtype and scored.is_cpu and scored.shape == shape
        ):
            return False
    return dtype in PLAIN and n * c > 0


def plain_arrays(scores: PlainScores, lengths: Tensor | None, mask: Tensor | None) -> ChainArrays | None:
    """Return the arrays of plain scores and of rows that are padded on the right.

    None if there are holes or wrong numbers.

    Args:
        scores: emissions [batch, n, c], transitions [c, c], start [c] and end [c].
        lengths: whole numbers [batch]; None if all rows are full.
        mask: True at valid positions [batch, n]; None if all are. Not both of them.

    Returns:
        The arrays as kernels read them, without a copy where possible.
    """
    emissions, transitions, start, end = scores
    batch, n, c = emissions.shape
    if mask is not None:
        row_lengths = np.empty(batch, np.int64)
        if lengths is not None or not _is_mask(mask, (batch, n)) or not right_padded(as_array(mask), row_lengths):
            return None
    elif lengths is None:
        row_lengths = np.empty(batch, np.int64)
        row_lengths.fill(n)  # a third of the time of np.full
    else:
        row_lengths = layout_of(emissions.shape[:1], n, emissions.device, lengths, None).lengths.numpy()
    given = as_array(emissions)
    first = np.zeros(c, given.dtype) if start is None else as_array(start)
    last = np.zeros(c, given.dtype) if end is None else as_array(end)
    arrays = ChainArrays(given, as_array(transitions)[None, None], first, last, row_lengths)
    return arrays if arrays.first_not_a_score()[0] < 0 else None


def _is_mask(mask: object, shape: tuple[int, int]) -> bool:
    return isinstance(mask, Tensor) and mask.dtype is torch.bool and mask.is_cpu and mask.shape == shape


def layout_of(
    batch_shape: torch.Size, n: int, device: torch.device, lengths: Tensor | Sequence[int] | None, mask: Tensor | None
) -> Layout:
    """Return lengths (or a mask) as a `Layout` of flat rows; every row has at least one position.

    Args:
        batch_shape: the batch axes of the emissions.
        n: the number of positions of a row, padding included.
        device: where the layout lies.
        lengths: the number of valid positions of each row [*batch]; None if a mask says it or all rows are full.
        mask: True at valid positions [*batch, n], which may have holes; None if lengths say it.

    Returns:
        The layout of rows = prod(batch_shape) rows.
    """
    if lengths is not None and mask is not None:
        raise ScoreError("give lengths or a mask, not both")
    if mask is not None:
        check_tensor("mask", mask)
        if mask.shape != (*batch_shape, n):
            raise ScoreError(f"mask must be {(*batch_shape, n)}, True at valid positions; got {tuple(mask.shape)}")
        rows = mask if mask.dim() == 2 else mask.reshape(-1, n)
        layout = Layout.of_mask(cast(rows if rows.device == device else rows.to(device), torch.bool))
        if layout.order is not None and any_seen(layout.lengths < 1):
            row = int((layout.lengths < 1).nonzero()[0])
            raise ScoreError(
                "mask of the first timestep must all be on, or some later one in that row; "
                f"got no valid position at row {row}; drop empty rows"
            )
        return layout
    fix = "pad the emissions or shorten the row"
    return Layout(flat_lengths("lengths", lengths, batch_shape, n, device, 1, fix))


def check_scores(parts: tuple[Tensor, Tensor, Tensor, Tensor], arrays: ChainArrays | None) -> None:
    """Refuse NaN and +inf, by name and place; `arrays`, if given, hold the same numbers and are faster to read."""
    if arrays is not None and arrays.first_not_a_score()[0] < 0:
        return
    refuse_not_scores_in(dict(zip(("emissions", "transitions", "start", "end"), parts, strict=True)))


def check_tags(value: Int[Tensor, "*samples *batch n"], valid: Bool[Tensor, "*batch n"], c: int) -> None:
    """Check that every valid position holds a tag; otherwise say which does not.

    Args:
        value: tags [*samples, *batch, n].
        valid: True at positions that are read [*batch, n].
        c: the number of tags.
    """
    wrong = valid & ((value < 0) | (value >= c))
    if any_seen(wrong):
        place = wrong.nonzero()[0].tolist()
        raise ScoreError(
            f"tags must lie in 0..{c - 1}; got {int(value[tuple(place)])} at row {_row(place)}, position {place[-1]}; "
            "map labels to indices with the same label list as the scores"
        )


def keep_allowed(name: str, scores: Tensor, allowed: Tensor | None, axes: int) -> Tensor:
    """Return scores, -inf where `allowed` is False; it is shaped like them, or like their last `axes` axes.

    Args:
        name: what `allowed` is called, for the sentence of an error.
        scores: scores [..., c] or [..., c, c].
        allowed: True where a score stays; None keeps all.
        axes: the number of last axes that `allowed` may have alone.

    Returns:
        Scores of the same shape.
    """
    if allowed is None:
        return scores
    shape = tuple(scores.shape[-axes:])
    if allowed.dtype != torch.bool or allowed.shape not in (shape, scores.shape):
        raise ScoreError(
            f"allowed {name} must be bool {shape}, True = allowed; got {allowed.dtype} {tuple(allowed.shape)}"
        )
    return torch.where(allowed, scores, -INF)


def _row(place: list[int]) -> str:
    return ", ".join(str(index) for index in place[:-1]) or "0"
