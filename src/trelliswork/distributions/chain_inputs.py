"""What may be handed to a `LinearChain`, checked with a sentence for each thing that can be wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from trelliswork.errors import ScoreError
from trelliswork.structures.masks import Layout

if TYPE_CHECKING:
    from jaxtyping import Bool, Int

    from trelliswork.structures.chain.fast import ChainArrays

INF = float("inf")


def promote(
    emissions: Tensor, transitions: Tensor, start: Tensor | None, end: Tensor | None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The four score tensors in one dtype, shapes checked; a missing start or end scores 0."""
    if emissions.dim() < 2 or 0 in emissions.shape[-2:]:
        raise ScoreError(
            f"emissions must be [batch, n, c] with n >= 1 and c >= 1; got {tuple(emissions.shape)}; "
            "give one row of c tag scores for each position"
        )
    c = emissions.shape[-1]
    start = emissions.new_zeros(c) if start is None else start
    end = emissions.new_zeros(c) if end is None else end
    _check_shapes(emissions, transitions, start, end)
    dtype = emissions.dtype
    for part in (transitions, start, end):
        dtype = torch.promote_types(dtype, part.dtype) if part.dtype != dtype else dtype
    if not dtype.is_floating_point:
        raise ScoreError(f"scores must be floating point; got {dtype}; call .float() on them")
    return cast(emissions, dtype), cast(transitions, dtype), cast(start, dtype), cast(end, dtype)


def cast(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """tensor.to(dtype), free where nothing changes."""
    return tensor if tensor.dtype == dtype else tensor.to(dtype)


def _check_shapes(emissions: Tensor, transitions: Tensor, start: Tensor, end: Tensor) -> None:
    *batch, n, c = emissions.shape
    shared, by_position = (c, c), (*batch, n - 1, c, c)
    if transitions.shape != shared and transitions.shape != by_position:
        raise ScoreError(
            f"transitions must be {shared} or, per position, {by_position} for emissions {tuple(emissions.shape)}; "
            f"got {tuple(transitions.shape)}; index them [from, to]"
        )
    for name, edge in (("start", start), ("end", end)):
        if edge.shape != (c,):
            raise ScoreError(f"{name} must be ({c},), one score a tag; got {tuple(edge.shape)}")
    device = emissions.device
    if transitions.device != device or start.device != device or end.device != device:
        devices = {str(part.device) for part in (emissions, transitions, start, end)}
        raise ScoreError(f"all scores must be on one device; got {sorted(devices)}; move them with .to(device)")


def layout_of(
    batch_shape: torch.Size, n: int, device: torch.device, lengths: Tensor | None, mask: Tensor | None
) -> Layout:
    """Lengths (or a mask) as a `Layout` of flat rows; every row has at least one position."""
    if lengths is not None and mask is not None:
        raise ScoreError("give lengths or a mask, not both")
    if mask is not None:
        if mask.shape != (*batch_shape, n):
            raise ScoreError(f"mask must be {(*batch_shape, n)}, True at valid positions; got {tuple(mask.shape)}")
        layout = Layout.of_mask(cast(mask, torch.bool).to(device).reshape(-1, n))
        if layout.order is not None and int(layout.lengths.min()) < 1:
            row = int((layout.lengths < 1).nonzero()[0])
            raise ScoreError(
                "mask of the first timestep must all be on, or some later one in that row; "
                f"got no valid position at row {row}; drop empty rows"
            )
        return layout
    if lengths is None:
        return Layout(torch.full((batch_shape.numel(),), n, device=device))
    if lengths.shape != batch_shape or lengths.dtype.is_floating_point or lengths.dtype == torch.bool:
        raise ScoreError(
            f"lengths must be whole numbers of shape {tuple(batch_shape)}; got {lengths.dtype} {tuple(lengths.shape)}"
        )
    flat = lengths.reshape(-1).to(device=device, dtype=torch.long)
    _check_range(flat, n, "pad the emissions or shorten the row")
    return Layout(flat)


def _check_range(lengths: Int[Tensor, "rows"], n: int, fix: str) -> None:
    found = lengths.tolist()  # a few numbers: quicker than torch
    if found and not 1 <= min(found) <= max(found) <= n:
        row = next(row for row, length in enumerate(found) if not 1 <= length <= n)
        raise ScoreError(f"lengths must lie in 1..{n}; got {found[row]} at row {row}; {fix}")


def check_scores(parts: tuple[Tensor, ...], arrays: ChainArrays | None) -> None:
    """NaN and +inf are refused, by name and place; `arrays`, if given, hold the same numbers and are faster to read."""
    if arrays is not None and arrays.first_not_a_score()[0] < 0:
        return
    for name, part in zip(("emissions", "transitions", "start", "end"), parts, strict=True):
        wrong = ~(part.detach() < INF)
        if bool(wrong.any()):
            place = wrong.nonzero()[0].tolist()
            raise ScoreError(
                f"{name} must be finite numbers or -inf; got {part[tuple(place)].item()} at {place}; "
                "look for a division by zero or an overflow upstream, and forbid with -inf"
            )


def check_value(value: Tensor, batch_shape: torch.Size, event_shape: torch.Size) -> Int[Tensor, "*samples *batch n"]:
    """Tags [*samples, *batch, n], whole numbers of the right shape."""
    expected = (*batch_shape, *event_shape)
    if value.dtype.is_floating_point or value.dtype == torch.bool:
        raise ScoreError(f"tags must be whole numbers; got {value.dtype}; call .long() on them")
    if value.shape[max(0, value.dim() - len(expected)) :] != expected:
        raise ScoreError(f"tags must be [..., {', '.join(map(str, expected))}]; got {tuple(value.shape)}")
    return cast(value, torch.long)


def check_tags(value: Int[Tensor, "*samples *batch n"], valid: Bool[Tensor, "*batch n"], c: int) -> None:
    """Every valid position must hold a tag; otherwise say which does not."""
    wrong = valid & ((value < 0) | (value >= c))
    if bool(wrong.any()):
        place = wrong.nonzero()[0].tolist()
        raise ScoreError(
            f"tags must lie in 0..{c - 1}; got {int(value[tuple(place)])} at row {_row(place)}, position {place[-1]}; "
            "map labels to indices with the same label list as the scores"
        )


def keep_allowed(name: str, scores: Tensor, allowed: Tensor | None, axes: int) -> Tensor:
    """Scores, -inf where `allowed` is False; it is shaped like them, or like their last `axes` axes."""
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


def partial_mask(partial: Tensor, valid: Bool[Tensor, "*batch n"], emissions: Tensor) -> Bool[Tensor, "*batch n c"]:
    """Allowed tags from tags with negatives for unknown [*batch, n], or from a mask [*batch, n, c] itself."""
    c = emissions.shape[-1]
    if partial.dtype == torch.bool:
        if partial.shape != emissions.shape:
            raise ScoreError(
                f"allowed tags must be {tuple(emissions.shape)}, True = allowed; got {tuple(partial.shape)}"
            )
        return partial
    if partial.dtype.is_floating_point or partial.shape != emissions.shape[:-1]:
        raise ScoreError(
            f"partial tags must be whole numbers {tuple(emissions.shape[:-1])}, -100 = unknown; "
            f"got {partial.dtype} {tuple(partial.shape)}"
        )
    partial = torch.where(valid, partial, -1)
    if bool((partial >= c).any()):
        raise ScoreError(f"partial tags must lie in 0..{c - 1} or be -100 for unknown; got {int(partial.max())}")
    return (partial[..., None] < 0) | (partial[..., None] == torch.arange(c, device=partial.device))
