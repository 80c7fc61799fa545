"""Masks with holes: valid positions are moved together, computed on, and moved back.

A masked position is skipped, as if it were not in the sequence: its neighbours touch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from trelliswork.runtime.arrays import Bool, Int
from trelliswork.runtime.bridge import values_are_hidden
from trelliswork.runtime.kernel_math import right_padded


@dataclass(frozen=True)
class Layout:
    """The layout of a batch in its tensors: `lengths`, and for masks with holes where each position came from.

    `order[b, i]` is the place of row b's i-th valid position; the places left out follow behind. None: right padding.
    """

    lengths: Int[Tensor, "batch"]
    order: Int[Tensor, "batch n"] | None = None

    @staticmethod
    def of_mask(mask: Bool[Tensor, "batch n"]) -> Layout:
        """Return lengths of rows that are only padded on the right.

        An order as well for rows with holes (or empty ones).
        """
        if values_are_hidden():  # the order is right whether there are holes or not
            return Layout(mask.sum(1), (~mask).to(torch.uint8).argsort(dim=1, stable=True))
        if mask.is_cpu:
            counts = np.empty(len(mask), np.int64)
            if right_padded(mask.contiguous().numpy(), counts):
                return Layout(torch.from_numpy(counts))
        lengths = mask.sum(1)
        if bool((mask[:, 1:] <= mask[:, :-1]).all() & mask[:, 0].all()):
            return Layout(lengths)
        return Layout(lengths, (~mask).to(torch.uint8).argsort(dim=1, stable=True))

    def compact(self, tensor: Tensor) -> Tensor:
        """Return [batch, n, ...] with the valid positions of each row first."""
        return tensor if self.order is None else _along(tensor, self.order)

    def spread(self, tensor: Tensor) -> Tensor:
        """Return the way back: what was computed for a position goes to its place."""
        return tensor if self.order is None else _along(tensor, self.order.argsort(dim=1))


def _along(tensor: Tensor, order: Int[Tensor, "batch n"]) -> Tensor:
    """Return tensor[b, order[b, i], ...] for a tensor [batch, n, ...]."""
    index = order.reshape(*order.shape, *[1] * (tensor.dim() - 2)).expand(tensor.shape)
    return tensor.gather(1, index)
