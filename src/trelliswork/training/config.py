"""The settings of a training run."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from trelliswork.errors import TrellisworkError

Optimizer = Literal["adamw", "adam", "sgd"]
Decay = Literal["linear", "constant"]

DEFAULT_RATES: dict[str, float] = {"adamw": 2e-3, "adam": 2e-3, "sgd": 50.0}


@dataclass(frozen=True)
class TrainingConfig:
    """How to train; the defaults suit a tagger on anything from a thousand sentences up.

    `lr=None` takes the default of the optimizer. `"sgd"` divides it by the fan-in of each layer [S3]; the
    loss is a mean over tokens, so its rates are larger than those quoted for single sentences. `l2` is the
    strength of |theta|^2 / 2 for "sgd" and "adam" and the decoupled weight decay for "adamw" [S1, SGD].
    `decay="linear"` falls to zero at the last epoch. Training stops after `patience` epochs without a better
    dev score.

        >>> TrainingConfig(epochs=3).learning_rate
        0.002
    """

    epochs: int = 12
    patience: int = 5
    batch_tokens: int = 1000
    optimizer: Optimizer = "adamw"
    lr: float | None = None
    l2: float = 0.0
    decay: Decay = "linear"
    clip: float = 5.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name, choices in (("optimizer", get_args(Optimizer)), ("decay", get_args(Decay))):
            if getattr(self, name) not in choices:
                raise TrellisworkError(f"{name} must be one of {', '.join(choices)}; got {getattr(self, name)!r}")
        for name in ("epochs", "patience", "batch_tokens"):
            if getattr(self, name) < 1:
                raise TrellisworkError(f"{name} must be at least 1; got {getattr(self, name)}")
        if self.learning_rate <= 0 or self.clip <= 0 or self.l2 < 0:
            raise TrellisworkError(
                f"lr and clip must be positive and l2 not negative; got lr={self.learning_rate}, "
                f"clip={self.clip}, l2={self.l2}"
            )

    @property
    def learning_rate(self) -> float:
        """The initial rate, before any division by the fan-in."""
        return DEFAULT_RATES[self.optimizer] if self.lr is None else self.lr

    def to_dict(self) -> dict[str, Any]:
        """Plain values, fit for JSON, with the rate resolved."""
        return {**asdict(self), "lr": self.learning_rate}
