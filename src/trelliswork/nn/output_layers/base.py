"""What every output layer is: from hidden vectors to a distribution over symbols, and what learns it."""

from __future__ import annotations

from abc import abstractmethod

from torch import Tensor, nn

from trelliswork.runtime.shapes import Float, Int


class OutputLayer(nn.Module):
    """`loss` is what training makes small; `log_probs` is normalised, and exact."""

    n_symbols: int

    @abstractmethod
    def loss(self, hidden: Float[Tensor, "m d"], targets: Int[Tensor, " m"]) -> Float[Tensor, " m"]:
        """The loss of each target; sampled layers draw anew at each call."""

    def total_loss(self, hidden: Float[Tensor, "m d"], targets: Int[Tensor, " m"]) -> Float[Tensor, ""]:
        """The sum of `loss` over all targets; a layer may know a faster way to it."""
        return self.loss(hidden, targets).sum()

    @abstractmethod
    def log_probs(self, hidden: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch v"]:
        """ln p(symbol | hidden) for every symbol."""
