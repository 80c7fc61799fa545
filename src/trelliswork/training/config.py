"""The settings of a training run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from trelliswork.data.json_values import JsonObject
from trelliswork.data.settings import LARGEST_SEED, Around, OneOf, Settings, setting
from trelliswork.errors import TrellisworkError

Objective = Literal["likelihood", "local", "perceptron", "margin", "risk"]
Optimizer = Literal["adamw", "adam", "sgd", "momentum", "nesterov", "adagrad", "rmsprop"]
Decay = Literal["linear", "constant", "inverse", "cosine", "triangular", "noam"]
Precision = Literal["float32", "bf16"]
Average = Literal["none", "ema", "swa"]

DEFAULT_RATES: dict[str, float] = {
    "adamw": 2e-3, "adam": 2e-3, "sgd": 50.0, "momentum": 0.3, "nesterov": 0.3, "adagrad": 2e-2, "rmsprop": 2e-3,
}  # fmt: skip
ENCODER_RATE = 5e-5  # of a pretrained encoder
_LEAST_SEED = -(2**63)  # of torch


@dataclass(frozen=True)
class TrainingConfig(Settings):
    """Settings of training; the defaults suit a tagger on anything from a thousand sentences up.

    `objective` says what is minimized: see `trelliswork.training.objectives`. `lr=None` takes the default of the
    optimizer. `"sgd"` divides the rate by the fan-in of each layer (Collobert et al. 2011, Natural language processing
    (almost) from scratch); the loss is a mean over tokens, so its rates are larger than those quoted for single
    sentences. `l2` is the decoupled weight decay for "adamw", and the strength of |theta|^2 / 2 for the others.

    "linear" and "cosine" take the rate to zero at the last step, "inverse" to 1 / (1 + `decay_rate` epochs),
    "triangular" is slanted with the warm-up as its rise (0.1 if it is 0; Howard and Ruder 2018, Universal language
    model fine-tuning for text classification), "noam" falls with the square root of the step after the warm-up, where
    it reaches `lr` (Vaswani et al. 2017, Attention is all you need).

    The weights that are evaluated and saved are the last ones, their moving average (`average="ema"`) or their mean
    since the share `swa_start` of the epochs (`"swa"`).

        >>> TrainingConfig(epochs=3).learning_rate
        0.002
    """

    PANEL, BY_MODEL = "Learning", True

    epochs: int = setting(12, "Maximum number of epochs.", at_least=1, option=True)
    patience: int = setting(5, "Stop after this many epochs without improvement.", at_least=1, option=True)
    batch_tokens: int = setting(
        1000, "Approximate number of tokens per batch.", at_least=1, option=True, search=Around(4)
    )
    bucket: int = setting(
        2000, "Number of sentences that are sorted by length and cut into batches together.", at_least=1
    )
    accumulate: int = setting(1, "Number of batches to accumulate gradients over.", at_least=1)
    max_sentence_length: int | None = setting(
        None, "Training sentences with more tokens than this are dropped.", at_least=1
    )
    objective: Objective = setting("likelihood", "Training objective", choices=get_args(Objective), option=True)
    optimizer: Optimizer = setting("adamw", choices=get_args(Optimizer), option=True)
    lr: float | None = setting(
        None, "Learning rate.", above=0, option=True, search=Around(8), default_text="that of the optimizer"
    )
    encoder_lr: float | None = setting(
        None, "Learning rate of a pretrained encoder; --lr is that of all else.", above=0, option=True,
        default_text=f"{ENCODER_RATE:g}",
    )  # fmt: skip
    momentum: float = setting(
        0.9, "Momentum (optimizers momentum and nesterov).", at_least=0, below=1,
        goes_with={"optimizer": ("momentum", "nesterov")},
    )  # fmt: skip
    beta2: float = setting(
        0.99, "Decay of the mean of squared gradients (optimizers adamw, adam and rmsprop).", at_least=0, below=1,
        goes_with={"optimizer": ("adamw", "adam", "rmsprop")},
    )  # fmt: skip
    l2: float = setting(0.0, "Weight decay.", at_least=0, option=True, search=OneOf((0.0, 0.001, 0.01, 0.1)))
    decay: Decay = setting("linear", "Learning rate schedule", choices=get_args(Decay), option=True)
    decay_rate: float = setting(0.05, "Decay rate (schedule inverse).", at_least=0)
    warmup: float = setting(0.0, "Fraction of all steps used for learning rate warm-up.", at_least=0, below=1)
    layer_decay: float = setting(
        1.0,
        "Factor by which the learning rate is divided for each lower group of layers, and for each lower layer of a "
        "pretrained encoder.",
        at_least=1,
    )
    unfreeze: bool = setting(
        False, "Unfreeze gradually: train the top group of layers first, and one more group in each following epoch."
    )
    clip: float = setting(5.0, "Maximum gradient norm.", above=0)
    precision: Precision = setting(
        "float32", "Floating-point precision of the products in a network while it learns", choices=get_args(Precision),
        option=True,
    )  # fmt: skip
    average: Average = setting("none", "Weight averaging", choices=get_args(Average), option=True)
    ema_decay: float = setting(0.999, "Decay of the moving average (average ema).", at_least=0, below=1, option=True)
    swa_start: float = setting(0.5, "Fraction of the epochs after which SWA begins.", at_least=0, below=1)
    checkpoint_every: float = setting(
        60.0, "Seconds between checkpoints (0: after every step).", at_least=0, option=True
    )
    seed: int = setting(
        0, "Random seed; the same seed gives the same model.", at_most=LARGEST_SEED, option=True, option_default=0
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.seed < _LEAST_SEED:
            raise TrellisworkError(f"seed must be at least {_LEAST_SEED}; got {self.seed}; take a larger one")

    @property
    def learning_rate(self) -> float:
        """The initial rate, before any division by the fan-in."""
        return DEFAULT_RATES[self.optimizer] if self.lr is None else self.lr

    @property
    def encoder_rate(self) -> float:
        """The initial rate of the top layer of a pretrained encoder."""
        return ENCODER_RATE if self.encoder_lr is None else self.encoder_lr

    def to_dict(self) -> JsonObject:
        """Return plain values, fit for JSON, with the rate resolved."""
        return {**super().to_dict(), "lr": self.learning_rate}
