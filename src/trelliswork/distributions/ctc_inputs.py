"""Checks of the arguments of the distributions of CTC, each with a sentence that explains the error."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from reprlib import repr as shortened
from typing import Any

import torch
from torch import Tensor

from trelliswork.distributions.checks import (
    Lengths,
    check_floating,
    check_tensor,
    flat_lengths,
    is_whole,
    named_place,
    real_values,
    refuse_not_scores,
)
from trelliswork.errors import ScoreError
from trelliswork.runtime import bridge
from trelliswork.runtime.arrays import Bool, Int
from trelliswork.runtime.bridge import any_seen, as_array
from trelliswork.structures.ctc.beam import Models
from trelliswork.structures.ctc.kernels import labels_are_symbols

Rows = Sequence[Any]
"""One list of labels for each row, nested as the batch is."""
Strings = Tensor | Rows


def check_frames(log_probs: Tensor, blank: int) -> None:
    """Check frame scores [*batch, t, c] with a blank among the symbols."""
    check_tensor("log_probs", log_probs)
    if log_probs.dim() < 2 or 0 in log_probs.shape[-2:]:
        raise ScoreError(
            f"log_probs must be [batch, t, c] with t, c >= 1; got {tuple(log_probs.shape)}; "
            "give one row of c symbol scores for each frame"
        )
    check_floating(log_probs.dtype)
    if not 0 <= blank < log_probs.shape[-1]:
        raise ScoreError(f"blank must lie in 0..{log_probs.shape[-1] - 1}; got {blank}; it is one of the c symbols")


def flat_strings(
    targets: Strings, target_lengths: Lengths | None, batch_shape: torch.Size, device: torch.device
) -> tuple[Int[Tensor, "rows u"], Int[Tensor, "rows"]]:
    """Return label strings as padded rows and their lengths: from a tensor [*batch, u], or from one list a row.

    Args:
        targets: label strings as a tensor [*batch, u] or as lists nested like the batch.
        target_lengths: the number of labels of each row of a tensor [*batch]; None if none is padded.
        batch_shape: the batch axes of the frames.
        device: where the result lies.

    Returns:
        Strings [rows, u], padded with 0, and their lengths [rows].
    """
    if isinstance(targets, Tensor):
        if not is_whole(targets):
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


def _rows(targets: Rows, batch_shape: torch.Size) -> list[list[int]]:
    """Return the label strings of nested lists, one list of whole numbers for each row."""
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
    """Check that labels lie among the symbols, and none is the blank.

    Args:
        targets: labels of each row.
        target_lengths: how many of them are read.
        c: the number of symbols, the blank included.
        blank: the number of the blank.
    """
    on_cpu = targets.device.type == "cpu" and not bridge.out_of_reach()
    if on_cpu and labels_are_symbols(as_array(targets), as_array(target_lengths), c, blank):
        return
    named = torch.arange(targets.shape[1], device=targets.device) < target_lengths[:, None]
    wrong = named & ((targets < 0) | (targets >= c) | (targets == blank))
    if any_seen(wrong):
        row, place = wrong.nonzero()[0].tolist()
        raise ScoreError(
            f"targets must lie in 0..{c - 1} and not be the blank, {blank}; got {int(targets[row, place])} "
            f"at row {row}, label {place}; map labels to the symbols of the scores, and leave blanks to the alignment"
        )


def check_scores(scores: Tensor, real: Bool[Tensor, "rows t"]) -> None:
    """Refuse NaN and +inf at real frames [rows, t, c], by place."""
    refuse_not_scores("log_probs", scores, real[..., None], named_place("row", "frame", "symbol"))


def check_beam(width: int, k: int, symbol_threshold: float, beam_threshold: float) -> None:
    """Check the options of a beam search: its width, its thresholds, and the number of strings that it returns.

    Args:
        width: strings that the beam holds, at least 1.
        k: strings to return, at least 1.
        symbol_threshold: a log probability; -inf for no threshold.
        beam_threshold: a difference of scores, not negative; +inf for no threshold.
    """
    if width < 1 or k < 1:
        raise ScoreError(f"width and k must be at least 1; got {width} and {k}")
    if not symbol_threshold <= 0.0 <= beam_threshold:
        raise ScoreError(
            "symbol_threshold must be a log probability, at most 0, and beam_threshold a difference of scores, at "
            f"least 0; got {symbol_threshold} and {beam_threshold}; try -5.0 and 10.0"
        )


def check_models(models: Models, c: int, blank: int) -> None:
    """Check that a model of words has a lexicon, which spells with labels.

    Args:
        models: the models and weights that a beam search was given.
        c: the number of symbols, the blank included.
        blank: the number of the blank.
    """
    lexicon = models.lexicon
    if models.word_scorer is not None and lexicon is None:
        raise ScoreError("a word_scorer reads words; got no lexicon to spell them; give lexicon=Lexicon({...})")
    if lexicon is not None and (wrong := [x for x in lexicon.labels if not 0 <= x < c or x == blank]):
        raise ScoreError(
            f"a lexicon must spell with labels in 0..{c - 1}, not with the blank, {blank}; got {min(wrong)}"
        )


def check_paths(
    value: Tensor, batch_shape: torch.Size, real: Bool[Tensor, "rows t"], c: int
) -> Int[Tensor, "samples rows t"]:
    """Return paths [*samples, *batch, t] as [samples, rows, t], 0 at padding; each symbol in 0..c-1.

    Args:
        value: whole numbers [*samples, *batch, t].
        batch_shape: the batch axes.
        real: True at frames that are no padding.
        c: the number of symbols, the blank included.

    Returns:
        One axis for all samples, one for all rows.
    """
    samples = real_values("paths", value, batch_shape, real)
    wrong = (samples < 0) | (samples >= c)
    if any_seen(wrong):
        sample, row, frame = wrong.nonzero()[0].tolist()
        raise ScoreError(
            f"paths must hold symbols in 0..{c - 1}; got {int(samples[sample, row, frame])} at row {row}, frame {frame}"
        )
    return samples
