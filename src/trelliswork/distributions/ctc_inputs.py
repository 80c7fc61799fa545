"""What may be handed to the distributions of CTC, checked with a sentence for each thing that can be wrong."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from reprlib import repr as shortened
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from trelliswork.distributions.base import check_tensor
from trelliswork.errors import ScoreError
from trelliswork.runtime import bridge
from trelliswork.runtime.bridge import as_array

if TYPE_CHECKING:
    from jaxtyping import Bool, Int

INF = float("inf")
Strings = Tensor | Sequence[Any]


def check_frames(log_probs: Tensor, blank: int) -> None:
    """Frame scores [*batch, t, c] with a blank among the symbols."""
    check_tensor("log_probs", log_probs)
    if log_probs.dim() < 2 or 0 in log_probs.shape[-2:]:
        raise ScoreError(
            f"log_probs must be [batch, t, c] with t, c >= 1; got {tuple(log_probs.shape)}; "
            "give one row of c symbol scores for each frame"
        )
    if not log_probs.dtype.is_floating_point:
        raise ScoreError(f"scores must be floating point; got {log_probs.dtype}; call .float() on them")
    if not 0 <= blank < log_probs.shape[-1]:
        raise ScoreError(f"blank must lie in 0..{log_probs.shape[-1] - 1}; got {blank}; it is one of the c symbols")


def flat_lengths(
    name: str, lengths: Tensor | Sequence[int] | None, batch_shape: torch.Size, most: int, device: torch.device
) -> Int[Tensor, "rows"]:
    """One whole number a row, in 0..most."""
    if lengths is None:
        return torch.full((batch_shape.numel(),), most, device=device)
    try:
        given = torch.as_tensor(lengths, device=device)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ScoreError(f"{name} must be whole numbers of shape {tuple(batch_shape)}; got {lengths!r}") from error
    if not given.numel() and not isinstance(lengths, Tensor):
        given = given.long()
    if given.shape != batch_shape or given.dtype.is_floating_point or given.dtype == torch.bool:
        raise ScoreError(
            f"{name} must be whole numbers of shape {tuple(batch_shape)}; got {given.dtype} {tuple(given.shape)}"
        )
    flat = given.reshape(-1).long()
    if len(flat) and not 0 <= int(flat.min()) <= int(flat.max()) <= most:
        row = int(((flat < 0) | (flat > most)).nonzero()[0])
        raise ScoreError(f"{name} must lie in 0..{most}; got {int(flat[row])} at row {row}; pad or shorten the row")
    return flat


def flat_strings(
    targets: Strings, target_lengths: Tensor | Sequence[int] | None, batch_shape: torch.Size, device: torch.device
) -> tuple[Int[Tensor, "rows u"], Int[Tensor, "rows"]]:
    """Label strings as padded rows and their lengths: from a tensor [*batch, u], or from one list a row."""
    if isinstance(targets, Tensor):
        if targets.dtype.is_floating_point or targets.dtype == torch.bool:
            raise ScoreError(f"targets must be whole numbers; got {targets.dtype}; call .long() on them")
        if targets.dim() < 1 or targets.shape[:-1] != batch_shape:
            raise ScoreError(
                f"targets must be {(*batch_shape, 'u')}, one label string a row; got {tuple(targets.shape)}"
            )
        u = targets.shape[-1]
        lengths = flat_lengths("target_lengths", target_lengths, batch_shape, u, device)
        return targets.reshape(batch_shape.numel(), u).to(device, torch.long), lengths
    if target_lengths is not None:
        raise ScoreError(
            "target_lengths belong to a tensor of targets; lists have lengths of their own; leave them out"
        )
    rows = _rows(targets, batch_shape)
    if len(rows) != batch_shape.numel():
        raise ScoreError(
            f"targets must be one list of labels for each of the rows {tuple(batch_shape)}; got {len(rows)}"
        )
    padded = torch.zeros(len(rows), max((len(row) for row in rows), default=0), dtype=torch.long)
    for place, row in zip(padded, rows, strict=True):
        place[: len(row)] = torch.tensor(row, dtype=torch.long)
    return padded.to(device), torch.tensor([len(row) for row in rows], dtype=torch.long, device=device)


def _rows(targets: Any, batch_shape: torch.Size) -> list[list[int]]:
    """The label strings of nested lists, one list of whole numbers for each row."""
    try:
        rows = [targets] if not batch_shape else list(targets)
        for _ in batch_shape[1:]:
            rows = [row for block in rows for row in block]
        return [[operator.index(label) for label in row] for row in rows]
    except TypeError as error:
        raise ScoreError(
            f"targets must be one list of whole numbers for each of the rows {tuple(batch_shape)}; "
            f"got {shortened(targets)}; give a list of labels for every row, or a tensor with target_lengths"
        ) from error


def check_labels(targets: Int[Tensor, "rows u"], target_lengths: Int[Tensor, "rows"], c: int, blank: int) -> None:
    """Labels lie among the symbols, and none is the blank."""
    if targets.device.type == "cpu" and not bridge.out_of_reach():
        from trelliswork.structures.ctc.kernels import first_bad_label

        if first_bad_label(as_array(targets), as_array(target_lengths), c, blank)[0] < 0:
            return
    named = torch.arange(targets.shape[1], device=targets.device) < target_lengths[:, None]
    wrong = named & ((targets < 0) | (targets >= c) | (targets == blank))
    if bool(wrong.any()):
        row, place = wrong.nonzero()[0].tolist()
        raise ScoreError(
            f"targets must lie in 0..{c - 1} and not be the blank, {blank}; got {int(targets[row, place])} "
            f"at row {row}, label {place}; map labels to the symbols of the scores, and leave blanks to the alignment"
        )


def check_scores(scores: Tensor, real: Bool[Tensor, "rows t"]) -> None:
    """NaN and +inf are refused at real frames [rows, t, c], by place."""
    wrong = ~(scores.detach() < INF) & real[..., None]
    if bool(wrong.any()):
        row, frame, symbol = wrong.nonzero()[0].tolist()
        raise ScoreError(
            f"log_probs must be finite numbers or -inf; got {scores[row, frame, symbol].item()} at row {row}, "
            f"frame {frame}, symbol {symbol}; look for a division by zero or an overflow upstream, and forbid with -inf"
        )


def check_paths(
    value: Tensor, batch_shape: torch.Size, real: Bool[Tensor, "rows t"], c: int
) -> Int[Tensor, "samples rows t"]:
    """Paths [*samples, *batch, t] as [samples, rows, t], 0 at padding; each symbol in 0..c-1."""
    check_tensor("paths", value)
    expected = (*batch_shape, real.shape[1])
    if value.dtype.is_floating_point or value.dtype == torch.bool:
        raise ScoreError(f"paths must be whole numbers; got {value.dtype}; call .long() on them")
    if value.shape[max(0, value.dim() - len(expected)) :] != expected:
        raise ScoreError(f"paths must be [..., {', '.join(map(str, expected))}]; got {tuple(value.shape)}")
    n_samples = value.shape[: value.dim() - len(expected)].numel()
    samples = torch.where(real, value.long().reshape(n_samples, *real.shape), 0)
    wrong = (samples < 0) | (samples >= c)
    if bool(wrong.any()):
        sample, row, frame = wrong.nonzero()[0].tolist()
        raise ScoreError(
            f"paths must hold symbols in 0..{c - 1}; got {int(samples[sample, row, frame])} at row {row}, frame {frame}"
        )
    return samples


def allowed_frames(partial: Tensor, scores: Tensor, real: Bool[Tensor, "*batch t"]) -> Bool[Tensor, "*batch t c"]:
    """Allowed symbols from paths with negatives for unknown [*batch, t], or from a mask [*batch, t, c] itself."""
    if not isinstance(partial, Tensor):
        raise ScoreError(f"partial knowledge of frames must be a tensor; got {type(partial).__name__}")
    if partial.dtype == torch.bool:
        if partial.shape != scores.shape:
            raise ScoreError(
                f"allowed symbols must be {tuple(scores.shape)}, True = allowed; got {tuple(partial.shape)}"
            )
        return partial
    if partial.dtype.is_floating_point or partial.shape != scores.shape[:-1]:
        raise ScoreError(
            f"partial paths must be whole numbers {tuple(scores.shape[:-1])}, -100 = unknown; "
            f"got {partial.dtype} {tuple(partial.shape)}"
        )
    c = scores.shape[-1]
    known = torch.where(real, partial, -1)
    if bool((known >= c).any()):
        raise ScoreError(f"partial paths must lie in 0..{c - 1} or be -100 for unknown; got {int(known.max())}")
    return (known[..., None] < 0) | (known[..., None] == torch.arange(c, device=partial.device))
