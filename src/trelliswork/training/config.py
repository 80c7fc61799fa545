"""The settings of a training run."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from trelliswork.errors import TrellisworkError

Objective = Literal["likelihood", "local", "perceptron", "margin", "risk"]
Optimizer = Literal["adamw", "adam", "sgd", "momentum"]
Decay = Literal["linear", "constant", "inverse", "cosine", "triangular"]
Precision = Literal["float32", "bf16"]
Average = Literal["none", "ema", "swa"]

DEFAULT_RATES: dict[str, float] = {"adamw": 2e-3, "adam": 2e-3, "sgd": 50.0, "momentum": 0.3}

_CHOICES: dict[str, tuple[str, ...]] = {
    "objective": get_args(Objective),
    "optimizer": get_args(Optimizer),
    "decay": get_args(Decay),
    "precision": get_args(Precision),
    "average": get_args(Average),
}
_AT_LEAST_ONE = ("epochs", "patience", "batch_tokens", "accumulate", "layer_decay")
_FINITE = ("lr", "l2", "decay_rate", "layer_decay", "clip", "checkpoint_every")
_SEEDS = (-(2**63), 2**64)  # those of torch
_SHARES = ("momentum", "warmup", "ema_decay", "swa_start")


@dataclass(frozen=True)
class TrainingConfig:
    """How to train; the defaults suit a tagger on anything from a thousand sentences up.

    `objective` says what is made small: see `trelliswork.training.objectives`.

    Steps: `batch_tokens` is the size of a batch and `accumulate` the number of batches whose gradients make one step.
    `lr=None` takes the default of the optimizer. `"sgd"` divides it by the fan-in of each layer [S3]; the loss is a
    mean over tokens, so its rates are larger than those quoted for single sentences. `"momentum"` is SGD with
    `momentum` and one rate for all. `l2` is the strength of |theta|^2 / 2 for "sgd", "momentum" and "adam" and the
    decoupled weight decay for "adamw" [S1, SGD; S4, AdamW]. `clip` limits the norm of the gradient.

    Rates: after a `warmup` (a share of all steps) `decay` takes them down: "linear" and "cosine" to zero at the last
    step, "inverse" to 1 / (1 + `decay_rate` epochs), "triangular" is slanted [S4.478-479] with the warm-up as its rise
    (0.1 if it is 0). `layer_decay` divides the rate once for each layer group below the top (2.6 in [S4.477]);
    `unfreeze` trains the top group alone in the first epoch and one group more in each that follows.

    Weights that are evaluated and saved: the last ones, their moving average (`average="ema"`, with `ema_decay`) or
    their mean since the share `swa_start` of the epochs (`"swa"`). Training stops after `patience` epochs without a
    better dev score. Sentences over `max_sentence_length` tokens are left out. A checkpoint is written after each
    epoch and every `checkpoint_every` seconds (0: after every step).

        >>> TrainingConfig(epochs=3).learning_rate
        0.002
    """

    epochs: int = 12
    patience: int = 5
    batch_tokens: int = 1000
    accumulate: int = 1
    max_sentence_length: int | None = None
    objective: Objective = "likelihood"
    optimizer: Optimizer = "adamw"
    lr: float | None = None
    momentum: float = 0.9
    l2: float = 0.0
    decay: Decay = "linear"
    decay_rate: float = 0.05
    warmup: float = 0.0
    layer_decay: float = 1.0
    unfreeze: bool = False
    clip: float = 5.0
    precision: Precision = "float32"
    average: Average = "none"
    ema_decay: float = 0.999
    swa_start: float = 0.5
    checkpoint_every: float = 60.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise TrellisworkError(f"{name} must be one of {', '.join(choices)}; got {getattr(self, name)!r}")
        for name in _AT_LEAST_ONE:
            if not getattr(self, name) >= 1:
                raise TrellisworkError(f"{name} must be at least 1; got {getattr(self, name)}")
        for name in _FINITE:
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                raise TrellisworkError(f"{name} must be a finite number; got {value}")
        if not _SEEDS[0] <= self.seed < _SEEDS[1]:
            raise TrellisworkError(f"seed must be a number of at most 63 bits; got {self.seed}; take a smaller one")
        for name in _SHARES:
            if not 0 <= getattr(self, name) < 1:
                raise TrellisworkError(f"{name} must lie in [0, 1); got {getattr(self, name)}")
        if self.learning_rate <= 0 or self.clip <= 0 or self.l2 < 0:
            raise TrellisworkError(
                f"lr and clip must be positive and l2 not negative; got lr={self.learning_rate}, "
                f"clip={self.clip}, l2={self.l2}"
            )
        if self.decay_rate < 0 or self.checkpoint_every < 0:
            raise TrellisworkError(
                f"decay_rate and checkpoint_every must not be negative; got decay_rate={self.decay_rate}, "
                f"checkpoint_every={self.checkpoint_every}"
            )
        if self.max_sentence_length is not None and self.max_sentence_length < 1:
            raise TrellisworkError(
                f"max_sentence_length must be at least 1, or None for no limit; got {self.max_sentence_length}"
            )

    @property
    def learning_rate(self) -> float:
        """The initial rate, before any division by the fan-in."""
        return DEFAULT_RATES[self.optimizer] if self.lr is None else self.lr

    def to_dict(self) -> dict[str, Any]:
        """Plain values, fit for JSON, with the rate resolved."""
        return {**asdict(self), "lr": self.learning_rate}
