"""Windows and dilated convolutions: each token is encoded from the tokens around it, as far as the layers reach."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from trelliswork.errors import ScoreError
from trelliswork.nn.dropout import Dropout
from trelliswork.nn.encoders.base import TokenEncoder
from trelliswork.nn.initialization import FanInScheme, initialize_fan_in
from trelliswork.runtime.arrays import Bool, Float


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


# Dilated convolutions, in which each layer reaches twice as far as the one below.


class DilatedConvolution(TokenEncoder):
    """Layers x + W (tanh(W_f * x) ∘ σ(W_g * x)) whose filters have 1, 2, 4, ... tokens between neighbouring taps.

    With `width` 3, the output of five layers depends on 63 tokens. Outside the sentence inputs are 0.

    Args:
        dim: Width of the vectors of tokens.
        hidden: Width of the layers.
        layers: Number of layers.
        width: Number of taps of a filter; odd, unless causal.
        causal: Whether filters end at their token, so that no token sees later ones; otherwise they are centred.
        dropout: Share of units dropped in each layer.

        >>> import torch
        >>> DilatedConvolution(55, hidden=64, layers=3)(torch.zeros(2, 7, 55)).shape
        torch.Size([2, 7, 64])

    van den Oord et al. (2016), WaveNet: a generative model for raw audio.
    """

    # [S4.588]

    def __init__(
        self,
        dim: int,
        *,
        hidden: int = 200,
        layers: int = 4,
        width: int = 3,
        causal: bool = False,
        dropout: float = 0.0,
    ):
        super().__init__()
        if layers < 1 or width < 1 or (width % 2 == 0 and not causal):
            raise ScoreError(
                f"layers must be at least 1 and width odd (any width from 1 if causal); got {layers} and {width}; "
                "try layers=4, width=3"
            )
        self.dim, self.width, self.causal = hidden, width, causal
        self.entry = nn.Linear(dim, hidden)
        self.filters_and_gates = nn.ModuleList(
            nn.Conv1d(hidden, 2 * hidden, width, dilation=2**layer) for layer in range(layers)
        )
        self.outputs = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(layers))
        self.dropout = Dropout(dropout)

    def forward(
        self, tokens: Float[Tensor, "batch n d"], mask: Bool[Tensor, "batch n"] | None = None
    ) -> Float[Tensor, "batch n hidden"]:
        """Encode each token; masked positions count as outside and give zeros."""
        vectors = _clear(self.entry(_clear(tokens, mask)), mask)
        for layer, (convolution, output) in enumerate(zip(self.filters_and_gates, self.outputs, strict=True)):
            reach = (self.width - 1) * 2**layer
            border = (reach, 0) if self.causal else (reach // 2, reach // 2)
            tanh_part, gate_part = convolution(F.pad(vectors.transpose(1, 2), border)).transpose(1, 2).chunk(2, -1)
            vectors = _clear(vectors + self.dropout(output(tanh_part.tanh() * gate_part.sigmoid())), mask)
        return vectors


def _clear(tokens: Float[Tensor, "batch n d"], mask: Bool[Tensor, "batch n"] | None) -> Float[Tensor, "batch n d"]:
    return tokens if mask is None else tokens.masked_fill(~mask.unsqueeze(-1), 0.0)
