"""Dilated convolutions, in which each layer reaches twice as far as the one below."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

from trelliswork.errors import ScoreError
from trelliswork.nn.dropout import Dropout
from trelliswork.nn.encoders.base import TokenEncoder
from trelliswork.runtime.shapes import Bool, Float


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
