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
from trelliswork.training.lbfgs import LBFGS

Array = np.ndarray[Any, Any]
Algorithm = Literal["lbfgs", "sgd", "perceptron", "pa", "arow"]
ALGORITHMS: tuple[Algorithm, ...] = ("lbfgs", "sgd", "perceptron", "pa", "arow")


@dataclass(frozen=True)
class LearningConfig:
    """How to learn. The loss is Σ -log p + c2 ‖w‖² + c1 ‖w‖₁ (no ½, as CRFsuite has it)."""

    algorithm: Algorithm = "lbfgs"
    c1: float = 0.0
    c2: float = 1.0
    max_iterations: int | None = None
    min_count: float = 0.0
    all_states: bool = False
    all_transitions: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
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


@dataclass(frozen=True)
class Progress:
    """The weights after an iteration (or epoch), the loss, and the gradient's norm where there is one."""

    iteration: int
    weights: Array
    loss: float
    gradient_norm: float | None = None


def learn(rows: AttributeRows, gold: Array, parameters: Parameters, config: LearningConfig) -> Iterator[Progress]:
    """One `Progress` an iteration; the last has the weights that were learned."""
    if config.algorithm == "lbfgs":
        learner = LBFGS(l2=config.c2, l1=config.c1, max_iterations=config.max_iterations or 10_000)
        likelihood = Likelihood(rows, gold, parameters)
        del rows, gold  # the likelihood has its own
        for step in learner.minimise(likelihood, np.zeros(len(parameters))):
            yield Progress(step.iteration, step.weights, step.loss, step.gradient_norm)
        return
    for epoch in _online(config).learn(rows, gold, parameters):
        yield Progress(epoch.number, epoch.weights, epoch.loss)


def _online(config: LearningConfig) -> OnlineLearner | StochasticDescent:
    if config.algorithm == "sgd":
        return StochasticDescent(l2=config.c2, max_epochs=config.max_iterations or 100, seed=config.seed)
    rules: dict[str, Rule] = {"perceptron": "perceptron", "pa": "pa-1", "arow": "arow"}
    return OnlineLearner(rules[config.algorithm], max_epochs=config.max_iterations or 50, seed=config.seed)
