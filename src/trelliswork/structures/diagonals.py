"""Charts of spans by width, for recursions that do all spans of one width in a fixed number of operations.

What a recursion reads of narrower spans it keeps in two tensors with a row for each span of the next width: `starts`
[..., span, width] of the spans that begin where it begins, `ends` [..., span, width] of those that end where it ends,
the widest first. Splits of all spans are then one product of both, without a slice for each split.
"""

from __future__ import annotations

import torch
from torch import Tensor


def diagonals(chart: Tensor) -> list[Tensor]:
    """Return the entries [..., i, i + w] of a chart [..., n, n] for each width w = 0..n-1: tensors [..., n - w]."""
    return _picked(chart, *_upper(chart.shape[-1], chart.device))


def diagonals_of_both_sides(chart: Tensor) -> list[Tensor]:
    """Return the diagonals above and below that of a chart [..., batch, n, n], as tensors [..., 2, batch, n - w].

    Above, span (i, i + w) has the entry [i, i + w]; below, [i + w, i], and the last span comes first: below, all is as
    above in a mirror.
    """
    n = chart.shape[-1]
    upper, lower = chart.flatten(-2), chart.flip(-2, -1).flatten(-2)  # [j, i] is [i', j'] in the mirror
    index, sizes = _upper(n, chart.device)
    both = torch.stack([upper, lower], -3)
    return list(both[..., index].split(sizes, -1))


def _upper(n: int, device: torch.device) -> tuple[Tensor, list[int]]:
    """Flat places of one diagonal behind the other, and how long each is."""
    place = torch.arange(n, device=device)
    width, first = place.repeat_interleave(n), place.repeat(n)
    kept = width + first < n
    return (first * (n + 1) + width)[kept], list(range(n, 0, -1))


def _picked(chart: Tensor, index: Tensor, sizes: list[int]) -> list[Tensor]:
    return list(chart.flatten(-2)[..., index].split(sizes, -1))


def narrowed(starts: Tensor, ends: Tensor) -> tuple[Tensor, Tensor]:
    """Return the rows of both for spans that are one wider."""
    return starts[..., :-1, :], ends[..., 1:, :]


def widened(starts: Tensor, ends: Tensor, begun: Tensor, ended: Tensor) -> tuple[Tensor, Tensor]:
    """Return both with the spans [..., span] of one more width, as they are read from their starts and ends.

    Args:
        starts: spans by their start [..., n, widths].
        ends: spans by their end [..., n, widths].
        begun: spans of one more width, as they are read from their starts [..., span].
        ended: the same spans, as they are read from their ends.

    Returns:
        Both, with one more width.
    """
    return torch.cat([starts, begun[..., None]], -1), torch.cat([ended[..., None], ends], -1)
