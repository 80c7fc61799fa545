"""From a corpus of attributes to weights, by any of the learners."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from trelliswork.data.attributes import AttributeRows
from trelliswork.errors import ScoreError
from trelliswork.models.feature_crf.herding import Herding
from trelliswork.models.feature_crf.margin import MarginLearner
from trelliswork.models.feature_crf.objective import Likelihood
from trelliswork.models.feature_crf.online import OnlineLearner, Rule
from trelliswork.models.feature_crf.parameters import Parameters
from trelliswork.models.feature_crf.posterior import METHODS, Method, curvature, draw
from trelliswork.models.feature_crf.sgd import StochasticDescent
from trelliswork.training.lbfgs import LBFGS

Array = np.ndarray[Any, Any]
Algorithm = Literal["lbfgs", "sgd", "perceptron", "pa", "arow", "margin", "herding"]
ALGORITHMS: tuple[Algorithm, ...] = ("lbfgs", "sgd", "perceptron", "pa", "arow", "margin", "herding")


@dataclass(frozen=True)
class LearningConfig:
    """How to learn. The loss is Σ -log p + c2 ‖w‖² + c1 ‖w‖₁ (no ½, as CRFsuite has it).

    With `samples`, answers are averages over so many weight vectors: with lbfgs drawn from the `posterior` (laplace or
    hamiltonian), sharpened by a `temperature` below 1; with herding those of the last epochs, which vote. At
    temperature 1, the posterior itself, rare weights are so uncertain that the average is worse than the optimum.
    """

    algorithm: Algorithm = "lbfgs"
    c1: float = 0.0
    c2: float = 1.0
    max_iterations: int | None = None
    min_count: float = 0.0
    all_states: bool = False
    all_transitions: bool = False
    seed: int = 0
    samples: int = 0
    posterior: Method = "laplace"
    temperature: float = 0.03

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            raise ScoreError(f"algorithm must be one of {', '.join(ALGORITHMS)}; got {self.algorithm!r}")
        if self.c1 and self.algorithm != "lbfgs":
            raise ScoreError(f"c1 needs the algorithm lbfgs; got {self.algorithm}")
        check_settings(self.c1, self.c2, self.max_iterations)
        if self.algorithm in ("sgd", "margin") and self.c2 == 0:
            raise ScoreError(f"c2 must be above 0 for the algorithm {self.algorithm}; got 0; give 0.001")
        self._check_samples()

    def _check_samples(self) -> None:
        if self.samples < 0:
            raise ScoreError(f"samples must be at least 0; got {self.samples}")
        if self.posterior not in METHODS:
            raise ScoreError(f"posterior must be one of {', '.join(METHODS)}; got {self.posterior!r}")
        if not 0 < self.temperature < np.inf:
            raise ScoreError(f"temperature must be above 0 and finite; got {self.temperature:g}; 1 is the posterior")
        if self.samples and self.algorithm not in ("lbfgs", "herding"):
            raise ScoreError(f"samples need the algorithm lbfgs or herding; got {self.algorithm}; leave them out")
        if self.samples and self.algorithm == "lbfgs" and (self.c1 or not self.c2):
            got = f"c1 {self.c1:g} and c2 {self.c2:g}"
            raise ScoreError(f"samples need c1 = 0 and c2 above 0, which is the prior of the weights; got {got}")


def check_settings(c1: float, c2: float, max_iterations: int | None) -> None:
    """Refuse what no learner can work with."""
    for name, value in (("c1", c1), ("c2", c2)):
        if not 0 <= value < np.inf:
            raise ScoreError(f"{name} must be at least 0 and finite; got {value:g}")
    if max_iterations is not None and max_iterations < 1:
        raise ScoreError(f"max_iterations must be at least 1; got {max_iterations}; leave it out for no limit")


@dataclass(frozen=True)
class Progress:
    """The weights after an iteration (or epoch), the loss, and the gradient's norm where there is one.

    `measures` is what else the learner has to say, such as the gap to the best loss; `samples` [members, weights] are
    the weight vectors to average over, if any.
    """

    iteration: int
    weights: Array
    loss: float
    gradient_norm: float | None = None
    measures: Mapping[str, float] = field(default_factory=dict)
    samples: Array | None = None


def learn(rows: AttributeRows, gold: Array, parameters: Parameters, config: LearningConfig) -> Iterator[Progress]:
    """One `Progress` an iteration; the last has the weights that were learned."""
    if config.algorithm == "lbfgs":
        learner, likelihood = _lbfgs(config), Likelihood(rows, gold, parameters)
        progress = Progress(0, np.zeros(len(parameters)), float("nan"))
        for step in learner.minimise(likelihood, np.zeros(len(parameters))):
            progress = Progress(step.iteration, step.weights, step.loss, step.gradient_norm)
            yield progress
        if config.samples:
            curved = curvature(rows, parameters, progress.weights)
            found = draw(
                likelihood, config.c2, progress.weights, curved, config.samples, config.posterior, config.seed,
                config.temperature,
            )  # fmt: skip
            yield replace(progress, samples=found)
        return
    if config.algorithm == "margin":
        margin = MarginLearner(c2=config.c2, max_epochs=config.max_iterations or 30, seed=config.seed)
        for each in margin.learn(rows, gold, parameters):
            yield Progress(each.number, each.weights, each.loss, measures={"gap": each.gap})
        return
    if config.algorithm == "herding":
        herding = Herding(max_epochs=config.max_iterations or 50, seed=config.seed)
        voters: deque[Array] = deque(maxlen=config.samples)
        for herded in herding.learn(rows, gold, parameters):
            voters.append(herded.weights)
            measures = {"moment error": herded.trajectory.moment_error}
            last = np.array(voters) if config.samples else None
            yield Progress(herded.number, herded.average, herded.loss, measures=measures, samples=last)
        return
    for epoch in _online(config).learn(rows, gold, parameters):
        measures = {} if epoch.moment_error is None else {"moment error": epoch.moment_error}
        yield Progress(epoch.number, epoch.weights, epoch.loss, measures=measures)


def _lbfgs(config: LearningConfig) -> LBFGS:
    return LBFGS(l2=config.c2, l1=config.c1, max_iterations=config.max_iterations or 10_000)


def _online(config: LearningConfig) -> OnlineLearner | StochasticDescent:
    if config.algorithm == "sgd":
        return StochasticDescent(l2=config.c2, max_epochs=config.max_iterations or 100, seed=config.seed)
    rules: dict[str, Rule] = {"perceptron": "perceptron", "pa": "pa-1", "arow": "arow"}
    return OnlineLearner(rules[config.algorithm], max_epochs=config.max_iterations or 50, seed=config.seed)
