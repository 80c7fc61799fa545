"""Several hidden layers over a window of tokens, the deep features of a neural CRF."""

from __future__ import annotations

import itertools
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trelliswork.errors import ScoreError
from trelliswork.nn.dropout import Dropout
from trelliswork.nn.encoders.base import TokenEncoder
from trelliswork.nn.encoders.window import concatenate_window
from trelliswork.nn.initialization import initialize_fan_in
from trelliswork.nn.rbm import PretrainingConfig, Visible, pretrain_layers
from trelliswork.runtime.arrays import Bool, Float

Activation = Literal["sigmoid", "relu"]


class DeepEncoder(TokenEncoder):
    """Φ(x, t): hidden layers over a window of tokens, with zeros outside the sentence.

    Args:
        dim: Width of the vectors of tokens.
        window: Number of tokens in a window, odd.
        hidden: Units of each layer.
        layers: Number of layers.
        activation: "sigmoid" (which `pretrain` needs) or "relu".
        dropout: Share of units dropped between layers.

    >>> DeepEncoder(128, window=3, hidden=200, layers=2)(torch.zeros(2, 7, 128)).shape
    torch.Size([2, 7, 200])

    Do and Artières (2010), Neural conditional random fields.
    """

    # [S4.212]

    def __init__(
        self,
        dim: int,
        *,
        window: int = 1,
        hidden: int = 200,
        layers: int = 2,
        activation: Activation = "sigmoid",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if window < 1 or window % 2 == 0:
            raise ScoreError(f"window must be odd and positive; got {window}; use {2 * max(window // 2, 0) + 1}")
        if activation not in get_args(Activation):
            raise ScoreError(f"activation must be one of {', '.join(get_args(Activation))}; got {activation!r}")
        if layers < 1:
            raise ScoreError(f"layers must be at least 1; got {layers}")
        self.window, self.dim, self.activation = window, hidden, activation
        widths = [window * dim, *[hidden] * layers]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(widths))
        self.dropout = Dropout(dropout)
        initialize_fan_in(self, "uniform")

    def forward(
        self, tokens: Float[Tensor, "batch n d"], mask: Bool[Tensor, "batch n"] | None = None
    ) -> Float[Tensor, "batch n hidden"]:
        """Encode each token; masked positions give zeros."""
        vectors = self.windows(tokens, mask)
        for i, layer in enumerate(self.layers):
            vectors = self._activate(layer(vectors if i == 0 else self.dropout(vectors)))
        return vectors if mask is None else vectors * mask.unsqueeze(-1)

    def windows(
        self, tokens: Float[Tensor, "batch n d"], mask: Bool[Tensor, "batch n"] | None = None
    ) -> Float[Tensor, "batch n wd"]:
        """Return the input of the first layer, each token with its neighbours."""
        if mask is not None:
            tokens = tokens.masked_fill(~mask.unsqueeze(-1), 0.0)
        side = self.window // 2
        return concatenate_window(F.pad(tokens, (0, 0, side, side)), self.window)

    def pretrain(
        self,
        tokens: Float[Tensor, "batch n d"],
        mask: Bool[Tensor, "batch n"],
        config: PretrainingConfig | None = None,
        *,
        visible: Visible = "binary",
    ) -> list[float]:
        """Initialize the weights by training a stack of RBMs on the tokens; see `pretrain_layers`.

        Args:
            tokens: Vectors of the tokens.
            mask: True at valid positions.
            config: Settings of the training; None for their defaults.
            visible: What the vectors are to the first machine: binary or gaussian units.

        Returns:
            The reconstruction error of each layer.
        """
        if self.activation != "sigmoid":
            raise ScoreError(f'pre-training needs binary hidden units: activation="sigmoid"; got {self.activation!r}')
        layers = [layer for layer in self.layers if isinstance(layer, nn.Linear)]
        with torch.no_grad():
            rows = self.windows(tokens, mask)[mask]
        return pretrain_layers(layers, rows, config, visible=visible)

    def _activate(self, scores: Tensor) -> Tensor:
        return torch.sigmoid(scores) if self.activation == "sigmoid" else torch.relu(scores)
