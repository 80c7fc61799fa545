"""Base of the structured layers: how ragged rows are given, and how log likelihoods are reduced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Never

import torch
from torch import Tensor, nn

from trelliswork.distributions.chain_inputs import layout_of
from trelliswork.distributions.checks import check_tensor
from trelliswork.errors import ConstraintError, ScoreError, TrellisworkError
from trelliswork.runtime.arrays import INF, Bool, Float, Int
from trelliswork.runtime.bridge import any_seen

REDUCTIONS = ("none", "sum", "mean", "token_mean")


class StructuredLayer(nn.Module):
    """A layer that asks a distribution for its answers."""

    def __prepare_scriptable__(self) -> Never:
        problem = f"torch.jit.script cannot compile {type(self).__name__}, whose answers come from kernels"
        raise TrellisworkError(
            f"{problem}; record the network with torch.export or torch.jit.trace, or script its encoder"
        )


def check_reduction(reduction: str) -> None:
    if reduction not in REDUCTIONS:
        raise ScoreError(f"invalid reduction: {reduction}; reduction must be one of {', '.join(REDUCTIONS)}")


def reduce(log_likelihood: Float[Tensor, "batch"], reduction: str, n_tokens: Callable[[], int | Tensor]) -> Tensor:
    """Return one value per row ("none"), their sum, mean, or sum over the number of tokens ("token_mean").

    Args:
        log_likelihood: Log likelihood of each row, [batch].
        reduction: One of these four.
        n_tokens: Function that returns the number of tokens.

    Returns:
        A scalar, or [batch].
    """
    if reduction == "none":
        return log_likelihood
    if reduction == "sum":
        return log_likelihood.sum()
    return log_likelihood.mean() if reduction == "mean" else log_likelihood.sum() / n_tokens()


def mask_of(
    lengths: Tensor | Sequence[int], mask: Tensor | None, batch: int, n: int, device: torch.device
) -> Bool[Tensor, "batch n"]:
    """Return the mask that lengths stand for, lengths checked; only one of both may be given.

    Args:
        lengths: Number of positions of each row.
        mask: Must be None.
        batch: Number of rows.
        n: Number of positions, padding included.
        device: Device of the mask.
    """
    layout = layout_of(torch.Size([batch]), n, device, lengths, mask)
    return torch.arange(n, device=device) < layout.lengths[:, None]


def lengths_of(
    mask: Tensor | None, lengths: Tensor | Sequence[int] | None, shape: torch.Size, note: str = ""
) -> Int[Tensor, "batch"] | None:
    """Return the lengths that a mask of this shape stands for, for layers whose rows are padded on the right.

    Args:
        mask: Mask, [batch, n].
        lengths: Lengths, [batch].
        shape: Shape that the mask must have.
        note: Addition to the error about another shape.
    """
    if mask is None:
        if lengths is None or isinstance(lengths, Tensor):
            return lengths
        return layout_of(shape[:-1], shape[-1], torch.device("cpu"), lengths, None).lengths
    check_tensor("mask", mask)
    if mask.shape != shape:
        raise ScoreError(f"the mask must be [batch, n]{note}, {tuple(shape)}; got {tuple(mask.shape)}")
    layout = layout_of(shape[:-1], shape[-1], mask.device, lengths, mask)
    if layout.order is not None:
        row = int((layout.order.diff(dim=1) < 0).any(1).nonzero()[0])
        raise ScoreError(f"the mask of row {row} has a hole; take masked tokens out and pad on the right")
    return layout.lengths


def require_possible(log_likelihood: Tensor, reason: str) -> None:
    """Raise an error that names the row of a gold tree without any probability."""
    impossible = log_likelihood == -INF
    if any_seen(impossible):
        raise ConstraintError(f"the tree of row {int(impossible.nonzero()[0])} is impossible: {reason}")
