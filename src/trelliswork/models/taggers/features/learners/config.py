"""The settings of a feature CRF, as they are written into its folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from trelliswork.data.attributes import HashedIndex
from trelliswork.errors import ScoreError
from trelliswork.models.taggers.features.crf.kinds import Kind, kind_of

Algorithm = Literal["lbfgs", "sgd", "perceptron", "pa", "arow", "margin", "herding"]
ALGORITHMS: tuple[Algorithm, ...] = ("lbfgs", "sgd", "perceptron", "pa", "arow", "margin", "herding")
Method = Literal["laplace", "hamiltonian"]
METHODS: tuple[Method, ...] = ("laplace", "hamiltonian")
PROBABILISTIC = ("lbfgs", "sgd")  # know what an unknown label is, and a sentence that counts twice


@dataclass(frozen=True)
class LearningConfig:
    """How to learn. The loss is Σ -log p + c2 ‖w‖² + c1 ‖w‖₁ (no ½, as CRFsuite has it).

    `min_count` leaves out rare pairs (attribute with label, label with label), as CRFsuite's feature.minfreq does;
    `cutoff` rare attributes, whatever their labels, as CRF++'s -f does. With `hash_bits` attributes are numbered by
    2^bits hashes and no names are kept. `induce` so many conjunctions of attributes are added (see `induction`).
    `hidden_units` above 0 make a hidden-unit CRF, which has a learner of its own (Adam) in the place of `algorithm`;
    its `min_count` leaves out rare attributes.

    `latent` states of each label, which the data does not show [S4.128]; `order` labels before a label that its score
    looks at. With `samples`, answers are averages over so many weight vectors [S4.140]: with lbfgs drawn from the
    `posterior` (laplace or hamiltonian), sharpened by a `temperature` below 1; with herding those of the last epochs,
    which vote. At temperature 1, the posterior itself, rare weights are so uncertain that the average is worse than the
    optimum. `model` is another reading of the same weights (see `kinds`);
    `smoothing` is added to every count of those that count.
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
        if self.algorithm not in ALGORITHMS:
            raise ScoreError(f"algorithm must be one of {', '.join(ALGORITHMS)}; got {self.algorithm!r}")
        if self.c1 and self.algorithm != "lbfgs":
            raise ScoreError(f"c1 needs the algorithm lbfgs; got {self.algorithm}")
        check_settings(self.c1, self.c2, self.max_iterations)
        check_attribute_settings(self.cutoff, self.hash_bits, self.induce)
        if self.algorithm in ("sgd", "margin") and self.c2 == 0:
            raise ScoreError(f"c2 must be above 0 for the algorithm {self.algorithm}; got 0; give 0.001")
        self._check_states()
        self._check_samples()
        self._check_model()
        self._check_hidden_units()

    def _check_states(self) -> None:
        if self.latent < 1:
            raise ScoreError(f"latent must be at least 1, the number of states of each label; got {self.latent}")
        if self.order not in (1, 2):
            raise ScoreError(f"order must be 1 or 2; got {self.order}")
        if self.latent > 1 and (self.order == 2 or self.algorithm not in PROBABILISTIC):
            got = f"{self.algorithm} with order {self.order}"
            raise ScoreError(f"latent needs the algorithm {' or '.join(PROBABILISTIC)} and order 1; got {got}")
        if self.order == 2 and self.algorithm != "lbfgs":
            raise ScoreError(f"order 2 needs the algorithm lbfgs; got {self.algorithm}")

    def _check_samples(self) -> None:
        if self.samples < 0:
            raise ScoreError(f"samples must be at least 0; got {self.samples}")
        if self.posterior not in METHODS:
            raise ScoreError(f"posterior must be one of {', '.join(METHODS)}; got {self.posterior!r}")
        if not 0 < self.temperature < np.inf:
            raise ScoreError(f"temperature must be above 0 and finite; got {self.temperature:g}; 1 is the posterior")
        if not self.samples:
            return
        if self.algorithm not in ("lbfgs", "herding"):
            raise ScoreError(f"samples need the algorithm lbfgs or herding; got {self.algorithm}; leave them out")
        if self.algorithm == "lbfgs" and (self.c1 or not self.c2):
            got = f"c1 {self.c1:g} and c2 {self.c2:g}"
            raise ScoreError(f"samples need c1 = 0 and c2 above 0, which is the prior of the weights; got {got}")
        if self.latent > 1 or self.order == 2:
            raise ScoreError(f"samples need latent 1 and order 1; got {self.latent} and {self.order}")

    def _check_model(self) -> None:
        kind = kind_of(self.model)
        if not 0 < self.smoothing < np.inf:
            raise ScoreError(f"smoothing must be above 0 and finite; got {self.smoothing:g}")
        if kind.counted and (self.algorithm != "lbfgs" or self.c1 or self.min_count > 0):
            raise ScoreError(f"the model {self.model} counts: it takes no algorithm, c1 or min_count; leave them out")
        if kind.normalised == "locally" and self.algorithm != "lbfgs":
            raise ScoreError(f"the model {self.model} needs the algorithm lbfgs; got {self.algorithm}")
        if self.model != "crf" and (self.latent > 1 or self.order == 2 or self.samples):
            raise ScoreError(f"latent, order and samples need the model crf; got {self.model}; leave them out")
        if kind.counted and (self.hash_bits is not None or self.induce or self.cutoff):
            raise ScoreError(f"hash_bits, induce and cutoff need the model crf or memm; got {self.model}")
        if self.induce and self.model != "crf":
            raise ScoreError(f"induce needs the model crf; got {self.model}; leave it out")

    def _check_hidden_units(self) -> None:
        if self.hidden_units < 0:
            raise ScoreError(f"hidden_units must be at least 0; got {self.hidden_units}; 0 is a CRF without them")
        if not self.hidden_units:
            return
        if self.algorithm != "lbfgs" or self.c1:
            setting = f"algorithm {self.algorithm}" if self.algorithm != "lbfgs" else f"c1 {self.c1:g}"
            raise ScoreError(f"hidden units are learned by Adam with c2 alone; got {setting}; leave it out")
        others = {
            "latent": self.latent > 1,
            "order": self.order > 1,
            "samples": self.samples > 0,
            "hash_bits": self.hash_bits is not None,
            "induce": self.induce > 0,
            "cutoff": self.cutoff > 0,
            "model": self.model != "crf",
        }
        for name, given in others.items():
            if given:
                raise ScoreError(f"hidden units cannot be had with {name}; got {getattr(self, name)}; leave it out")


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
