"""The window approach of [S3]: a token is seen through the w tokens around it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trelliswork.errors import ScoreError
from trelliswork.nn.encoders.lookup import PADDING, LookupTables
from trelliswork.nn.initialization import FanInScheme, initialize_fan_in

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


class WindowEncoder(nn.Module):
    """Lookup tables, concatenated over a window, then linear, then HardTanh [S3.13; S3.4].

    The features of a token are indices, one per table. Outside the sentence the window reads the padding
    index 0, whose vectors are trained; masked positions count as outside. So neither the width of a batch nor
    what stands in its padding can change a result.

        >>> encoder = WindowEncoder(sizes=[5000, 6], dims=[50, 5], window=5, hidden=300)
        >>> features = torch.ones(2, 7, 2, dtype=torch.long)
        >>> encoder(features).shape
        torch.Size([2, 7, 300])
    """

    def __init__(
        self,
        sizes: Sequence[int],
        dims: Sequence[int],
        *,
        window: int = 5,
        hidden: int = 300,
        dropout: float = 0.0,
        unknown_dropout: float = 0.0,
        initialization: FanInScheme = "uniform",
    ):
        super().__init__()
        if window < 1 or window % 2 == 0:
            raise ScoreError(f"window must be odd and positive; got {window}; use {2 * max(window // 2, 0) + 1}")
        self.window = window
        self.dim = hidden
        self.lookup = LookupTables(sizes, dims, unknown_dropout=unknown_dropout)
        self.dropout = nn.Dropout(dropout)
        self.linear = nn.Linear(window * self.lookup.dim, hidden)
        initialize_fan_in(self, initialization)

    def forward(
        self, features: Int[Tensor, "batch n f"], mask: Bool[Tensor, "batch n"] | None = None
    ) -> Float[Tensor, "batch n hidden"]:
        """Encode each token; masked positions come back as zeros."""
        self.lookup.check(features)
        if mask is not None:
            features = features.masked_fill(~mask.unsqueeze(-1), PADDING)
        reach = self.window // 2
        padded = F.pad(features, (0, 0, reach, reach), value=PADDING)  # (batch, n + w - 1, f)
        tokens = self.dropout(self.lookup(padded))  # (batch, n + w - 1, d)
        hidden = F.hardtanh(self.linear(concatenate_window(tokens, self.window)))
        return hidden if mask is None else hidden * mask.unsqueeze(-1)


def concatenate_window(padded: Float[Tensor, "batch n_padded d"], window: int) -> Float[Tensor, "batch n wd"]:
    """Vector k of the result is tokens k .. k+w-1 side by side; n = n_padded - w + 1.

    >>> concatenate_window(torch.tensor([[[1.], [2.], [3.], [4.]]]), window=3)
    tensor([[[1., 2., 3.],
             [2., 3., 4.]]])
    """
    n = padded.shape[1] - window + 1
    return torch.cat([padded[:, shift : shift + n] for shift in range(window)], dim=-1)
