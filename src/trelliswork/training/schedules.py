"""How learning rates rise and fall: factors of the initial rate, by step."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from trelliswork.training.config import TrainingConfig

RISE = 0.1  # of a slanted triangle, unless the settings say otherwise
RATIO = 32.0  # its highest rate over its lowest


class Schedule:
    """Multiplies every learning rate of an optimizer by `factor(step)`; `step` is all there is to remember."""

    def __init__(self, optimizer: torch.optim.Optimizer, factor: Callable[[int], float]) -> None:
        self.optimizer, self.factor = optimizer, factor
        self.initial_rates = [group["lr"] for group in optimizer.param_groups]
        self.go_to(0)

    def step(self) -> None:
        """Call after each step of the optimizer."""
        self.go_to(self.position + 1)

    def go_to(self, position: int) -> None:
        """The rates after so many steps."""
        self.position = position
        factor = self.factor(position)
        for group, rate in zip(self.optimizer.param_groups, self.initial_rates, strict=True):
            group["lr"] = rate * factor


def make_schedule(optimizer: torch.optim.Optimizer, config: TrainingConfig, n_steps: int) -> Schedule:
    """The schedule of a run of `n_steps`."""
    n_steps = max(n_steps, 1)
    if config.decay == "triangular":
        return Schedule(optimizer, lambda step: slanted_triangle(step, n_steps, config.warmup or RISE))
    n_warmup = int(config.warmup * n_steps)
    if config.decay == "noam":
        return Schedule(optimizer, lambda step: noam(step, max(1, n_warmup)))
    steps_per_epoch = n_steps / config.epochs

    def factor(step: int) -> float:
        if step < n_warmup:
            return (step + 1) / (n_warmup + 1)
        if config.decay == "inverse":
            return 1 / (1 + config.decay_rate * (step // steps_per_epoch))
        if config.decay == "constant":
            return 1.0
        done = min(1.0, (step - n_warmup) / (n_steps - n_warmup))
        return 1 - done if config.decay == "linear" else (1 + math.cos(math.pi * done)) / 2

    return Schedule(optimizer, factor)


def slanted_triangle(step: int, n_steps: int, rise: float = RISE, ratio: float = RATIO) -> float:
    """Up to 1 within the share `rise` of the steps, then down to 1 / ratio at the last.

    Howard and Ruder (2018), Universal language model fine-tuning for text classification.
    The printed slope divides by cut (1/rise - 1), which is n_steps - cut only where rise n_steps is a whole number:
    with 19 steps the last printed rate is negative, with 9 it divides by 0. The slope here ends at the last step.

    >>> slanted_triangle(10, 100), slanted_triangle(100, 100)
    (1.0, 0.03125)
    """
    cut = max(1, math.floor(n_steps * rise))  # [S4.478-479]
    share = step / cut if step < cut else max(0.0, 1 - (step - cut) / max(1, n_steps - cut))
    return (1 + share * (ratio - 1)) / ratio


def noam(step: int, n_warmup: int) -> float:
    """A linear rise to 1 in `n_warmup` steps, then a fall with the square root of the step.

    The rate is printed as d^(-1/2) min(s^(-1/2), s w^(-3/2)), steps s counted from 1; its highest value, (d w)^(-1/2)
    at s = w, is the learning rate of the settings. Vaswani et al. (2017), Attention is all you need.

    >>> noam(3, 4), noam(15, 4)
    (1.0, 0.5)
    """
    s = step + 1
    return math.sqrt(n_warmup) * min(s**-0.5, s * n_warmup**-1.5)  # [S4, learning rate]
