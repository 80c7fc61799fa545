"""A tensor that grows along one axis, step by step, without being copied each time."""

from __future__ import annotations

import torch
from torch import Tensor

from trelliswork.runtime.shapes import Float


class GrowingCache:
    """Keys or values of all steps so far, [batch, heads, places, d].

    If gradients are enabled, the parts are concatenated; otherwise they are written into a buffer that doubles its
    size when it is full.

    >>> cache = GrowingCache()
    >>> _ = cache.add(torch.zeros(2, 4, 1, 8))
    >>> cache.add(torch.ones(2, 4, 5, 8)).shape
    torch.Size([2, 4, 6, 8])
    """

    def __init__(self) -> None:
        self.buffer: Tensor | None = None
        self.length = 0

    def add(self, new: Float[Tensor, "batch heads m d"]) -> Float[Tensor, "batch heads places d"]:
        """Append a part, and return all parts so far."""
        before, self.length = self.length, self.length + new.shape[2]
        if self.buffer is None or torch.is_grad_enabled():
            old = [] if self.buffer is None else [self.buffer[:, :, :before]]
            self.buffer = torch.cat([*old, new], 2)
            return self.buffer
        if self.length > self.buffer.shape[2]:
            grown = new.new_empty(*new.shape[:2], 2 * self.length, new.shape[3])
            grown[:, :, :before] = self.buffer[:, :, :before]
            self.buffer = grown
        self.buffer[:, :, before : self.length] = new
        return self.buffer[:, :, : self.length]
