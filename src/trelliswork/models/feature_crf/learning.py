"""From a corpus of attributes to weights, by any of the learners."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from trelliswork.data.attributes import AttributeRows
from trelliswork.errors import ScoreError
from trelliswork.models.feature_crf.objective import Likelihood
from trelliswork.models.feature_crf.online import OnlineLearner, Rule
from trelliswork.models.feature_crf.parameters import Parameters
from trelliswork.models.feature_crf.sgd import StochasticDescent
from trelliswork.models.hidden_unit_crf.learning import HiddenUnitLearner
from trelliswork.models.hidden_unit_crf.parameters import HiddenParameters
from trelliswork.training.lbfgs import LBFGS

Array = np.ndarray[Any, Any]
Algorithm = Literal["lbfgs", "sgd", "perceptron", "pa", "arow"]
ALGORITHMS: tuple[Algorithm, ...] = ("lbfgs", "sgd", "perceptron", "pa", "arow")


@dataclass(frozen=True)
class LearningConfig:
    """How to learn. The loss is Σ -log p + c2 ‖w‖² + c1 ‖w‖₁ (no ½, as CRFsuite has it).

    `hidden_units` above 0 make a hidden-unit CRF, which has a learner of its own (Adam) in the place of `algorithm`.
    """

    algorithm: Algorithm = "lbfgs"
    c1: float = 0.0
    c2: float = 1.0
    max_iterations: int | None = None
    min_count: float = 0.0
    all_states: bool = False
    all_transitions: bool = False
    seed: int = 0
    hidden_units: int = 0

    def __post_init__(self) -> None:
        if self.hidden_units:
            check_hidden_units(self)
        if self.algorithm not in ALGORITHMS:
            raise ScoreError(f"algorithm must be one of {', '.join(ALGORITHMS)}; got {self.algorithm!r}")
        if self.c1 and self.algorithm != "lbfgs":
            raise ScoreError(f"c1 needs the algorithm lbfgs; got {self.algorithm}")
        check_settings(self.c1, self.c2, self.max_iterations)
        if self.algorithm == "sgd" and self.c2 == 0:
            raise ScoreError("c2 must be above 0 for the algorithm sgd, whose rate follows from it; got 0; give 0.001")


def check_settings(c1: float, c2: float, max_iterations: int | None) -> None:
    """Refuse what no learner can work with."""
    for name, value in (("c1", c1), ("c2", c2)):
        if not 0 <= value < np.inf:
            raise ScoreError(f"{name} must be at least 0 and finite; got {value:g}")
    if max_iterations is not None and max_iterations < 1:
        raise ScoreError(f"max_iterations must be at least 1; got {max_iterations}; leave it out for no limit")


def check_hidden_units(config: LearningConfig) -> None:
    """Refuse what a hidden-unit CRF cannot be learned with."""
    if config.hidden_units < 0:
        raise ScoreError(f"hidden_units must be at least 0; got {config.hidden_units}; 0 is a CRF without them")
    if config.algorithm != "lbfgs" or config.c1:
        setting = f"algorithm {config.algorithm}" if config.algorithm != "lbfgs" else f"c1 {config.c1:g}"
        raise ScoreError(f"hidden units are learned by Adam with c2 alone; got {setting}; leave it out")


@dataclass(frozen=True)
class Progress:
    """The weights after an iteration (or epoch), the loss, and the gradient's norm where there is one."""

    iteration: int
    weights: Array
    loss: float
    gradient_norm: float | None = None


def learn(
    rows: AttributeRows, gold: Array, parameters: Parameters, config: LearningConfig, start: Array | None = None
) -> Iterator[Progress]:
    """One `Progress` an iteration; the last has the weights that were learned. Hidden units may have a `start`."""
    if isinstance(parameters, HiddenParameters):
        for epoch in hidden_unit_learner(config).learn(rows, gold, parameters, start):
            yield Progress(epoch.number, epoch.weights, epoch.loss)
        return
    if config.algorithm == "lbfgs":
        learner = LBFGS(l2=config.c2, l1=config.c1, max_iterations=config.max_iterations or 10_000)
        for step in learner.minimise(Likelihood(rows, gold, parameters), np.zeros(len(parameters))):
            yield Progress(step.iteration, step.weights, step.loss, step.gradient_norm)
        return
    for epoch in _online(config).learn(rows, gold, parameters):
        yield Progress(epoch.number, epoch.weights, epoch.loss)


def hidden_unit_learner(config: LearningConfig) -> HiddenUnitLearner:
    """Rare attributes begin without a say, as random weights of theirs would only be noise."""
    epochs = config.max_iterations or 15
    return HiddenUnitLearner(l2=config.c2, max_epochs=epochs, seed=config.seed, spread_w=0.0, spread_v=0.5)


def _online(config: LearningConfig) -> OnlineLearner | StochasticDescent:
    if config.algorithm == "sgd":
        return StochasticDescent(l2=config.c2, max_epochs=config.max_iterations or 100, seed=config.seed)
    rules: dict[str, Rule] = {"perceptron": "perceptron", "pa": "pa-1", "arow": "arow"}
    return OnlineLearner(rules[config.algorithm], max_epochs=config.max_iterations or 50, seed=config.seed)
