"""Remembering the best epoch, and knowing when to stop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn


class BestWeights:
    """A copy of the weights at the best score so far, and how long ago that was.

    >>> best = BestWeights(patience=2)
    >>> model = nn.Linear(2, 2)
    >>> [best.offer(score, model) for score in (0.5, 0.7, 0.7, 0.6)], best.exhausted
    ([True, True, False, False], True)
    """

    def __init__(self, patience: int):
        self.patience = patience
        self.score: float | None = None
        self.epoch = 0
        self.weights: dict[str, Tensor] = {}
        self._epochs_offered = 0

    def offer(self, score: float, model: nn.Module) -> bool:
        """Take the weights of the epoch just finished if `score` is higher; say whether it was."""
        self._epochs_offered += 1
        if self.score is not None and not score > self.score:
            return False
        self.score, self.epoch = score, self._epochs_offered
        self.weights = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
        return True

    @property
    def exhausted(self) -> bool:
        """Whether the last `patience` epochs brought nothing."""
        return self._epochs_offered - self.epoch >= self.patience

    def restore(self, model: nn.Module) -> None:
        """Put the best weights back; nothing to do before the first offer."""
        if self.weights:
            model.load_state_dict(self.weights)

    def state(self) -> dict[str, Any]:
        """All but the weights, fit for JSON."""
        return {"score": self.score, "epoch": self.epoch, "epochs_offered": self._epochs_offered}

    def load(self, state: Mapping[str, Any], weights: Mapping[str, Tensor]) -> None:
        """Go on from what `state` gave, with the weights that were the best then."""
        self.score, self.epoch, self._epochs_offered = state["score"], state["epoch"], state["epochs_offered"]
        self.weights = dict(weights)
