"""Dropout with fast masks on a CPU."""

from __future__ import annotations

import torch
from torch import Tensor, nn

BITS = 16  # random bits for each entry
STEPS = 1 << BITS


class Dropout(nn.Dropout):
    """Drop-in for `torch.nn.Dropout`, about twice as fast for large tensors on a CPU.

    On a CPU torch draws one random number per entry, one after another; here one number of 64 bits serves four entries.
    The probability is rounded to a multiple of 1 / 65,536, and kept entries are scaled accordingly, so that the mean
    is preserved exactly. On other devices this is torch's own dropout.

    >>> dropped = Dropout(0.5)(torch.ones(1000))
    >>> sorted(dropped.unique().tolist())
    [0.0, 2.0]

    Srivastava et al. (2014), Dropout: a simple way to prevent neural networks from overfitting.
    """

    def forward(self, input: Tensor) -> Tensor:
        n_kept = round(STEPS * (1 - self.p))  # an entry is kept if its random number is one of the lowest n_kept
        if not self.training or self.p == 0 or n_kept == 0 or input.device.type != "cpu":
            return super().forward(input)
        draws = torch.empty(-(-input.numel() * BITS // 64), dtype=torch.int64).random_(-(1 << 63), None)
        kept = draws.view(torch.int16)[: input.numel()] < n_kept - STEPS // 2  # int16 begins at -STEPS // 2
        return input * kept.view(input.shape).to(input.dtype).mul_(STEPS / n_kept)
