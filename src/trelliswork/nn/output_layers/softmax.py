"""The full softmax, which scores every symbol."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from trelliswork.errors import ScoreError
from trelliswork.nn.output_layers.base import OutputLayer
from trelliswork.nn.output_layers.fused_loss import summed_loss
from trelliswork.runtime.shapes import Float, Int


class SoftmaxLayer(OutputLayer):
    """p(k | h) = exp(w_k · h + b_k) / Z.

    Args:
        dim: Width of the hidden vectors.
        n_symbols: Number of symbols, v.
        smoothing: ε of label smoothing, which trains towards 1 - ε on the target and ε spread over all symbols.
        tied: Table of symbol vectors [v, d] to share as w.

        >>> SoftmaxLayer(16, 100).log_probs(torch.zeros(2, 5, 16)).shape
        torch.Size([2, 5, 100])

    Szegedy et al. (2016), Rethinking the inception architecture for computer vision; Press and Wolf (2017), Using the
    output embedding to improve language models.
    """

    # [S4.14, 27-28, 49, 51]

    def __init__(self, dim: int, n_symbols: int, *, smoothing: float = 0.0, tied: Tensor | None = None) -> None:
        super().__init__()
        if not 0 <= smoothing < 1:
            raise ScoreError(f"smoothing must lie in [0, 1); got {smoothing}; try 0.1")
        if tied is not None and tied.shape != (n_symbols, dim):
            raise ScoreError(f"a tied table must be {(n_symbols, dim)}; got {tuple(tied.shape)}")
        self.n_symbols, self.smoothing = n_symbols, smoothing
        self.weight: Tensor = nn.Parameter(torch.randn(n_symbols, dim) * dim**-0.5) if tied is None else tied
        self.bias = nn.Parameter(torch.zeros(n_symbols))

    def scores(self, hidden: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch v"]:
        """Return w_k · h + b_k."""  # [S4.30]
        return F.linear(hidden, self.weight, self.bias)

    def loss(self, hidden: Float[Tensor, "m d"], targets: Int[Tensor, " m"]) -> Float[Tensor, " m"]:
        smoothing = self.smoothing if self.training else 0.0
        return F.cross_entropy(self.scores(hidden), targets, reduction="none", label_smoothing=smoothing)

    def total_loss(self, hidden: Float[Tensor, "m d"], targets: Int[Tensor, " m"]) -> Float[Tensor, ""]:
        if torch.is_autocast_enabled(hidden.device.type):
            return super().total_loss(hidden, targets)
        smoothing = self.smoothing if self.training else 0.0
        return summed_loss(hidden, self.weight, self.bias, targets, smoothing)

    def log_probs(self, hidden: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch v"]:
        return self.scores(hidden).log_softmax(-1)  # [S4.40-42]
