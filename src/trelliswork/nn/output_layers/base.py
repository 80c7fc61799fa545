"""The interface of output layers, which map hidden vectors to a distribution over symbols."""

from __future__ import annotations

from abc import abstractmethod

from torch import Tensor, nn

from trelliswork.runtime.shapes import Float, Int


class OutputLayer(nn.Module):
    """Base class: `loss` is minimised in training, and may be an estimate; `log_probs` is exact and normalised."""

    n_symbols: int

    @abstractmethod
    def loss(self, hidden: Float[Tensor, "m d"], targets: Int[Tensor, " m"]) -> Float[Tensor, " m"]:
        """Return the loss of each target; layers that sample draw new symbols at each call."""

    def total_loss(self, hidden: Float[Tensor, "m d"], targets: Int[Tensor, " m"]) -> Float[Tensor, ""]:
        """Return the sum of `loss` over all targets; layers may override it with a faster way."""
        return self.loss(hidden, targets).sum()

    @abstractmethod
    def log_probs(self, hidden: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch v"]:
        """Return ln p(symbol | hidden) for every symbol."""
