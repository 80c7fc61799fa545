"""Checks of the arguments of distributions over dependency trees, each with a sentence that explains the error."""

from __future__ import annotations

import torch
from torch import Tensor

from trelliswork.distributions.checks import check_floating, check_tensors, known_values, real_values
from trelliswork.errors import ScoreError
from trelliswork.runtime.bridge import any_seen
from trelliswork.runtime.shapes import Bool, Int


def check_shape(arcs: Tensor, labels: Tensor | None) -> None:
    check_tensors(arcs=arcs, labels=labels)
    if arcs.dim() < 2 or arcs.shape[-1] != arcs.shape[-2] or arcs.shape[-1] < 2:
        raise ScoreError(
            f"arcs must be [batch, n+1, n+1] with n >= 1 words; got {tuple(arcs.shape)}; "
            "index them [head, dependent], 0 being the root"
        )
    if labels is not None and (labels.shape[:-1] != arcs.shape or not labels.shape[-1]):
        raise ScoreError(
            f"labels must be [batch, n+1, n+1, l], the shape of arcs {tuple(arcs.shape)} and l >= 1; "
            f"got {tuple(labels.shape)}"
        )
    for scores in (arcs, labels):
        if scores is not None:
            check_floating(scores.dtype)


def check_heads(value: Tensor, batch_shape: torch.Size, real: Bool[Tensor, "rows n"]) -> Int[Tensor, "samples rows n"]:
    """Return heads [*samples, *batch, n] as [samples, rows, n], 0 at padding; each in 0..length of its row."""
    samples = real_values("heads", value, batch_shape, real)
    lengths = real.sum(1)[:, None]
    wrong = (samples < 0) | (samples > lengths)
    if any_seen(wrong):
        sample, row, word = wrong.nonzero()[0].tolist()
        raise ScoreError(
            f"heads must lie in 0..{int(lengths[row])}; got {int(samples[sample, row, word])} at row {row}, "
            f"word {word + 1}; count words from 1 and give the root word the head 0"
        )
    return samples


def split_value(value: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Return (heads, labels) of a labelled value [..., n, 2]."""
    if value.dim() < 2 or value.shape[-2:] != (n, 2):
        raise ScoreError(
            f"with labels a value is [..., {n}, 2], (head, label) of each word; got {tuple(value.shape)}; "
            "use torch.stack([heads, labels], -1)"
        )
    return value[..., 0], value[..., 1]


def check_labels(labels: Tensor, n_samples: int, real: Bool[Tensor, "rows n"], n_labels: int) -> Tensor:
    """Return labels as [samples, rows, n], 0 at padding."""
    samples = torch.where(real, labels.long().reshape(n_samples, *real.shape), 0)
    wrong = (samples < 0) | (samples >= n_labels)
    if any_seen(wrong):
        sample, row, word = wrong.nonzero()[0].tolist()
        raise ScoreError(
            f"labels must lie in 0..{n_labels - 1}; got {int(samples[sample, row, word])} at row {row}, word {word + 1}"
        )
    return samples


def allowed_arcs(partial: Tensor, arcs: Tensor, real: Bool[Tensor, "*batch n"]) -> Bool[Tensor, "*batch n+1 n+1"]:
    """Read allowed arcs from heads with negatives for unknown [*batch, n], or from a mask [*batch, n+1, n+1] itself."""
    if partial.dtype == torch.bool:
        if partial.shape != arcs.shape:
            raise ScoreError(f"allowed arcs must be {tuple(arcs.shape)}, True = allowed; got {tuple(partial.shape)}")
        return partial
    n = arcs.shape[-1] - 1
    expected = (*arcs.shape[:-2], n)
    if partial.dtype.is_floating_point or partial.shape != expected:
        raise ScoreError(
            f"partial heads must be whole numbers {expected}, -100 = unknown; "
            f"got {partial.dtype} {tuple(partial.shape)}"
        )
    known = known_values("partial heads", partial, real, n + 1)
    heads = torch.arange(n + 1, device=partial.device)[:, None]
    agree = (known[..., None, :] < 0) | (known[..., None, :] == heads)
    return torch.cat([torch.ones_like(agree[..., :1]), agree], -1)


def allowed_labels(partial: Tensor, labels: Tensor, real: Bool[Tensor, "*batch n"]) -> Bool[Tensor, "*batch n+1 n+1 l"]:
    """Return allowed labels from one for each word with negatives for unknown [*batch, n], whatever its head."""
    n_labels = labels.shape[-1]
    known = known_values("partial labels", partial, real, n_labels)
    agree = (known[..., None] < 0) | (known[..., None] == torch.arange(n_labels, device=partial.device))
    agree = torch.cat([torch.ones_like(agree[..., :1, :]), agree], -2)  # nothing is known of the root's column
    return agree[..., None, :, :].expand(labels.shape)
