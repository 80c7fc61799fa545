"""The settings of a feature CRF, as they are written into its folder."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

import numpy as np

from trelliswork.data.attributes import HashedIndex
from trelliswork.errors import ScoreError
from trelliswork.models.taggers.features.crf.kinds import KINDS, Kind, kind_of

Algorithm = Literal["lbfgs", "sgd", "perceptron", "pa", "arow", "margin", "herding"]
ALGORITHMS: tuple[Algorithm, ...] = ("lbfgs", "sgd", "perceptron", "pa", "arow", "margin", "herding")
Method = Literal["laplace", "hamiltonian"]
METHODS: tuple[Method, ...] = ("laplace", "hamiltonian")
PROBABILISTIC = ("lbfgs", "sgd")  # know what an unknown label is, and a sentence that counts twice
_LEARNED = tuple(name for name, kind in KINDS.items() if not kind.counted)
# A setting that is not left at its default can be combined only with these values of others.
COMBINATIONS: dict[str, dict[str, tuple[object, ...]]] = {
    "algorithm": {"model": ("crf", "logistic")},
    "c1": {"algorithm": ("lbfgs",), "model": _LEARNED},
    "min_count": {"model": _LEARNED},
    "cutoff": {"model": _LEARNED},
    "hash_bits": {"model": _LEARNED},
    "induce": {"model": ("crf",)},
    "latent": {"algorithm": PROBABILISTIC, "order": (1,), "model": ("crf",)},
    "order": {"algorithm": ("lbfgs",), "model": ("crf",)},
    "samples": {"algorithm": ("lbfgs", "herding"), "c1": (0,), "latent": (1,), "order": (1,), "model": ("crf",)},
    "hidden_units": {
        "algorithm": ("lbfgs",), "c1": (0,), "latent": (1,), "order": (1,), "samples": (0,), "hash_bits": (None,),
        "induce": (0,), "cutoff": (0,), "model": ("crf",),
    },
}  # fmt: skip


@dataclass(frozen=True)
class LearningConfig:
    """How to learn. The loss is Σ -log p + c2 ‖w‖² + c1 ‖w‖₁ (no ½, as in CRFsuite).

    `min_count` leaves out rare pairs (attribute with label, label with label), as CRFsuite's feature.minfreq does;
    `cutoff` leaves out rare attributes, whatever their labels, as CRF++'s -f does. With `hash_bits`, attributes are
    numbered by 2^bits hashes and no names are kept. `induce` adds this many conjunctions of attributes (see
    `induction`). `hidden_units` above 0 make a hidden-unit CRF, which is trained by Adam instead of `algorithm`; its
    `min_count` leaves out rare attributes.

    `latent` is the number of hidden states per label [S4.128]; `order` is how many previous labels a score depends on.
    With `samples`, answers are averages over this many weight vectors [S4.140]: with lbfgs they are drawn from the
    `posterior` (laplace or hamiltonian), sharpened by a `temperature` below 1; with herding they are those of the last
    epochs, which vote. At temperature 1, the posterior itself, rare weights are so uncertain that the average is worse
    than the optimum. `model` reads the same weights as another classical model (see `kinds`); `smoothing` is added to
    every count of the models that count. `COMBINATIONS` lists which settings go together.
    """

    algorithm: Algorithm = "lbfgs"
    c1: float = 0.0
    c2: float = 1.0
    max_iterations: int | None = None
    min_count: float = 0.0
    all_states: bool = False
    all_transitions: bool = False
    seed: int = 0
    latent: int = 1
    order: int = 1
    samples: int = 0
    posterior: Method = "laplace"
    temperature: float = 0.03
    model: Kind = "crf"
    smoothing: float = 0.1
    cutoff: int = 0
    hash_bits: int | None = None
    induce: int = 0
    hidden_units: int = 0

    def __post_init__(self) -> None:
        self._check_choices()
        check_settings(self.c1, self.c2, self.max_iterations)
        check_attribute_settings(self.cutoff, self.hash_bits, self.induce)
        check_at_least("latent", self.latent, 1)
        check_at_least("samples", self.samples, 0)
        check_at_least("hidden_units", self.hidden_units, 0)
        for name in ("temperature", "smoothing"):
            if not 0 < getattr(self, name) < np.inf:
                raise ScoreError(f"{name} must be above 0 and finite; got {getattr(self, name):g}; leave it out")
        if not self.c2 and (self.algorithm in ("sgd", "margin") or (self.samples and self.algorithm == "lbfgs")):
            what = "samples" if self.samples else f"the algorithm {self.algorithm}"
            raise ScoreError(f"c2 must be above 0 for {what}; got 0; give 0.001")
        self._check_combinations()

    def _check_choices(self) -> None:
        kind_of(self.model)
        for name, choices in (("algorithm", ALGORITHMS), ("posterior", METHODS)):
            if getattr(self, name) not in choices:
                raise ScoreError(f"{name} must be one of {', '.join(choices)}; got {getattr(self, name)!r}")
        if self.order not in (1, 2):
            raise ScoreError(f"order must be 1 or 2; got {self.order}")

    def _check_combinations(self) -> None:
        defaults = {each.name: each.default for each in fields(self)}
        for name, others in COMBINATIONS.items():
            value = getattr(self, name)
            for other, allowed in others.items():
                got = getattr(self, other)
                if value != defaults[name] and got not in allowed:
                    what = "hidden units" if name == "hidden_units" else f"{name} {_shown(value)}"
                    choice = f"choose {other} {' or '.join(map(_shown, allowed))}"
                    fix = f"leave out {other}" if allowed == (defaults[other],) else choice
                    raise ScoreError(f"{what} cannot be combined with {other} {_shown(got)}; {fix}")


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def check_at_least(name: str, value: int, lowest: int) -> None:
    """Refuse a number that is too low."""
    if value < lowest:
        raise ScoreError(f"{name} must be at least {lowest}; got {value}; leave it out for {lowest}")


def check_settings(c1: float, c2: float, max_iterations: int | None) -> None:
    """Refuse what no learner can work with."""
    for name, value in (("c1", c1), ("c2", c2)):
        if not 0 <= value < np.inf:
            raise ScoreError(f"{name} must be at least 0 and finite; got {value:g}")
    if max_iterations is not None and max_iterations < 1:
        raise ScoreError(f"max_iterations must be at least 1; got {max_iterations}; leave it out for no limit")


def check_attribute_settings(cutoff: int, hash_bits: int | None, induce: int) -> None:
    """Refuse what no attributes can be made by."""
    for name, value in (("cutoff", cutoff), ("induce", induce)):
        if not 0 <= value < np.inf:
            raise ScoreError(f"{name} must be a whole number from 0 on; got {value}")
    if hash_bits is not None:
        HashedIndex(hash_bits)
