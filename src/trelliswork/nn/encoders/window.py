"""The window approach: each token is encoded from the w tokens around it."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trelliswork.errors import ScoreError
from trelliswork.nn.encoders.base import TokenEncoder
from trelliswork.nn.initialization import FanInScheme, initialize_fan_in
from trelliswork.runtime.shapes import Bool, Float


class WindowEncoder(TokenEncoder):
    """Concatenates the vectors of the tokens in a window, then applies a linear layer and HardTanh.

    Outside the sentence the window reads one trained vector; masked positions count as outside, so that neither the
    width of a batch nor the values of its padding affect the result.

    Args:
        dim: Width of the vectors of tokens.
        window: Number of tokens in a window, odd.
        hidden: Width of the output.
        initialization: See `initialize_fan_in`.

        >>> WindowEncoder(55, window=5, hidden=300)(torch.zeros(2, 7, 55)).shape
        torch.Size([2, 7, 300])

    Collobert et al. (2011), Natural language processing (almost) from scratch.
    """

    # [S3.13; S3.4]

    def __init__(self, dim: int, *, window: int = 5, hidden: int = 300, initialization: FanInScheme = "uniform"):
        super().__init__()
        if window < 1 or window % 2 == 0:
            raise ScoreError(f"window must be odd and positive; got {window}; use {2 * max(window // 2, 0) + 1}")
        self.window, self.dim = window, hidden
        self.outside = nn.Parameter(torch.empty(dim).uniform_(-1, 1))
        self.linear = nn.Linear(window * dim, hidden)
        initialize_fan_in(self, initialization)

    def forward(
        self, tokens: Float[Tensor, "batch n d"], mask: Bool[Tensor, "batch n"] | None = None
    ) -> Float[Tensor, "batch n hidden"]:
        """Encode each token; masked positions give zeros."""
        if mask is not None:
            tokens = torch.where(mask.unsqueeze(-1), tokens, self.outside)
        border = self.outside.expand(tokens.shape[0], self.window // 2, -1)
        padded = torch.cat([border, tokens, border], 1)  # (batch, n + w - 1, d)
        hidden = F.hardtanh(self.linear(concatenate_window(padded, self.window)))
        return hidden if mask is None else hidden * mask.unsqueeze(-1)


def concatenate_window(padded: Float[Tensor, "batch n_padded d"], window: int) -> Float[Tensor, "batch n wd"]:
    """Concatenate windows: vector k of the result is tokens k .. k+w-1 side by side, and n = n_padded - w + 1.

    >>> concatenate_window(torch.tensor([[[1.], [2.], [3.], [4.]]]), window=3)
    tensor([[[1., 2., 3.],
             [2., 3., 4.]]])
    """
    n = padded.shape[1] - window + 1
    return torch.cat([padded[:, shift : shift + n] for shift in range(window)], dim=-1)
