"""Weights averaged along a run: they are the ones that are evaluated and saved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from trelliswork.data.json_values import Json, JsonObject
from trelliswork.training.config import TrainingConfig


class WeightAverage:
    """An average of the trainable weights after each step; before the first of them there is none.

    `decay=None` is the plain mean, otherwise a moving one: mean <- d mean + (1 - d) weights, where
    d = min(decay, (1 + t) / (10 + t)) lets the first steps be forgotten.

    >>> layer = nn.Linear(1, 1, bias=False)
    >>> average = WeightAverage(layer, decay=None)
    >>> for value in (1.0, 2.0, 6.0):
    ...     _ = nn.init.constant_(layer.weight, value)
    ...     average.update()
    >>> with average.applied():
    ...     layer.weight.item()
    3.0
    """

    def __init__(self, model: nn.Module, decay: float | None) -> None:
        self.decay = decay
        self.weights = {name: each for name, each in model.named_parameters() if each.requires_grad}
        self.n_updates = 0
        self.mean: dict[str, Tensor] = {}

    @torch.no_grad()
    def update(self) -> None:
        """Take in the weights of the model as they are now."""
        self.n_updates += 1
        if not self.mean:
            self.mean = self._copies()
        weights: list[Tensor] = [self.weights[name] for name in self.mean]
        torch._foreach_lerp_(list(self.mean.values()), weights, self._share)

    @property
    def _share(self) -> float:
        """Weight of the newest weights in the mean."""
        if self.decay is None:
            return 1 / self.n_updates
        return 1 - min(self.decay, (1 + self.n_updates) / (10 + self.n_updates))

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Inside, the model has the averaged weights."""
        own = self._copies()
        try:
            self._put(self.mean)
            yield
        finally:
            self._put(own)

    def restore(self, n_updates: int, mean: Mapping[str, Tensor]) -> None:
        """Go on from an average made before."""
        self.n_updates, self.mean = n_updates, dict(mean)

    def _copies(self) -> dict[str, Tensor]:
        return {name: parameter.detach().clone() for name, parameter in self.weights.items()}

    @torch.no_grad()
    def _put(self, values: Mapping[str, Tensor]) -> None:
        for name, value in values.items():
            self.weights[name].copy_(value)


def make_average(model: nn.Module, config: TrainingConfig) -> WeightAverage | None:
    """Return the average that the settings ask for."""
    if config.average == "none":
        return None
    return WeightAverage(model, config.ema_decay if config.average == "ema" else None)


def averages_in(epoch: int, config: TrainingConfig) -> bool:
    """Return whether the steps of this epoch, counted from 1, are averaged."""
    return config.average == "ema" or (config.average == "swa" and epoch > config.swa_start * config.epochs)


# Remembering the best epoch, and knowing when to stop.


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
        """True if the last `patience` epochs brought no improvement."""
        return self._epochs_offered - self.epoch >= self.patience

    def restore(self, model: nn.Module) -> None:
        """Put the best weights back; nothing to do before the first offer."""
        if self.weights:
            model.load_state_dict(self.weights)

    def state(self) -> JsonObject:
        """Return all but the weights, fit for JSON."""
        return {"score": self.score, "epoch": self.epoch, "epochs_offered": self._epochs_offered}

    def load(self, state: Mapping[str, Json], weights: Mapping[str, Tensor]) -> None:
        """Go on from what `state` gave, with the weights that were the best then."""
        self.score, self.epoch, self._epochs_offered = state["score"], state["epoch"], state["epochs_offered"]
        self.weights = dict(weights)
