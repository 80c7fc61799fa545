"""Dropout whose masks are drawn fast on a CPU."""

from __future__ import annotations

import torch
from torch import Tensor, nn

BITS = 16  # of a random number for each entry
STEPS = 1 << BITS


class Dropout(nn.Dropout):
    """`torch.nn.Dropout`, about twice as fast for large tensors on a CPU.

    torch draws one random number after another there; here one of 64 bits serves four entries. Shares are multiples of
    1 / 65,536, and what is kept is scaled so that the mean stays exactly as it was. Other devices use torch's.

    >>> dropped = Dropout(0.5)(torch.ones(1000))
    >>> sorted(dropped.unique().tolist())
    [0.0, 2.0]

    Srivastava et al. (2014), Dropout: a simple way to prevent neural networks from overfitting.
    """

    def forward(self, given: Tensor) -> Tensor:
        n_kept = round(STEPS * (1 - self.p))  # of all random numbers
        if not self.training or self.p == 0 or n_kept == 0 or given.device.type != "cpu":
            return super().forward(given)
        draws = torch.empty(-(-given.numel() * BITS // 64), dtype=torch.int64).random_(-(1 << 63), None)
        kept = draws.view(torch.int16)[: given.numel()] < n_kept - STEPS // 2
        return given * kept.view(given.shape).to(given.dtype).mul_(STEPS / n_kept)
